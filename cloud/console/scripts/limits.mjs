// Fails the build when the first page or any route has more script than it may, compressed, or when
// the service has no media type for a file.
import { extname } from 'node:path';
import { gzipSync } from 'node:zlib';

/** What the service has a media type for. */
const KINDS = ['.css', '.html', '.js', '.svg'];
const INITIAL_BYTES = 100 * 1024;
const ROUTE_BYTES = 60 * 1024;

const kib = (bytes) => `${(bytes / 1024).toFixed(1)} KiB`;

/** A plugin of Vite. */
export const limits = () => ({
  name: 'limits',
  apply: 'build',
  writeBundle(_, bundle) {
    const files = Object.values(bundle);
    const packed = (file) => gzipSync(file.code ?? file.source, { level: 9 }).length;
    const sizes = new Map(files.map((file) => [file.fileName, packed(file)]));
    const scripts = (name, found = new Set()) => {
      if (found.has(name)) return found;
      found.add(name);
      for (const imported of bundle[name].imports) scripts(imported, found);
      return found;
    };
    const bytes = (names) => names.reduce((sum, name) => sum + sizes.get(name), 0);

    const initial = scripts(files.find((file) => file.isEntry).fileName);
    const initialBytes = bytes([...initial]);
    const routes = files
      .filter((file) => file.isDynamicEntry)
      .map(({ fileName }) => [bytes([...scripts(fileName)].filter((name) => !initial.has(name))), fileName])
      .sort((one, other) => other[0] - one[0]);
    console.log(`${files.length} files, ${kib(bytes([...sizes.keys()]))} compressed; first script ${kib(initialBytes)}`);
    for (const [size, name] of routes.slice(0, 5)) console.log(`  ${kib(size)} more: ${name}`);

    const faults = [
      ...(initialBytes > INITIAL_BYTES ? [`the first page needs ${kib(initialBytes)} of script, not ${kib(INITIAL_BYTES)}`] : []),
      ...routes.filter(([size]) => size > ROUTE_BYTES).map(([size, name]) => `${name} needs ${kib(size)} more, not ${kib(ROUTE_BYTES)}`),
      ...files.filter(({ fileName }) => !KINDS.includes(extname(fileName))).map(({ fileName }) => `${fileName}: the service has no media type for it`),
    ];
    if (faults.length > 0) this.error(faults.join('\n'));
  },
});
