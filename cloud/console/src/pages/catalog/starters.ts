//! Templates of new decoders.

import type { Kind } from './trial';

export const STARTERS: Record<Exclude<Kind, 'BUILTIN'>, string> = {
  DECLARATIVE: `{
  "match": {"manufacturer": "0499", "length": {"min": 3}},
  "read": [
    {"quantity": "temperature", "at": 0, "type": "i16", "scale": 0.01},
    {"quantity": "battery", "at": 2}
  ]
}`,
  SCRIPT: `function decode(frame) {
  const payload = frame.manufacturerData.find((one) => one.companyId === 0x0499);
  if (!payload || payload.data.length < 3) return null;
  const view = new DataView(payload.data.buffer);
  return { temperature: view.getInt16(0, true) / 100, battery: view.getUint8(2) };
}
`,
};
