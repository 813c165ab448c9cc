//! Claim codes as the pages show them.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Code = Schemas['ClaimCodeResponse'];

export const STATUS: Record<Schemas['ClaimCodeStatus'], { tone: Tone; text: string }> = {
  PENDING: { tone: 'good', text: 'can be used' },
  USED: { tone: 'off', text: 'used up' },
  EXPIRED: { tone: 'warn', text: 'expired' },
  REVOKED: { tone: 'bad', text: 'revoked' },
};

/** Whether the caller sees it in full, and it still claims. */
export const isUsable = ({ status, claimCode }: Code) => status === 'PENDING' && !claimCode.includes('…');

/** What its QR code says. The pairing page shows a code to the person alone whom it is made out to. */
export const qrText = ({ pairingUrl, claimCode }: Code) => pairingUrl ?? claimCode;
