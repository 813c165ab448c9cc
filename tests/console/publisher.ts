//! Releases that are signed with keys which a service trusts.

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type Person, PROGRAM, type Service } from './harness';

/** Runs the program. Only what reads its input gets one: a program that has ended without it makes writing fail. */
export const program = (argument: string[], input?: string) => execFileSync(PROGRAM, argument, { input, stdio: [input === undefined ? 'ignore' : 'pipe', 'ignore', 'pipe'] });

/** Keys that the service trusts, and what they sign. */
export class Publisher {
  readonly files = mkdtempSync(join(tmpdir(), 'hub-releases-'));

  constructor(service: Service, kinds: ('agent' | 'app')[]) {
    for (const kind of kinds) {
      program(['release', 'keygen', '--out', join(this.files, kind), '--no-password']);
      const trusted = join(service.data, 'release-keys', kind);
      mkdirSync(trusted, { recursive: true });
      copyFileSync(join(this.files, `${kind}.pub`), join(trusted, `${kind}.pub`));
    }
  }

  sign(kind: 'agent' | 'app', name: string, version: string, further: string[] = [], counter = 1): string {
    const file = join(this.files, `${name}-${version}`);
    writeFileSync(file, `${name} ${version}`);
    const what = ['--kind', kind, '--name', name, '--version', version, '--architecture', kind === 'app' ? 'any' : 'x86_64'];
    program(['release', 'sign', '--key', join(this.files, `${kind}.key`), ...what, '--counter', String(counter), ...further, file]);
    return file;
  }

  /** Publishes a release of an app with its file, and gives its id. */
  async publish(person: Person, app: { appUuid: string; name: string }, version: string, counter: number, further: string[] = []): Promise<string> {
    const config = join(this.files, 'app.toml');
    writeFileSync(config, 'entryPoint = "bin/run"\n');
    const file = this.sign('app', app.name, version, ['--app', config, ...further], counter);
    const [manifest, signature] = ['.manifest.json', '.manifest.json.minisig'].map((suffix) => readFileSync(file + suffix, 'utf8'));
    const { releaseUuid, uploadUrl } = await person.call('POST', `/tenant/apps/${app.appUuid}/releases`, { manifest, signature });
    const answer = await fetch(uploadUrl, { method: 'PUT', body: readFileSync(file) });
    expect(answer.ok, 'the file of the app is stored').toBe(true);
    return releaseUuid;
  }

  /** Publishes a release of the agent with its file and its bill of materials, as the platform does. */
  async publishAgent(admin: Person, version: string, channel: string, sbom: object, counter = 1): Promise<string> {
    const document = join(this.files, `agent-${version}.cdx.json`);
    writeFileSync(document, JSON.stringify(sbom));
    const file = this.sign('agent', 'hub-agent', version, ['--sbom', document], counter);
    const [manifest, signature] = ['.manifest.json', '.manifest.json.minisig'].map((suffix) => readFileSync(file + suffix, 'utf8'));
    const { releaseUuid, uploadUrl } = await admin.call('POST', '/platform/agent-releases', { channel, manifest, signature });
    const answer = await fetch(uploadUrl, { method: 'PUT', body: readFileSync(file) });
    expect(answer.ok, 'the file of the agent is stored').toBe(true);
    await admin.call('PUT', `/platform/agent-releases/${releaseUuid}/documents/sbom`, sbom);
    return releaseUuid;
  }

  remove() {
    rmSync(this.files, { recursive: true, force: true });
  }
}
