//! The language of expressions, as docs/pipelines.md defines it. A test runs all examples.

export interface Term {
  syntax: string;
  does: string;
  example: string;
  gives: unknown;
}

const term = (syntax: string, does: string, example: string, gives: unknown): Term => ({ syntax, does, example, gives });

/** The input of the examples. */
export const ABOUT = "{name: 'Kitchen', rssi: -61, temperature: 23.45, humidity: 53.5, temperature_probe: [20, 30], …}";

export const TERMS: [title: string, terms: Term[]][] = [
  [
    'Fields',
    [
      term('rssi, name, address, …', 'a member of the event', 'rssi', -61),
      term('temperature', 'the value of a quantity, if the event has no member of this name', 'temperature', 23.45),
      term('values.temperature', 'the value of a quantity', 'values.humidity', 53.5),
      term('temperature_probe[1]', 'the value with this index; without an index, the first value', 'temperature_probe[1]', 30),
      term("manufacturerData['0499'], window.count", 'a nested member', 'measurements[0].unit', 'Cel'),
      term('deviceInstanceId, deviceUuid', 'the registered device and its model; null if unknown', 'deviceInstanceId != null', true),
      term('hubUuid, txPower, serviceUuids, serviceData', 'other members of the event', "'0499' in manufacturerData", true),
      term('processingStatus', 'the processing status', "processingStatus == 'DECODED'", true),
      term('observedAt, receivedAt', 'when the hub and the service received it', 'receivedAt', '2026-01-31T09:00:00.000000Z'),
      term("'text', 7, true, null, [a, b]", 'values; quotes may be single or double', '[name, 7]', ['Kitchen', 7]),
    ],
  ],
  [
    'Operators, by precedence',
    [
      term('-x, !x', 'negation', '-rssi', 61),
      term('*, /, %', 'calculations', '7 % 4', 3),
      term('+, -', 'calculations; + also joins two texts', 'temperature * 1.8 + 32', 74.21),
      term('==, !=, <, <=, >, >=', 'comparisons: numbers with numbers, texts with texts', 'rssi >= -61', true),
      term('in', 'an item of a list, a part of a text, or a member of an object', "'itch' in name", true),
      term('not', 'logical negation', 'not has(water_leak)', true),
      term('and, &&', 'whether both are true', 'temperature > 20 and rssi > -90', true),
      term('or, ||', 'whether one is true', 'temperature > 25 or rssi >= -61', true),
    ],
  ],
  [
    'Functions',
    [
      term('has(path)', 'whether the value is not null', 'has(humidity)', true),
      term('if(condition, then, otherwise)', 'one of the two', "if(rssi > -70, 'near', 'far')", 'near'),
      term('coalesce(a, b, …)', 'the first that is not null', 'coalesce(pressure, 101325)', 101325),
      term('lower(text)', 'in lower case', 'lower(name)', 'kitchen'),
      term('upper(text)', 'in upper case', 'upper(name)', 'KITCHEN'),
      term('trim(text)', 'without the spaces around it', "trim(' a ')", 'a'),
      term('length(x)', 'characters of a text, items of a list, members of an object', 'length(name)', 7),
      term('contains(x, y)', 'whether a text or a list contains something', "contains(name, 'itch')", true),
      term('startsWith(text, part)', 'whether a text starts with a part', "startsWith(name, 'Kit')", true),
      term('endsWith(text, part)', 'whether a text ends with a part', "endsWith(name, 'en')", true),
      term('substring(text, start, count)', 'characters from start on, counted from 0, below 0 from the end; without count all', 'substring(address, -5)', 'EE:FF'),
      term('replace(text, from, to)', 'every occurrence', "replace(address, ':', '')", 'AABBCCDDEEFF'),
      term('concat(a, b, …)', 'texts, numbers and booleans as one text; null is nothing', "concat(name, ' at ', rssi, ' dBm')", 'Kitchen at -61 dBm'),
      term('abs(x)', 'the absolute value', 'abs(rssi)', 61),
      term('floor(x)', 'rounded down', 'floor(temperature)', 23),
      term('ceil(x)', 'rounded up', 'ceil(temperature)', 24),
      term('round(x, digits)', 'rounded, half away from zero; without digits to a whole number', 'round(temperature, 1)', 23.5),
      term('min(x, y, …)', 'the smallest', 'min(temperature, humidity)', 23.45),
      term('max(x, y, …)', 'the largest', 'max(temperature, humidity)', 53.5),
      term('clamp(x, min, max)', 'limited to a range', 'clamp(rssi + 100, 0, 30)', 30),
      term('number(x)', 'a text or a boolean as a number, or null', "number('7.5')", 7.5),
      term('string(x)', 'a value as text', 'string(rssi)', '-61'),
      term('json(x)', 'as JSON, with quotes around text', 'json(name)', '"Kitchen"'),
      term('hour(time)', 'of a time in UTC: 0 to 23', 'hour(receivedAt)', 9),
      term('weekday(time)', 'of a time in UTC: 1 for Monday to 7', 'weekday(receivedAt)', 6),
      term('seconds(time)', 'since 1970', 'seconds(receivedAt)', 1769850000),
    ],
  ],
];
