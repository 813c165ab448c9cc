//! What the console says of destinations and their credentials. The service names the kinds; a kind
//! or a member that is not here is edited by its name.

import { choices } from '../../api/choices';

interface Named {
  member: string;
  label: string;
  hint?: string;
}
export type DestinationField = Named &
  (
    | { as: 'text' | 'number' | 'flag' }
    // `usual` is what the service takes where the member is absent: the first, if not given.
    | { as: 'choice'; options: [value: string | number, text: string][]; usual?: string | number }
    | { as: 'pairs'; left: string; right: string; add: string }
  );
export type CredentialField = Named & { isSecret?: boolean; placeholder?: string };

interface KindWords {
  /** An example of its URL. */
  example?: string;
  /** The types of its credentials. */
  auth: string[];
  /** A new destination. */
  begin: Record<string, unknown>;
  /** All members but `kind`, `url` and `auth`. */
  fields: DestinationField[];
}

const KINDS: Record<string, KindWords> = {
  HTTP: {
    example: 'https://example.com/readings',
    auth: ['BEARER', 'BASIC', 'HEADER'],
    begin: { kind: 'HTTP', url: '', format: 'JSON' },
    fields: [
      { member: 'format', label: 'Body', as: 'choice', options: [['JSON', 'JSON'], ['INFLUX_LINE', 'InfluxDB line protocol'], ['TEMPLATE', 'Text of a template step']] },
      { member: 'headers', label: 'Headers (not secret)', as: 'pairs', left: 'Name', right: 'Value', add: 'Add a header' },
    ],
  },
  MQTT: {
    example: 'mqtts://broker.example.com:8883',
    auth: ['BASIC'],
    begin: { kind: 'MQTT', url: 'mqtts://', topic: 'hubs/{{hubUuid}}/{{deviceInstanceId}}' },
    fields: [
      { member: 'topic', label: 'Topic', as: 'text', hint: 'A template: hubs/{{hubUuid}}/{{deviceInstanceId}}' },
      { member: 'qos', label: 'Quality of service', as: 'choice', options: [[0, '0: at most once'], [1, '1: at least once'], [2, '2: exactly once']], usual: 1 },
      { member: 'version', label: 'Version of MQTT', as: 'choice', options: [['3.1.1', '3.1.1'], ['5', '5']] },
      { member: 'retain', label: 'Retain the last message of each topic', as: 'flag' },
      { member: 'homeAssistantDiscovery', label: 'Announce the quantities of devices to Home Assistant', as: 'flag', hint: 'Requires a topic per device.' },
    ],
  },
  NATS: {
    example: 'tls://nats.example.com:4222',
    auth: ['BEARER', 'BASIC', 'NKEY', 'CREDENTIALS'],
    begin: { kind: 'NATS', url: 'tls://', subject: 'readings.{{deviceInstanceId}}' },
    fields: [
      { member: 'subject', label: 'Subject', as: 'text', hint: 'A template: readings.{{deviceInstanceId}}. A JetStream stream must accept it.' },
      { member: 'tlsFirst', label: 'TLS first, before the server greeting', as: 'flag' },
    ],
  },
  S3: {
    example: 's3://bucket/prefix',
    auth: ['S3'],
    begin: { kind: 'S3', url: 's3://', everySeconds: 60 },
    fields: [{ member: 'everySeconds', label: 'Seconds per object', as: 'number', hint: '10 to 3,600.' }],
  },
};

const CREDENTIALS: Record<string, { label: string; fields: CredentialField[] }> = {
  BEARER: { label: 'Token', fields: [{ member: 'token', label: 'Token', isSecret: true }] },
  BASIC: {
    label: 'User name and password',
    fields: [
      { member: 'username', label: 'User name' },
      { member: 'password', label: 'Password', isSecret: true },
    ],
  },
  HEADER: {
    label: 'Custom header',
    fields: [
      { member: 'name', label: 'Name of the header', placeholder: 'Authorization' },
      { member: 'value', label: 'Its value', isSecret: true },
    ],
  },
  NKEY: {
    label: 'NKEY',
    fields: [{ member: 'seed', label: 'Seed', hint: 'Seed of a user; it begins with SU.', isSecret: true }],
  },
  CREDENTIALS: {
    label: 'Credentials file',
    fields: [{ member: 'credentials', label: 'Content of the .creds file', isSecret: true }],
  },
  S3: {
    label: 'Access key',
    fields: [
      { member: 'accessKeyId', label: 'Access key id' },
      { member: 'secretAccessKey', label: 'Secret access key', isSecret: true },
      { member: 'region', label: 'Region', placeholder: 'us-east-1' },
      { member: 'endpoint', label: 'Endpoint', hint: "Only for stores other than Amazon S3." },
    ],
  },
};

/** The kinds of the service. */
export const destinationKinds = () => choices('CreatePipelineRequest', 'destination', 'x-kinds');

const own = <T>(table: Record<string, T>, name: string): T | undefined => (Object.hasOwn(table, name) ? table[name] : undefined);

export const hasWords = (kind: string) => Object.hasOwn(KINDS, kind);

/** Of a kind without words, any credentials may fit: the service refuses those that do not. */
export const wordsOf = (kind: string): KindWords =>
  own(KINDS, kind) ?? { auth: Object.keys(CREDENTIALS), begin: { kind, url: '' }, fields: [] };

/** What the console says of a type of credentials, if it knows it. */
export const credentialsOf = (type: string) => own(CREDENTIALS, type);

/** Whether a member of the credentials is hidden: all are, of a type that is not here. */
export function isSecret(type: unknown, member: string): boolean {
  if (member === 'type') return false;
  return credentialsOf(String(type))?.fields.find((field) => field.member === member)?.isSecret ?? true;
}
