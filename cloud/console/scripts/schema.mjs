// Writes src/api/schema.d.ts, the types of the API, from the description that the service gives of
// itself. With --check it writes nothing and fails when the file is stale.
//
//   scripts/node scripts/schema.mjs [--check] [PROGRAM | URL]
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';

const check = process.argv.includes('--check');
const source = process.argv.slice(2).find((argument) => argument !== '--check')
  ?? process.env.HUB_CLOUD
  ?? new URL('../../../target/debug/hub-cloud', import.meta.url).pathname;
const file = new URL('../src/api/schema.d.ts', import.meta.url);

const text = source.startsWith('http')
  ? await (await fetch(new URL('/openapi.json', source))).text()
  : execFileSync(source, ['openapi'], { encoding: 'utf8', maxBuffer: 64 << 20 });
const document = JSON.parse(text);
// The client adds this header to every request under a tenant.
for (const operations of Object.values(document.paths)) {
  for (const operation of Object.values(operations)) {
    operation.parameters = operation.parameters?.filter((parameter) => parameter.name !== 'X-Tenant-UUID');
  }
}
// Hubs and other systems call these, never the console.
for (const path of Object.keys(document.paths)) {
  if (/^\/(v1|webhook|dev|installer)\//.test(path)) delete document.paths[path];
}
const types = astToString(await openapi(document));
if (!check) {
  writeFileSync(file, types);
} else if (readFileSync(file, 'utf8') !== types) {
  console.error('src/api/schema.d.ts is stale: run `npm run schema -- PROGRAM`, and commit the result');
  process.exit(1);
}
