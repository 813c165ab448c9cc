//! Claim codes as the pages show them.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Code = Schemas['ClaimCodeResponse'];

export const STATUS: Record<Schemas['ClaimCodeStatus'], { tone: Tone; text: string }> = {
  PENDING: { tone: 'good', text: 'valid' },
  USED: { tone: 'off', text: 'used up' },
  EXPIRED: { tone: 'warn', text: 'expired' },
  REVOKED: { tone: 'bad', text: 'revoked' },
};

/** True if the caller sees the whole code, and it can still claim. */
export const isUsable = ({ status, claimCode }: Code) => status === 'PENDING' && !claimCode.includes('…');

/** The content of its QR code. The pairing page shows a personal code to its owner only. */
export const qrText = ({ pairingUrl, claimCode }: Code) => pairingUrl ?? claimCode;
