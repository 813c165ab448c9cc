//! The scopes of API keys, as boxes to tick.

export interface Kind {
  kind: string;
  /** The objects of requests with a scope of this kind. */
  about: string;
  verbs: ('read' | 'write')[];
}

export const KINDS: Kind[] = [
  { kind: 'hubs', about: 'hubs, claim codes, jobs, logs, telemetry', verbs: ['read', 'write'] },
  { kind: 'devices', about: 'devices and their commands', verbs: ['read', 'write'] },
  { kind: 'catalog', about: 'device models, decoders, endpoints', verbs: ['read', 'write'] },
  { kind: 'ble', about: 'BLE events, live and stored', verbs: ['read'] },
  { kind: 'bundles', about: 'bundles', verbs: ['read', 'write'] },
  { kind: 'pipelines', about: 'pipelines and notifications', verbs: ['read', 'write'] },
  { kind: 'releases', about: 'apps and releases', verbs: ['read', 'write'] },
  { kind: 'audit', about: 'the audit log', verbs: ['read'] },
  { kind: 'billing', about: 'balance and transactions', verbs: ['read'] },
];

const all = KINDS.flatMap(({ kind, verbs }) => verbs.map((verb) => `${kind}:${verb}`));

/** The boxes that a key has ticked: `catalog:*` is all of its kind. */
export function ticked(scopes: string[]): string[] {
  return all.filter((scope) => scopes.some((given) => given === scope || given === `${scope.split(':')[0]}:*`));
}

/** The scopes to send; `catalog:*` stays one while both its boxes are ticked. */
export function written(ticks: string[], before: string[] = []): string[] {
  return KINDS.flatMap(({ kind, verbs }) => {
    const given = verbs.map((verb) => `${kind}:${verb}`).filter((scope) => ticks.includes(scope));
    return before.includes(`${kind}:*`) && given.length === verbs.length ? [`${kind}:*`] : given;
  });
}
