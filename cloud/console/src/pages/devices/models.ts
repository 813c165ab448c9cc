//! The models of the tenant and those of the library.

import { api, data } from '../../api/client';
import { allModels, wholeLibrary, type LibraryModel, type Model } from '../catalog/models';

export type { Model };

const byName = <T extends { name: string }>(list: T[]) => list.sort((one, other) => one.name.localeCompare(other.name));

export const loadModels = async (signal: AbortSignal): Promise<Model[]> => byName(await allModels(signal));

export const loadTemplates = async (signal: AbortSignal): Promise<LibraryModel[]> => byName(await wholeLibrary(signal));

/** True if devices of the model may encrypt what they send. */
export async function mayBeEncrypted(model: { deviceUuid?: string; template?: string }, signal: AbortSignal): Promise<boolean> {
  const { deviceUuid, template } = model;
  let read: unknown = null;
  if (deviceUuid) read = await data(api.GET('/tenant/device-protocols/devices/{deviceUuid}', { params: { path: { deviceUuid } }, signal }));
  const [brand, key] = (template ?? '').split('/');
  if (brand && key) read = (await data(api.GET('/public/device-library/{brand}/{key}', { params: { path: { brand, key } }, signal }))).protocol;
  return /"(decrypt|mibeacon|bthome)"/.test(JSON.stringify(read));
}
