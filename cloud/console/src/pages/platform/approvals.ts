//! The differences that a change of a supplier's OAuth configuration makes.

import type { Schemas } from '../../api/client';

type Config = Schemas['SupplierOauthConfigResponse'];

const FIELDS = [
  ['authorize_url', 'Sends users to'],
  ['token_url', 'Exchanges tokens at'],
  ['revoke_url', 'Revokes tokens at'],
  ['userinfo_url', 'Reads user ids at'],
  ['issuer', 'Issuer'],
  ['client_id', 'Client'],
  ['scope', 'Scope'],
  ['registration_url', 'Sends registration events to'],
  ['return_urls', 'Sends users back to'],
  ['consent_text', 'Text that users agree to'],
] as const satisfies readonly (readonly [keyof Config, string])[];

const text = (value: string | string[] | null | undefined) => (Array.isArray(value) ? value.join('\n') : value) || 'none';

/** The members that differ, or all that are set where nothing was in force. */
export function differences(change: Schemas['SupplierOauthApprovalResponse']): { label: string; before: string; after: string }[] {
  const { live } = change;
  const differing = FIELDS.map(([name, label]) => ({ label, before: live ? text(live[name]) : 'none', after: text(change[name]) }));
  const secrets = [
    { label: 'Secret of the client', isNew: change.clientSecretChanged },
    { label: 'Secret that signs registrations', isNew: change.registrationSharedSecretChanged },
  ].filter(({ isNew }) => isNew);
  return [
    ...differing.filter(({ before, after }) => before !== after),
    ...secrets.map(({ label }) => ({ label, before: 'current', after: 'changed (hidden)' })),
  ];
}
