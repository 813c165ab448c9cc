//! What brings the fix of a vulnerability: releases of apps and of the agent, and the rollouts that run.

import { api, content, listed, type Schemas } from '../../api/client';
import { ownApps, releasesOf } from '../bundles/parts';
import type { Policy, Rollout } from '../rollouts/policies';
import { compareVersions, highest } from './versions';
import type { AffectedPackage } from './words';

/** The ecosystem of the tenant's own apps, of which own advisories are. */
export const APPS = 'APP';
/** The ecosystem of the components of the agent. */
const CRATES = 'crates.io';
const AT_ONCE = 100;

/** Packages of the machine: they come with its image, or by its package manager. */
export const isOfSystem = ({ ecosystem }: AffectedPackage) => ecosystem.startsWith('Debian');
export const isComponent = (one: AffectedPackage) => one.ecosystem !== APPS && !isOfSystem(one);

/** An app that an own advisory is about, and its release that has the fix. */
export interface AppFix {
  appUuid: string;
  name: string;
  fixedIn: string;
  /** The newest that is ready; none if there is none yet. */
  version?: string;
  /** That version, by architecture. */
  releases: Schemas['AppReleaseResponse'][];
}

const isFrom = (version: string, fixedIn: string) => (compareVersions(version, fixedIn) ?? -1) >= 0;

export async function appFixes(packages: AffectedPackage[], signal: AbortSignal): Promise<AppFix[]> {
  const wanted = new Map<string, string>();
  for (const { ecosystem, name, fixedIn } of packages) {
    if (ecosystem !== APPS || !fixedIn) continue;
    const before = wanted.get(name);
    if (!before || !isFrom(before, fixedIn)) wanted.set(name, fixedIn);
  }
  const apps = wanted.size ? await ownApps(signal) : [];
  const found = [...wanted].map(async ([name, fixedIn]): Promise<AppFix[]> => {
    const app = apps.find((one) => one.name === name);
    if (!app) return [];
    const fixed = (await releasesOf(app.uuid, signal)).filter(({ version }) => isFrom(version, fixedIn));
    const version = highest(fixed)?.version;
    return [{ appUuid: app.uuid, name, fixedIn, version, releases: fixed.filter((one) => one.version === version) }];
  });
  return (await Promise.all(found)).flat();
}

export interface AgentFix {
  release: Schemas['AgentReleaseResponse'];
  /** Whether it fixes the components, as its bill of materials says; null if it says nothing of them. */
  fixes: boolean | null;
}

/** Name and version of the components in a document of CycloneDX or SPDX. */
function componentsIn(document: unknown): { name: string; version: string }[] {
  const { components, packages } = (document ?? {}) as { components?: unknown; packages?: unknown };
  const list = Array.isArray(components) ? components : Array.isArray(packages) ? packages : [];
  return list.flatMap((one: unknown) => {
    const { name, version, versionInfo } = (one ?? {}) as Record<string, unknown>;
    const its = version ?? versionInfo;
    return typeof name === 'string' && typeof its === 'string' ? [{ name, version: its }] : [];
  });
}

async function fixesComponents(release: AgentFix['release'], packages: AffectedPackage[], signal: AbortSignal): Promise<boolean | null> {
  const crates = packages.filter(({ ecosystem }) => ecosystem === CRATES);
  if (!crates.length || !release.documents.some(({ document, uploadedAt }) => document === 'sbom' && uploadedAt)) return null;
  const path = { releaseUuid: release.releaseUuid, document: 'sbom' as const };
  const has = componentsIn(await content<unknown>(api.GET('/tenant/agent-releases/{releaseUuid}/documents/{document}', { params: { path }, signal })));
  const judged = crates.flatMap(({ name, fixedIn }) => has.filter((one) => one.name === name).map(({ version }) => isFrom(version, fixedIn ?? '')));
  return judged.length ? judged.every(Boolean) : null;
}

/** The highest active release of the agent, of the stable channel if it has one. */
export async function agentFix(packages: AffectedPackage[], signal: AbortSignal): Promise<AgentFix | null> {
  const query = { activeOnly: true, size: AT_ONCE };
  const { items } = await listed(api.GET('/tenant/agent-releases', { params: { query }, signal }));
  const agents = items.filter(({ category, status }) => category === 'HUB_AGENT' && status === 'READY');
  const release = highest(agents.filter(({ channel }) => channel === 'stable')) ?? highest(agents);
  return release ? { release, fixes: await fixesComponents(release, packages, signal).catch(() => null) } : null;
}

/** The rollouts that run or were halted, and the policy of all hubs of the tenant. */
export async function rollouts(signal: AbortSignal): Promise<{ running: { policy: Policy; rollout: Rollout }[]; own?: Policy }> {
  const { items } = await listed(api.GET('/tenant/agent-update-policies', { params: { query: { size: AT_ONCE } }, signal }));
  const running = items.flatMap((policy) => policy.rollouts.filter(({ state }) => state === 'RUNNING' || state === 'HALTED').map((rollout) => ({ policy, rollout })));
  return { running, own: items.find(({ scope }) => scope === 'UNIT') };
}
