//! The order of versions as semver has it, also of shorter ones such as `1.2`.

interface Parsed {
  numbers: number[];
  before: string[];
}

function parse(version: string): Parsed | null {
  const found = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+.*)?$/.exec(version.trim());
  if (!found) return null;
  return { numbers: [1, 2, 3].map((part) => Number(found[part] ?? 0)), before: found[4]?.split('.') ?? [] };
}

export const isPrerelease = (version: string) => (parse(version)?.before.length ?? 0) > 0;

/** Negative if `one` is before `other`; null if they cannot be ordered. */
export function compareVersions(one: string, other: string): number | null {
  const [left, right] = [parse(one), parse(other)];
  if (!left || !right) return null;
  for (const [at, number] of left.numbers.entries()) {
    if (number !== right.numbers[at]) return number - (right.numbers[at] ?? 0);
  }
  // What comes before a release has further parts.
  if (!left.before.length || !right.before.length) return right.before.length - left.before.length;
  for (let at = 0; at < Math.max(left.before.length, right.before.length); at++) {
    const [part, against] = [left.before[at], right.before[at]];
    if (part === undefined || against === undefined) return part === undefined ? -1 : 1;
    if (part === against) continue;
    const [isNumber, isOther] = [/^\d+$/.test(part), /^\d+$/.test(against)];
    if (isNumber && isOther) return Number(part) - Number(against);
    if (isNumber !== isOther) return isNumber ? -1 : 1;
    return part < against ? -1 : 1;
  }
  return 0;
}

/** The highest, of those that are no prerelease where there are others. */
export function highest<T extends { version: string }>(all: T[]): T | undefined {
  const full = all.filter(({ version }) => !isPrerelease(version));
  return [...(full.length ? full : all)].sort((one, other) => compareVersions(other.version, one.version) ?? 0)[0];
}
