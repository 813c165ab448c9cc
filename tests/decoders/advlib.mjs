// Reads frames with advlib-ble-manufacturers and advlib-ble-services of npm. As with theirs.py,
// each line of standard input is a frame, and each line of standard output is
// `{decoder: {quantity: [values]}}` with our names and units, without a decoder that reads nothing.

import { createInterface } from 'node:readline';
import { processManufacturerSpecificData } from 'advlib-ble-manufacturers';
import { processServiceData } from 'advlib-ble-services';

const G = 9.80665;

// Their properties: our quantity, and what a number is multiplied with. Where several numbers are
// of several quantities, all are named. `not` inverts a truth.
//
// Left out because no quantity of ours fits: magneticField, soundPressure, elevation, position (of
// a place), differentialPressure, levelPercentage (of a generic level, or of stored energy),
// angularVelocity (no document gives its unit), the gases but CO2 and organic compounds, isMarked,
// rrIntervals, isSensorContactDetected, interactionDigest and nearest; deviceIds and version, which
// identify a device; and timestamp, which is a text with us.
const PROPERTIES = {
  acceleration: [['acceleration_x', 'acceleration_y', 'acceleration_z'], G],
  amperage: ['current'],
  amperages: ['current'],
  batteryPercentage: ['battery'],
  batteryVoltage: ['voltage'],
  carbonDioxideConcentration: ['co2'],
  distance: ['distance'],
  energyExpended: ['energy'],
  heading: ['direction'],
  heartRate: ['heart_rate'],
  illuminance: ['illuminance'],
  isBatteryLow: ['battery_low'],
  isButtonPressedCycle: ['press_count'],
  isContactDetected: ['opening', 'not'],
  isContactDetectedCycle: ['count'],
  isInputDetected: ['switch'],
  isInputDetectedCycle: ['count'],
  isLiquidDetected: ['water_leak'],
  isMotionDetected: ['motion'],
  isMotionDetectedCycle: ['movement_counter'],
  isOccupancyDetected: ['occupancy'],
  isStationary: ['moving', 'not'],
  luminousFlux: ['light_level'],
  name: ['text'],
  nitrogenOxidesIndex: ['nox_index'],
  numberOfOccupants: ['count'],
  passageCounts: [['entry_count', 'exit_count']],
  'pm1.0': ['pm1'],
  'pm2.5': ['pm25'],
  pm10: ['pm10'],
  pressure: ['pressure'],
  pressures: ['pressure'],
  relativeHumidity: ['humidity'],
  speed: ['speed'],
  temperature: ['temperature'],
  temperatures: ['temperature_probe'],
  txCount: ['advertisement_count'],
  txCycle: ['measurement_sequence'],
  txPower: ['tx_power'],
  uptime: ['uptime', 0.001],
  voltage: ['voltage'],
  voltages: ['voltage'],
  volatileOrganicCompoundsConcentration: ['tvoc_ratio'],
};

// A zero byte ends a text.
function add(found, quantity, value, change) {
  if (typeof value === 'boolean') value = Number(value !== (change === 'not'));
  else if (Number.isFinite(value)) value *= change ?? 1;
  else if (typeof value === 'string') value = value.replace(/\0.*$/s, '');
  else return;
  (found[quantity] ??= []).push(value);
}

// Adds what one payload says. A decoder that throws says nothing.
function decode(found, process, key, data) {
  let read;
  try {
    read = process(key, data) ?? {};
  } catch {
    return;
  }
  for (const [property, [quantity, change]] of Object.entries(PROPERTIES)) {
    [read[property]].flat().forEach((value, index) => {
      add(found, Array.isArray(quantity) ? quantity[index] : quantity, value, change);
    });
  }
  // Their own links tell what a device is.
  if (!`${read.uri}`.startsWith('https://sniffypedia.org/')) add(found, 'url', read.uri);
  // Which buttons are pressed, as bits.
  if (Array.isArray(read.isButtonPressed)) {
    add(found, 'button', read.isButtonPressed.reduce((bits, is, index) => bits | (is << index), 0));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { manufacturerData = {}, serviceData = {} } = JSON.parse(line);
  const manufacturers = {};
  const services = {};
  for (const [company, data] of Object.entries(manufacturerData)) {
    decode(manufacturers, processManufacturerSpecificData, parseInt(company, 16), data);
  }
  for (const [uuid, data] of Object.entries(serviceData)) {
    decode(services, processServiceData, uuid, data);
  }
  const found = { 'advlib-ble-manufacturers': manufacturers, 'advlib-ble-services': services };
  const said = Object.entries(found).filter(([, values]) => Object.keys(values).length);
  console.log(JSON.stringify(Object.fromEntries(said)));
}
