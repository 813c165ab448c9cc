//! What the service answers, as people read it: the API speaks of headers, fields and credentials,
//! and a person acts on pages.

/** Sentences in the place of messages for those who write programs, by the code of the answer. */
const SENTENCES: Record<string, string> = {
  UNAUTHENTICATED: 'You are not signed in. Sign in again.',
  INVALID_TOKEN: 'Your session has ended. Sign in again.',
  INVALID_REFRESH_TOKEN: 'Your session has ended. Sign in again.',
  PERSON_REQUIRED: 'Only a person who is signed in may do this.',
  TENANT_REQUIRED: 'This page belongs to no tenant. Choose a tenant first.',
  TENANT_NOT_ACCESSIBLE: 'You are not a member of this tenant. One of its owners or administrators can add you.',
  OTHER_TENANT: 'This belongs to another tenant. Open it from the pages of that tenant.',
  OTHER_ORIGIN: 'The console was opened at another address than that of the service. Open it there.',
  UNKNOWN_PATH: 'The service does not know this request: it may have been updated. Reload the page.',
  METHOD_NOT_ALLOWED: 'The service does not know this request: it may have been updated. Reload the page.',
  MALFORMED_JSON: 'The service could not read what was sent. Reload the page and try again.',
  MALFORMED_ENCODING: 'The service could not read what was sent. Reload the page and try again.',
  INCOMPLETE_BODY: 'The connection ended before everything was sent. Try again.',
};

/** Names that are other words for people. */
const WORDS: Record<string, string> = { 'X-Tenant-UUID': 'tenant', otp: 'code' };

/** `rateLimitPerMinute` and `consent_text` as words; what people write themselves stays. */
function words(name: string): string {
  const known = WORDS[name];
  if (known) return known;
  // The last name of a path says what it is.
  const last = /^[a-z][A-Za-z0-9_]*(\[\d+\])?(\.[a-z][A-Za-z0-9_]*(\[\d+\])?)*$/.test(name) ? (name.split('.').at(-1) ?? name) : '';
  if (!/[a-z][A-Z]|[a-z]_[a-z]/.test(last)) return name;
  return last
    .replaceAll('_', ' ')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .replace(/ (uuids?|id)\b/, '');
}

/** The message of an answer for a person, as whole sentences. */
export function said(code: string, message: string): string {
  const known = SENTENCES[code];
  if (known) return known;
  const plain = message
    .replace(/(the )?(header|field|parameter) (?=`)/g, 'the ')
    .replace(/`([^`]+)`/g, (_, name: string) => `“${words(name)}”`);
  return sentence(plain);
}

/** A text as a whole sentence. */
export function sentence(text: string): string {
  const upper = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}
