//! The fix of a component leads to the rollout of the agent that brings it.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { bringIn, record, SEVERE } from './feeds';
import { expect, HOSTILE, inspect, press, runs, safe, signIn, test } from './harness';
import { Publisher } from './publisher';

// A service of its own: releases of the agent are offered to all tenants.
test.use({ settings: ['--hubs-per-tenant', '100'] });
const CVE = 'CVE-2026-2001';
const materials = (version: string) => ({
  bomFormat: 'CycloneDX', specVersion: '1.6', version: 1,
  components: [{ type: 'library', name: 'serde', version, purl: `pkg:cargo/serde@${version}` }],
});

test('a fixed component leads to a rollout', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const admin = await service.admin();
  const publisher = new Publisher(service, ['agent', 'app']);
  const app = await owner.call('POST', '/tenant/apps', { name: 'logger' });
  const sbom = join(publisher.files, 'sbom.json');
  writeFileSync(sbom, JSON.stringify(materials('1.0.1')));
  const release = await publisher.publish(owner, app, '1.0.0', 1, ['--sbom', sbom]);
  await owner.call('PUT', `/tenant/apps/${app.appUuid}/releases/${release}/documents/sbom`, materials('1.0.1'));
  const [hub] = await owner.claim([HOSTILE]);
  await runs(hub, app.appUuid, release, '1.0.0');
  bringIn(service, 'crates', [record(CVE, 'serde', SEVERE, '1.0.2', 'crates.io')]);
  await expect.poll(async () => (await owner.call('GET', '/tenant/vulnerabilities')).length, { message: 'the component is matched' }).toBe(1);
  await page.goto(owner.page(`/vulnerabilities/${CVE}`));
  await signIn(page, owner);
  await expect(page.getByText('Components of apps come with a new release')).toBeVisible();
  await expect(page.getByRole('link', { name: /^Roll out the agent/ })).toHaveCount(0);
  const releases = page.getByRole('region', { name: 'Releases with an affected component' }).locator('tbody tr');
  await expect(releases).toHaveText([/logger\s*1\.0\.0/]);
  await releases.getByRole('link', { name: '1.0.0' }).press('Enter');
  await expect(page).toHaveURL(new RegExp(`/apps/${app.appUuid}/releases/${release}$`));
  await page.goBack();
  await expect(releases).toHaveCount(1);

  await publisher.publishAgent(admin, '1.5.0', 'beta', materials('1.0.1'));
  await page.reload();
  await expect(page.getByText('The newest release of the agent, 1.5.0, still has the affected component.')).toBeVisible();
  await publisher.publishAgent(admin, '1.6.0', 'beta', materials('1.0.2'), 2);
  await page.reload();
  await expect(page.getByText('The agent 1.6.0 has the fixed component')).toBeVisible();
  await inspect(page, 'a vulnerability that a release of the agent fixes');
  await press(page, 'Roll out the agent 1.6.0', 'link');
  await expect(page.getByRole('dialog')).toContainText('New update policy');
  await expect(page.getByLabel('Channel')).toHaveValue('beta');
  await page.keyboard.press('Escape');
  await expect(page, 'what is asked for is asked once').toHaveURL(/\/rollouts$/);
  await page.goBack();
  await press(page, 'Roll out the agent 1.6.0', 'link');
  await page.getByLabel('Channel').press('Enter');
  await expect(page).toHaveURL(/\/rollouts\/[0-9a-f-]+$/);

  // A hub that stays at a version goes to that of the release.
  await owner.call('PUT', '/tenant/agent-update-policies', { scope: 'UNIT', channel: 'beta', version: '1.5.0', autoUpdate: true });
  await page.goto(owner.page(`/vulnerabilities/${CVE}`));
  await press(page, 'Roll out the agent 1.6.0', 'link');
  await expect(page.getByRole('dialog')).toContainText('Change the policy');
  await expect(page.getByLabel('Version')).toHaveValue('1.6.0');
  await page.getByLabel('Version').press('Enter');
  await expect(page.getByText('The policy was saved.')).toBeVisible();
  await expect(page).toHaveURL(/\/rollouts\/[0-9a-f-]+$/);

  // Once it runs, the vulnerability leads to the rollout itself.
  const { claimCode } = await owner.call('POST', '/tenant/hubs/claim-codes', {});
  const claim = { claimCode, deviceInstanceId: 'x86', hubIdentifier: 'Cellar', agentVersion: '1.4.0', os: { name: 'debian', version: '12', arch: 'x86_64' } };
  await service.call('POST', '/v1/hubs/claim', claim);
  const isRunning = async () => {
    const policies: any[] = await owner.call('GET', '/tenant/agent-update-policies');
    return policies.some(({ rollouts }) => rollouts.some(({ version, state }: { version: string; state: string }) => version === '1.6.0' && state === 'RUNNING'));
  };
  await expect.poll(isRunning, { message: 'the rollout begins' }).toBe(true);
  await page.goto(owner.page(`/vulnerabilities/${CVE}`));
  await press(page, 'Rollout of 1.6.0', 'link');
  await expect(page).toHaveURL(/\/rollouts\/[0-9a-f-]+$/);
  await expect(page.getByRole('region', { name: 'Rollouts' })).toContainText('1.6.0');
  publisher.remove();
  await safe(page, 'what fixes a component');
});
