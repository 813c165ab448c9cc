//! The JSON documents of a model: versions, forms, manuals and actions.

import { api, done, listed, type Schemas } from '../../api/client';
import { everything, PAGE } from '../../api/rows.svelte';
import type { IconName } from '../../parts/icons';

export interface DocumentKind<T> {
  one: string;
  plural: string;
  icon: IconName;
  /** The purpose of these documents. */
  about: string;
  columns: { label: string; of: (item: T) => string }[];
  idOf: (item: T) => string;
  nameOf: (item: T) => string;
  changedAt: (item: T) => string;
  /** The template of a new one. */
  starter: unknown;
  /** The editable part of one. */
  documentOf: (item: T) => Record<string, unknown>;
  list: (signal: AbortSignal) => Promise<T[]>;
  create: (document: object) => Promise<void>;
  update: (item: T, document: object) => Promise<void>;
  remove: (item: T) => Promise<void>;
  /** The effects of deleting one. */
  effects: string[];
}

type Version = Schemas['DeviceVersionResponse'];
type Form = Schemas['DeviceUiResponse'];
type Manual = Schemas['DeviceManualResponse'];
type Action = Schemas['ActionDefinitionResponse'];

function versions(deviceUuid: string): DocumentKind<Version> {
  return {
    one: 'version',
    plural: 'versions',
    icon: 'rollout',
    about: 'A device can have a version of its model, with its own decoder. Otherwise the newest decoder of the model is used.',
    columns: [
      { label: 'Version', of: ({ version }) => version },
      { label: 'Hardware', of: ({ hardwareVersion }) => hardwareVersion || '–' },
      { label: 'Firmware', of: ({ firmwareVersion }) => firmwareVersion || '–' },
      { label: 'Decoder', of: ({ deviceProtocolId }) => (deviceProtocolId ? String(deviceProtocolId) : 'the newest') },
      { label: 'On sale', of: ({ released }) => (released ? 'yes' : 'no') },
    ],
    idOf: ({ deviceVersionUuid }) => deviceVersionUuid,
    nameOf: ({ version }) => `version ${version}`,
    changedAt: ({ updatedAt }) => updatedAt,
    starter: { version: '1.0', hardwareVersion: 'A', firmwareVersion: '1.0.0', released: false, notes: '' },
    documentOf: ({ version, hardwareVersion, firmwareVersion, deviceProtocolId, released, notes }) => ({
      version,
      hardwareVersion: hardwareVersion ?? '',
      firmwareVersion: firmwareVersion ?? '',
      deviceProtocolId: deviceProtocolId ?? 0,
      released,
      notes: notes ?? '',
    }),
    list: (signal) =>
      everything((page, signal) => listed(api.GET('/tenant/device-versions', { params: { query: { deviceUuid, page, size: PAGE } }, signal })), signal),
    create: (document) => done(api.POST('/tenant/device-versions', { body: { ...(document as Schemas['CreateDeviceVersionRequest']), deviceUuid } })),
    update: ({ deviceVersionUuid }, document) => done(api.PATCH('/tenant/device-versions/{deviceVersionUuid}', { params: { path: { deviceVersionUuid } }, body: document })),
    remove: ({ deviceVersionUuid }) => done(api.DELETE('/tenant/device-versions/{deviceVersionUuid}', { params: { path: { deviceVersionUuid } } })),
    effects: ['A version with devices cannot be deleted.', 'This cannot be undone.'],
  };
}

function forms(deviceUuid: string): DocumentKind<Form> {
  return {
    one: 'form',
    plural: 'forms',
    icon: 'audit',
    about: 'Apps show forms to people who set up or control a device: steps with fields, and where the answers are sent.',
    columns: [
      { label: 'Form', of: ({ name }) => name },
      { label: 'For', of: ({ kind }) => kind.toLowerCase() },
      { label: 'Language', of: ({ locale }) => locale || 'any' },
      { label: 'Revision', of: ({ revision }) => String(revision) },
    ],
    idOf: ({ deviceUiId }) => String(deviceUiId),
    nameOf: ({ name }) => name,
    changedAt: ({ updatedAt }) => updatedAt,
    starter: {
      kind: 'SETUP',
      name: 'Set up',
      locale: 'en',
      configJson: {
        steps: [{ id: 'place', title: 'Where is it?', fields: { type: 'object', properties: { room: { type: 'string', title: 'Room' } }, required: ['room'] } }],
      },
    },
    documentOf: ({ kind, name, locale, configJson }) => ({ kind, name, locale: locale ?? '', configJson }),
    list: (signal) =>
      everything((page, signal) => listed(api.GET('/tenant/device-ui-schemas', { params: { query: { deviceUuid, page, size: PAGE } }, signal })), signal),
    create: (document) => done(api.POST('/tenant/device-ui-schemas', { body: { ...(document as Schemas['CreateDeviceUiRequest']), deviceUuid } })),
    update: ({ deviceUiId }, document) => done(api.PATCH('/tenant/device-ui-schemas/{deviceUiId}', { params: { path: { deviceUiId } }, body: document })),
    remove: ({ deviceUiId }) => done(api.DELETE('/tenant/device-ui-schemas/{deviceUiId}', { params: { path: { deviceUiId } } })),
    effects: ['Apps no longer show it, including to users of your partners.', 'This cannot be undone.'],
  };
}

