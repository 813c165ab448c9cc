//! The possible parts of a bundle: objects of the tenant, in short lists.

import { api, data, listed, type Schemas } from '../../api/client';

export type Apps = Schemas['BundleAppResponse'][];
export type Models = Schemas['BundleDeviceResponse'][];

/** A part as it is edited: one row each. */
export interface Row {
  key: number;
  uuid: string;
  /** The release of an app: `channel` and its name, or a release. */
  channel: string;
  releaseUuid: string;
  /** The version of a device model. */
  quantity: number | null;
}

export interface Choice {
  uuid: string;
  name: string;
}

const AT_ONCE = 100;

/** All pages of a list of choices; at most a thousand of them. */
async function all<T>(load: (page: number) => Promise<{ items: T[]; total: number }>): Promise<T[]> {
  const found: T[] = [];
  for (let page = 1; page <= 10; page++) {
    const { items, total } = await load(page);
    found.push(...items);
    if (found.length >= total || items.length === 0) break;
  }
  return found;
}

export async function ownApps(signal: AbortSignal): Promise<Choice[]> {
  const apps = await all((page) => listed(api.GET('/tenant/apps', { params: { query: { page, size: AT_ONCE } }, signal })));
  return apps.map(({ appUuid, name }) => ({ uuid: appUuid, name }));
}

export async function ownModels(signal: AbortSignal): Promise<Choice[]> {
  const models = await all((page) => listed(api.GET('/tenant/device-catalog', { params: { query: { page, size: AT_ONCE } }, signal })));
  return models.map(({ deviceUuid, name }) => ({ uuid: deviceUuid, name }));
}

export async function ownPipelines(signal: AbortSignal): Promise<Choice[]> {
  const pipelines = await data(api.GET('/tenant/data-pipelines', { signal }));
  return pipelines.map(({ pipelineUuid, name }) => ({ uuid: pipelineUuid, name }));
}

/** The READY releases of an app. */
export async function releasesOf(appUuid: string, signal: AbortSignal) {
  const params = { path: { appUuid }, query: { size: AT_ONCE } };
  return (await listed(api.GET('/tenant/apps/{appUuid}/releases', { params, signal }))).items.filter(({ status }) => status === 'READY');
}
