//! Buckets of values as charts.

import type { Schemas } from '../../api/client';
import type { Series } from '../../parts/Chart.svelte';
import { byInterest } from './names';

export type Bucket = Schemas['SensorBucketResponse'];

export const quantitiesOf = (list: Bucket[]) => byInterest([...new Set(list.map(({ quantity }) => quantity))]);

interface Drawn {
  times: number[];
  series: Series[];
  /** Buckets of texts and booleans, which have no mean: newest first, where the value changed. */
  others: Bucket[];
}

export function chartOf(list: Bucket[], quantity: string): Drawn {
  const all = list.filter((bucket) => bucket.quantity === quantity);
  const numbers = all.filter(({ mean }) => mean != null);
  const others = all.filter((bucket, index) => bucket.mean == null && bucket.last !== all[index - 1]?.last).reverse();
  const times: number[] = [];
  const mean: (number | null)[] = [];
  const min: (number | null)[] = [];
  const max: (number | null)[] = [];
  const starts = numbers.map(({ from }) => Date.parse(from) / 1000);
  const gaps = starts.slice(1).map((at, index) => at - (starts[index] ?? at));
  const usual = [...gaps].sort((one, other) => one - other)[Math.floor(gaps.length / 2)] ?? 0;
  for (const [index, bucket] of numbers.entries()) {
    const at = starts[index] ?? 0;
    const before = starts[index - 1];
    // No line across a time in which nothing came, by the measure of how often something does.
    if (before !== undefined && at - before > 3 * usual) {
      times.push((before + at) / 2);
      for (const values of [mean, min, max]) values.push(null);
    }
    times.push(at);
    mean.push(bucket.mean ?? null);
    min.push(bucket.min ?? null);
    max.push(bucket.max ?? null);
  }
  const series = [{ label: 'mean', unit: numbers[0]?.unit ?? undefined, values: mean, spread: { min, max } }];
  return { times, series, others };
}