function manuals(deviceUuid: string): DocumentKind<Manual> {
  return {
    one: 'manual',
    plural: 'manuals',
    icon: 'info',
    about: 'A manual is a Markdown text (MARKDOWN, with “content”) or a link (LINK, with “url”).',
    columns: [
      { label: 'Manual', of: ({ title }) => title },
      { label: 'Format', of: ({ format }) => format.toLowerCase() },
      { label: 'Language', of: ({ locale }) => locale || 'any' },
      { label: 'Text', of: ({ content, url }) => url ?? `${(content ?? '').slice(0, 60)}${(content ?? '').length > 60 ? '…' : ''}` },
    ],
    idOf: ({ deviceManualId }) => String(deviceManualId),
    nameOf: ({ title }) => title,
    changedAt: ({ updatedAt }) => updatedAt,
    starter: { title: 'Manual', locale: 'en', format: 'MARKDOWN', content: '# Before you begin' },
    documentOf: ({ title, locale, format, content, url }) => ({ title, locale: locale ?? '', format, ...(format === 'LINK' ? { url } : { content }) }),
    list: (signal) => everything((page, signal) => listed(api.GET('/tenant/manuals', { params: { query: { deviceUuid, page, size: PAGE } }, signal })), signal),
    create: (document) => done(api.POST('/tenant/manuals', { body: { ...(document as Schemas['CreateDeviceManualRequest']), deviceUuid } })),
    update: ({ deviceManualId }, document) => done(api.PATCH('/tenant/manuals/{deviceManualId}', { params: { path: { deviceManualId } }, body: document })),
    remove: ({ deviceManualId }) => done(api.DELETE('/tenant/manuals/{deviceManualId}', { params: { path: { deviceManualId } } })),
    effects: ['Apps no longer show it.', 'This cannot be undone.'],
  };
}

function actions(deviceUuid: string): DocumentKind<Action> {
  return {
    one: 'action',
    plural: 'actions',
    icon: 'play',
    about: 'An action is a call to an external endpoint, or GATT steps that the nearest hub performs on the device.',
    columns: [
      { label: 'Action', of: ({ name }) => name },
      { label: 'Id', of: ({ actionId }) => actionId },
      { label: 'By', of: ({ transport }) => transport.kind },
      { label: 'For', of: (action) => (action.deviceUuid ? 'this model' : 'every device of the tenant') },
      { label: 'Confirmation', of: ({ confirm }) => (confirm ? 'yes' : 'no') },
    ],
    idOf: ({ actionId }) => actionId,
    nameOf: ({ name }) => name,
    changedAt: ({ updatedAt }) => updatedAt,
    starter: {
      actionId: 'dim',
      name: 'Dim',
      description: '',
      confirm: false,
      parameters: { type: 'object', properties: { level: { type: 'integer', minimum: 0, maximum: 100 } }, required: ['level'] },
      transport: {
        kind: 'GATT',
        steps: [{ service: '180f', characteristic: '2a19', operation: 'WRITE', value: [{ hex: '01' }, { parameter: 'level', type: 'u8' }] }],
      },
    },
    documentOf: ({ name, description, confirm, parameters, transport }) => ({ name, description: description ?? '', confirm, parameters: parameters ?? {}, transport }),
    list: async (signal) => {
      const all = await everything((page, signal) => listed(api.GET('/tenant/action-definitions', { params: { query: { page, size: PAGE } }, signal })), signal);
      return all.filter((action) => !action.deviceUuid || action.deviceUuid === deviceUuid);
    },
    create: (document) => done(api.POST('/tenant/action-definitions', { body: { deviceUuid, ...(document as Schemas['ActionDefinitionCreateRequest']) } })),
    update: ({ actionId }, document) => done(api.PATCH('/tenant/action-definitions/{actionId}', { params: { path: { actionId } }, body: document })),
    remove: ({ actionId }) => done(api.DELETE('/tenant/action-definitions/{actionId}', { params: { path: { actionId } } })),
    effects: ['It can no longer be run. Commands in progress continue.', 'This cannot be undone.'],
  };
}

/** The kinds by their tab. */
export const kinds = (deviceUuid: string): Record<string, DocumentKind<any>> => ({
  versions: versions(deviceUuid),
  forms: forms(deviceUuid),
  manuals: manuals(deviceUuid),
  actions: actions(deviceUuid),
});
