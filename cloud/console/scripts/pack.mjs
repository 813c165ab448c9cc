// Makes dist/, which the service contains: each built file compressed, and files.rs, the list of
// them. Compresses in JavaScript, whose result is the same on every machine. Fails when the first
// page or any route is larger than its budget.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, extname, join, relative } from 'node:path';
import pako from 'pako';

const root = new URL('..', import.meta.url).pathname;
const [build, dist] = [join(root, 'build'), join(root, 'dist')];
/** What the service has a media type for. */
const KINDS = ['.css', '.html', '.js', '.svg'];
const INITIAL_BYTES = 100 * 1024;
const ROUTE_BYTES = 60 * 1024;

const files = readdirSync(build, { recursive: true })
  .filter((name) => name !== 'manifest.json' && statSync(join(build, name)).isFile())
  .sort();
rmSync(dist, { recursive: true, force: true });
const sizes = {};
let pageHash = '';
mkdirSync(dist, { recursive: true });
const rows = files.map((name) => {
  if (!KINDS.includes(extname(name))) throw new Error(`${name}: the service has no media type for it`);
  const packed = pako.gzip(readFileSync(join(build, name)), { level: 9, memLevel: 9 });
  // The operating system in the header, the one byte that says where it was made.
  packed[9] = 255;
  const file = `${basename(name)}.gz`;
  writeFileSync(join(dist, file), packed);
  sizes[name] = packed.length;
  if (name === 'index.html') pageHash = createHash('sha256').update(packed).digest('hex').slice(0, 16);
  const [path, bytes] = [JSON.stringify(name), `include_bytes!(${JSON.stringify(file)})`];
  // As rustfmt writes it.
  const line = `    (${path}, ${bytes}),`;
  return line.length <= 120 ? line : `    (\n        ${path},\n        ${bytes},\n    ),`;
});
writeFileSync(join(dist, 'files.rs'), `// Written by \`npm run build\`: the built files, compressed, by name. All names but that of the page
// contain a hash of the content.

pub(super) const PAGE_HASH: &str = "${pageHash}";

pub(super) static FILES: [(&str, &[u8]); ${rows.length}] = [
${rows.join('\n')}
];
`);

const manifest = JSON.parse(readFileSync(join(build, 'manifest.json'), 'utf8'));
function scripts(key, found = new Set()) {
  if (found.has(key)) return found;
  found.add(key);
  for (const imported of manifest[key].imports ?? []) scripts(imported, found);
  return found;
}
const bytes = (keys) => [...keys].reduce((sum, key) => sum + sizes[manifest[key].file], 0);
const kib = (count) => `${(count / 1024).toFixed(1)} KiB`;
const initial = scripts('index.html');
const worst = Object.keys(manifest)
  .filter((key) => manifest[key].isDynamicEntry)
  .map((key) => [bytes([...scripts(key)].filter((part) => !initial.has(part))), key])
  .sort((one, other) => other[0] - one[0]);
const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
console.log(`${relative(process.cwd(), dist) || '.'}: ${files.length} files, ${kib(total)}; first script ${kib(bytes(initial))}`);
for (const [size, key] of worst.slice(0, 5)) console.log(`  ${kib(size)} more: ${key}`);
const over = [
  ...(bytes(initial) > INITIAL_BYTES ? [`the first page needs ${kib(bytes(initial))} of script, not ${kib(INITIAL_BYTES)}`] : []),
  ...worst.filter(([size]) => size > ROUTE_BYTES).map(([size, key]) => `${key} needs ${kib(size)} more, not ${kib(ROUTE_BYTES)}`),
];
for (const line of over) console.error(line);
process.exitCode = over.length === 0 ? 0 : 1;
