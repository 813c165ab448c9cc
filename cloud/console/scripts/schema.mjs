// Writes src/api/schema.d.ts, the types of the API, from the description that the service gives of
// itself. It is not in the repository.
//
//   scripts/node scripts/schema.mjs [PROGRAM | URL]
//
// Without an argument, the variables HUB_CLOUD (a program) and HUB_CLOUD_URL (a running service) say
// where the description comes from, else it is target/debug/hub-cloud.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import openapi, { astToString } from 'openapi-typescript';

const source = process.argv[2]
  ?? process.env.HUB_CLOUD
  ?? process.env.HUB_CLOUD_URL
  ?? new URL('../../../target/debug/hub-cloud', import.meta.url).pathname;

async function description() {
  if (!source.startsWith('http')) return execFileSync(source, ['openapi'], { encoding: 'utf8', maxBuffer: 64 << 20 });
  const answer = await fetch(new URL('/openapi.json', source));
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.text();
}

let text;
try {
  text = await description();
} catch (error) {
  console.error(`${source} does not describe the API: ${error.message}`);
  console.error('build the service (cargo build -p hub-cloud), or name one with HUB_CLOUD=PROGRAM or HUB_CLOUD_URL=URL');
  process.exit(1);
}
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
writeFileSync(new URL('../src/api/schema.d.ts', import.meta.url), astToString(await openapi(document)));
