//! The telemetry of a hub, as far back as is asked for.

import { api, listed } from '../../api/client';
import { resource, type Resource } from '../../api/resource.svelte';
import { readReport, type Report } from './telemetry';

/** A hub reports once a minute. */
const MOST_PAGES = 15;

/**
 * Reports of so many hours, oldest first. A hub that is out of contact is shown as it was then: the
 * hours end with its last report.
 */
export function loadedReports(hubUuid: () => string, hours: () => number, lastAt: () => string | null): Resource<Report[]> {
  return resource(async (signal) => {
    const [hub, span, last] = [hubUuid(), hours(), lastAt()];
    const end = last ? Date.parse(last) + 1000 : Date.now();
    const from = new Date(end - span * 3_600_000).toISOString();
    const reports: Report[] = [];
    for (let page = 1; page <= MOST_PAGES; page++) {
      const query = { from, page, size: 100 };
      const answer = api.GET('/tenant/hubs/{hubUuid}/telemetry', { params: { path: { hubUuid: hub }, query }, signal });
      const { items, total } = await listed(answer);
      reports.push(...items.map(readReport));
      if (items.length < 100 || reports.length >= total) break;
    }
    return reports.sort((one, other) => one.at - other.at);
  });
}
