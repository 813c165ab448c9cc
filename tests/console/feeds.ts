//! Feeds of advisories, brought in as the operator of a service does.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HOSTILE, type Service } from './harness';

export const SEVERE = 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H';
export const SLIGHT = 'CVSS:3.1/AV:L/AC:H/PR:H/UI:R/S:U/C:L/I:N/A:N';

/** A record of OSV: versions of a package of Debian 12, or of crates.io, before `fixed` are affected, or all. */
export const record = (cve: string, name: string, score: string, fixed?: string, ecosystem: 'Debian:12' | 'crates.io' = 'Debian:12') => ({
  id: `${ecosystem === 'crates.io' ? 'RUSTSEC' : 'DEBIAN'}-${cve}`,
  upstream: [cve],
  summary: `Something is wrong with ${name} ${HOSTILE}`,
  modified: '2026-01-02T00:00:00Z',
  published: '2026-01-01T00:00:00Z',
  severity: [{ type: 'CVSS_V3', score }],
  affected: [{ package: { ecosystem, name }, ranges: [{ type: ecosystem === 'crates.io' ? 'SEMVER' : 'ECOSYSTEM', events: [{ introduced: '0' }, ...(fixed ? [{ fixed }] : [])] }] }],
});

/** The catalog of what is known to be exploited. */
const catalog = (cve: string) => ({
  title: 'CISA Catalog of Known Exploited Vulnerabilities',
  catalogVersion: '2026.01.05',
  dateReleased: '2026-01-05T12:00:00.000Z',
  count: 1,
  vulnerabilities: [
    {
      cveID: cve, vendorProject: 'v', product: 'p', vulnerabilityName: 'n', dateAdded: '2026-01-05', shortDescription: 'd', requiredAction: 'a',
      dueDate: '2026-01-26', knownRansomwareCampaignUse: 'Known',
    },
  ],
});

/** Brings in records of OSV. */
export function bringIn(service: Service, name: string, files: object[]) {
  const folder = join(service.data, name);
  mkdirSync(folder);
  for (const [index, file] of files.entries()) writeFileSync(join(folder, `${index}.json`), JSON.stringify(file));
  return service.run(['vulnerabilities', 'import', '--data-dir', service.data, folder]);
}
export function bringInCatalog(service: Service, cve: string) {
  const file = join(service.data, 'known_exploited_vulnerabilities.json');
  writeFileSync(file, JSON.stringify(catalog(cve)));
  return service.run(['vulnerabilities', 'import', '--data-dir', service.data, file]);
}
