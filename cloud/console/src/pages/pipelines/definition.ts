//! The definition of a pipeline in the editor: the JSON of the API, and its initial values.

import type { Schemas } from '../../api/client';

export type Pipeline = Schemas['PipelineConfigResponse'];
export type Step = Record<string, unknown>;

export interface Definition {
  name: string;
  description?: string | null;
  enabled?: boolean;
  source: Schemas['SourceRequest'];
  steps: Step[];
  destination: Record<string, unknown>;
  delivery: Schemas['DeliveryRequest'];
}

/** The editable part of a saved pipeline. Pausing and resuming it are actions of their own. */
export function definitionOf(pipeline: Pipeline): Definition {
  const { name, description, source, steps, destination, delivery } = pipeline;
  return structuredClone({ name, ...(description ? { description } : {}), source, steps: steps as Step[], destination, delivery });
}

export interface Template {
  id: string;
  title: string;
  text: string;
  definition: Omit<Definition, 'delivery'> & Partial<Definition>;
}

export const TEMPLATES: Template[] = [
  {
    id: 'http',
    title: 'HTTP webhook',
    text: 'Sends each event to your server as signed JSON.',
    definition: {
      name: 'Webhook',
      source: { known: true },
      steps: [{ op: 'dedupe', seconds: 10 }],
      destination: { kind: 'HTTP', url: '', format: 'JSON' },
    },
  },
  {
    id: 'mqtt',
    title: 'MQTT broker',
    text: 'Publishes each event to a topic per device.',
    definition: {
      name: 'MQTT broker',
      source: { known: true },
      steps: [{ op: 'dedupe', seconds: 10 }],
      destination: { kind: 'MQTT', url: 'mqtts://', topic: 'hubs/{{hubUuid}}/{{deviceInstanceId}}', qos: 1 },
    },
  },
  {
    id: 'home-assistant',
    title: 'Home Assistant',
    text: 'Creates sensors in Home Assistant through its MQTT broker.',
    definition: {
      name: 'Home Assistant',
      source: { known: true },
      steps: [
        { op: 'dedupe', seconds: 10 },
        { op: 'sample', everySeconds: 60, by: 'DEVICE' },
      ],
      destination: { kind: 'MQTT', url: 'mqtts://', topic: 'ble/{{deviceInstanceId}}', qos: 1, retain: true, homeAssistantDiscovery: true },
    },
  },
  {
    id: 'influxdb',
    title: 'InfluxDB',
    text: 'Sends values to InfluxDB in batches, in the line protocol.',
    definition: {
      name: 'InfluxDB',
      source: { known: true },
      steps: [{ op: 'dedupe', seconds: 10 }],
      destination: { kind: 'HTTP', url: 'https://HOST/api/v2/write?org=ORG&bucket=BUCKET', format: 'INFLUX_LINE' },
      delivery: { batchEvents: 500, batchMillis: 5000 },
    },
  },
  {
    id: 's3',
    title: 'S3 archive',
    text: 'Stores all events in a bucket, one compressed file per minute.',
    definition: { name: 'Archive', source: {}, steps: [], destination: { kind: 'S3', url: 's3://', everySeconds: 60 } },
  },
  {
    id: 'empty',
    title: 'Empty',
    text: 'Start from scratch.',
    definition: { name: '', source: {}, steps: [], destination: { kind: 'HTTP', url: '' } },
  },
];

export const OPS = {
  filter: { label: 'Filter', does: 'An event passes if the expression is true.', begin: { when: '' } },
  map: { label: 'Map', does: 'Adds values to the event.', begin: { set: {} } },
  rename: { label: 'Rename', does: 'Moves values from one path to another.', begin: { fields: {} } },
  drop: { label: 'Drop fields', does: 'Removes these paths.', begin: { fields: [] } },
  scale: { label: 'Scale', does: 'Value × factor + offset.', begin: { quantity: '', factor: 1 } },
  convert: { label: 'Convert', does: 'Converts the values of a quantity to another unit.', begin: { quantity: '', unit: '' } },
  sample: { label: 'Sample', does: 'Passes one event per interval.', begin: { everySeconds: 60, by: 'DEVICE' } },
  on_change: { label: 'On change', does: 'An event passes if the value differs from the last one that passed.', begin: { quantity: '', delta: 0.5 } },
  dedupe: { label: 'Dedupe', does: 'Passes a frame only once if several hubs received it.', begin: { seconds: 10 } },
  template: { label: 'Template', does: 'Creates a text that is delivered instead of the event.', begin: { body: '' } },
  script: { label: 'Script', does: 'Runs a JavaScript function.', begin: { source: 'function process(event) {\n  return event;\n}' } },
} as const;

export type Op = keyof typeof OPS;
export const opLabel = (op: unknown) => OPS[op as Op]?.label ?? String(op);

/** The same text for the same definition, whatever the order in which its members were written. */
export function sameText(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    one && typeof one === 'object' && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).filter(([, inner]) => inner !== undefined).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}

/** The differences of two texts, line by line. */
export function lineDiff(before: string, after: string): { mark: ' ' | '-' | '+'; text: string }[] {
  const [old, now] = [before.split('\n'), after.split('\n')];
  // The length of the longest common sequence from each pair of lines on.
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--) {
    const row = common[i];
    if (!row) continue;
    for (let j = now.length - 1; j >= 0; j--) row[j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const lines: { mark: ' ' | '-' | '+'; text: string }[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ mark: ' ', text: old[i] ?? '' });
      [i, j] = [i + 1, j + 1];
    } else if (i < old.length && (j >= now.length || at(i + 1, j) >= at(i, j + 1))) lines.push({ mark: '-', text: old[i++] ?? '' });
    else lines.push({ mark: '+', text: now[j++] ?? '' });
  }
  return lines;
}
