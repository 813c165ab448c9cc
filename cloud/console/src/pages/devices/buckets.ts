//! Buckets of values as charts.

import type { Schemas } from '../../api/client';
import { baseOf, readableUnit } from '../../format';
import type { Series } from '../../parts/Chart.svelte';
import { byInterest, quantityName } from './names';

export type Bucket = Schemas['SensorBucketResponse'];

/** The quantities, without the numbers of probes. */
export const quantitiesOf = (list: Bucket[]) => byInterest([...new Set(list.map(({ quantity }) => baseOf(quantity)))]);

interface Drawn {
  times: number[];
  series: Series[];
  /** Buckets of texts and booleans, which have no mean: newest first, where the value changed. */
  others: Bucket[];
}

/** The times of buckets in seconds, and a time in each gap: no line across a time in which nothing came, by how often something does. */
function timesOf(buckets: Bucket[]): { at: number; bucket?: Bucket }[] {
  const points = buckets.map((bucket) => ({ at: Date.parse(bucket.from) / 1000, bucket }));
  const gaps = points.slice(1).map(({ at }, index) => at - (points[index]?.at ?? at));
  const usual = [...gaps].sort((one, other) => one - other)[Math.floor(gaps.length / 2)] ?? 0;
  return points.flatMap((point, index) => {
    const before = points[index - 1];
    return before && point.at - before.at > 3 * usual ? [{ at: (before.at + point.at) / 2 }, point] : [point];
  });
}

/** A quantity of a device; several probes are lines of one chart. */
export function chartOf(list: Bucket[], quantity: string): Drawn {
  const probes = byInterest([...new Set(list.map((bucket) => bucket.quantity).filter((one) => baseOf(one) === quantity))]);
  const of = (probe: string) => list.filter((bucket) => bucket.quantity === probe);
  const lines = probes.map((probe) => ({ probe, points: timesOf(of(probe).filter(({ mean }) => mean != null)) })).filter(({ points }) => points.length > 0);
  const others = probes
    .flatMap((probe) => of(probe).filter((bucket, index, all) => bucket.mean == null && bucket.last !== all[index - 1]?.last))
    .sort((one, other) => Date.parse(other.from) - Date.parse(one.from));
  const times = [...new Set(lines.flatMap(({ points }) => points.map(({ at }) => at)))].sort((one, other) => one - other);
  const size = Math.max(0, ...lines.flatMap(({ points }) => points.map(({ bucket }) => Math.abs(bucket?.max ?? 0))));
  const series = lines.map(({ probe, points }): Series => {
    const { by, unit } = readableUnit(size, points[0]?.bucket?.unit);
    const at = new Map(points.map((point) => [point.at, point.bucket]));
    // Of a time that only another probe has there is no value; of one within a gap there is none either, and the line ends.
    const values = (member: 'mean' | 'min' | 'max') =>
      times.map((time) => (at.has(time) ? ((value) => (value == null ? null : value / by))(at.get(time)?.[member]) : undefined));
    return { label: lines.length > 1 ? quantityName(probe) : 'mean', unit, values: values('mean'), spread: { min: values('min'), max: values('max') } };
  });
  return { times, series, others };
}
