//! Companies and services, of which advertisements and routes have identifiers alone, by their names.

import { api, data, type Schemas } from './api/client';

type Names = Schemas['AssignedNames'];
export type Kind = keyof Names;

class Known {
  names = $state.raw<Names>();
}
const known = new Known();
let asked: Promise<Names> | undefined;

/** All names. Reads them once; after a failure, anew. */
export function assignedNames(): Promise<Names> {
  asked ??= data(api.GET('/tenant/ble/names')).then(
    (names) => (known.names = names),
    (error: unknown) => {
      asked = undefined;
      throw error;
    },
  );
  return asked;
}

/** `Apple (004c)`; the identifier alone while its name is not known. */
export function assignedLabel(kind: Kind, id: string): string {
  if (!known.names) void assignedNames().catch(() => {});
  const name = known.names?.[kind][id];
  return name ? `${name} (${id})` : id;
}
