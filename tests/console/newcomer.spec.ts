//! The first five minutes: the demo is started as README says, its first line is opened in a browser,
//! and a value is seen. With HUB_PICTURES=FOLDER a picture of each step is left there.

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, needs, PROGRAM, test } from './harness';

const FIRST_VALUE_MS = 10_000;
const folder = process.env.HUB_PICTURES;

test('a newcomer sees a first value', { tag: '@alone' }, async ({ page }) => {
  needs(existsSync(join(dirname(PROGRAM), 'hub-agent')), 'hub-agent beside hub-cloud');
  const parent = mkdtempSync(join(tmpdir(), 'hub-demo-'));
  const shot = async (name: string) => {
    if (folder) await page.screenshot({ path: join(resolve(import.meta.dirname, '../..', folder), `newcomer-${name}.png`) });
  };
  const demo = spawn(PROGRAM, ['demo', '--data-dir', join(parent, 'demo'), '--listen', '127.0.0.1:0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const begun = Date.now();
  try {
    const link = await new Promise<string>((done, failed) => {
      createInterface({ input: demo.stdout }).once('line', (line) => done(/http\S+/.exec(line)?.[0] ?? line));
      demo.once('exit', (code) => failed(new Error(`the demo has ended with ${code}`)));
    });
    await page.goto(link);
    const tile = page.getByRole('listitem', { name: 'Cold store, temperature', exact: true });
    await expect(tile.getByText(/^-?\d+(\.\d+)? °C$/)).toBeVisible();
    const seen = Date.now() - begun;
    console.log(`first value after ${seen} ms`);
    await shot('first-value');
    expect(seen, 'milliseconds from the command to the first value').toBeLessThan(FIRST_VALUE_MS);

    // What is in it is found without being looked for.
    await expect(page.getByRole('heading', { name: 'Needs attention' })).toBeVisible();
    await page.getByRole('link', { name: 'Live', exact: true }).click();
    await expect(page.getByText('Office').first()).toBeVisible();
    await shot('live');
    await page.getByRole('link', { name: 'Floor plans', exact: true }).click();
    await page.getByRole('link', { name: 'Warehouse' }).click();
    await expect(page.locator('[data-hub]')).toHaveCount(3);
    await shot('floor-plan');
    await page.getByRole('link', { name: 'Pipelines', exact: true }).click();
    await expect(page.getByText('running').first()).toBeVisible();
    await shot('pipelines');
    await page.getByRole('link', { name: 'Overview', exact: true }).click();
    await expect(tile).toBeVisible();
    await expect(page.getByText('all online')).toBeVisible();
    await shot('overview');
    expect(await page.evaluate(() => document.body.innerText), 'nothing of it is a test vector').not.toMatch(/163\.8/);
  } finally {
    demo.kill('SIGINT');
    await new Promise((done) => (demo.exitCode === null ? demo.once('exit', done) : done(null)));
    rmSync(parent, { recursive: true, force: true });
  }
});
