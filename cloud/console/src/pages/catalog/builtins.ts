//! The built-in decoders of the service.

import { choices } from '../../api/choices';

/** Their names. */
export const builtinDecoders = () => choices('DeviceProtocolTestRequest', 'definition', 'x-decoders');
