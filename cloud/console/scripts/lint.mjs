// Fails for what the content security policy of the console forbids, or what would make markup of
// data: svelte-check knows neither.
import { readFileSync, readdirSync } from 'node:fs';

const root = new URL('../src/', import.meta.url);
const FORBIDDEN = [
  [/\{@html\b/, 'markup of data: write text'],
  [/\sstyle="/, 'a style attribute: use a class or a style: directive'],
  [/\bsvelte-ignore\b/, 'a silenced warning: mend it'],
  [/\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML/, 'markup of data: write text'],
  [/\beval\(|new Function\(/, 'code made of text'],
];
let failures = 0;
for (const name of readdirSync(root, { recursive: true })) {
  if (!/\.(svelte|ts)$/.test(name)) continue;
  readFileSync(new URL(name, root), 'utf8').split('\n').forEach((line, index) => {
    for (const [pattern, reason] of FORBIDDEN) {
      if (!pattern.test(line)) continue;
      console.error(`src/${name}:${index + 1}: ${reason}`);
      failures += 1;
    }
  });
}
process.exitCode = failures === 0 ? 0 : 1;
