// Pairs hubs on the page, as people with a phone, a keyboard and a screen reader do.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { HOSTILE, PASSWORD, PATIENCE, browser, call, check, open, register, requested, stored, supplier, url } from './page.mjs';

const { owner, tenant, inTenant } = await supplier();
const person = await register();
const pairingCode = () => call('POST', '/app/hubs/pairing-codes', { supplierUuid: tenant }, person.token);

async function claim(code) {
  return call('POST', '/v1/hubs/claim', { claimCode: code, deviceInstanceId: randomUUID(), hubIdentifier: HOSTILE });
}

/// Signs in with the keyboard alone.
async function signIn(page, password = PASSWORD) {
  await page.waitForSelector('#login-form:not([hidden])');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'email');
  await page.keyboard.type(person.email);
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
}

try {
  console.log('--- a hub comes online');
  for (const colorScheme of ['light', 'dark']) {
    const code = await pairingCode();
    assert.equal(code.pairingUrl, `${url}/app/pair#${code.claimCode}`);
    const page = await open(code.pairingUrl, { colorScheme });
    await check(page, `${colorScheme}: login`);
    await signIn(page, 'a wrong guess');
    await page.getByText('The e-mail or the password is wrong.').waitFor();
    await check(page, `${colorScheme}: wrong password`);
    await page.fill('#password', PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#offer:not([hidden])');
    assert.equal(await page.textContent('#supplier'), HOSTILE);
    assert.equal(await page.textContent('#shown-code'), code.claimCode);
    assert.match(await page.textContent('#status'), /Waiting for the hub to use the code/);
    await check(page, `${colorScheme}: offer`);
    const hub = await claim(code.claimCode);
    await page.getByText('The hub is yours. Waiting until it is online').waitFor({ timeout: PATIENCE });
    assert.equal(await page.textContent('#label'), HOSTILE);
    await check(page, `${colorScheme}: claimed`);
    await fetch(`${url.replace('localhost', '127.0.0.1')}/v1/hubs/${hub.hubUuid}/telemetry`, {
      method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${hub.accessToken}` }, body: '{}',
    });
    await page.getByText('Done: the hub is yours, and it is online.').waitFor({ timeout: PATIENCE });
    assert.equal(await page.locator('#steps li.done').count(), 3);
    await check(page, `${colorScheme}: online`);
    assert.deepEqual(await stored(page), [0, 0, ''], 'scripts find nothing in the browser');
    // Loaded again, it goes on; signed out, it does not.
    await page.reload();
    await page.getByText('Done: the hub is yours, and it is online.').waitFor({ timeout: PATIENCE });
    await check(page, `${colorScheme}: loaded again`);
    await page.focus('#sign-out');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#login-form:not([hidden])');
    assert.ok(await page.isHidden('#offer'));
    await page.reload();
    await page.waitForSelector('#login-form:not([hidden])');
    await page.context().close();
  }

  console.log('--- codes that lead nowhere');
  const foreign = await call('POST', '/app/hubs/pairing-codes', { supplierUuid: tenant }, owner.token);
  const short = await call('POST', '/tenant/hubs/claim-codes', { validForSeconds: 1,
    ownerUserUuid: (await call('GET', '/app/profile', undefined, person.token)).userUuid }, owner.token, inTenant);
  await new Promise((resolve) => { setTimeout(resolve, 1500); });
  let shown;
  for (const code of ['0000-0000-0000-0000', foreign.claimCode, short.claimCode]) {
    const page = await open(`${url}/app/pair#${code}`);
    await signIn(page);
    await page.waitForSelector('#again:not([hidden])');
    const told = await page.textContent('#problem');
    assert.match(told, /does not exist, has expired, or was made for another account/);
    shown ??= told;
    assert.equal(told, shown, 'one cannot be told from another');
    assert.ok(await page.isHidden('#offer'));
    await check(page, code);
    // From here to another code, by keyboard.
    await page.focus('#again');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#code-form:not([hidden])');
    await page.keyboard.type('no code at all');
    await page.keyboard.press('Enter');
    await page.getByText('This is no claim code.').waitFor();
    await check(page, 'the form of codes');
    await page.context().close();
  }

  console.log('--- typed in lower case, and a service that is away for a moment');
  const code = await pairingCode();
  const page = await open(`${url}/app/pair`);
  await page.waitForSelector('#code-form:not([hidden])');
  await page.keyboard.type(code.claimCode.toLowerCase().replaceAll('-', ' '));
  await page.keyboard.press('Enter');
  await signIn(page);
  await page.waitForSelector('#offer:not([hidden])');
  await page.context().setOffline(true);
  await page.getByText('The service cannot be reached.').waitFor({ timeout: PATIENCE });
  await page.context().setOffline(false);
  await claim(code.claimCode);
  await page.getByText('The hub is yours. Waiting until it is online').waitFor({ timeout: PATIENCE });
  assert.ok(await page.isHidden('#problem'), 'what is over is told no more');
  await check(page, 'after the outage');

  console.log('--- what it loads');
  const own = requested.filter((one) => one.startsWith('http') && !one.startsWith(url));
  assert.deepEqual(own, [], 'everything comes from the service');
  assert.ok(!requested.some((one) => one.split('#')[0].includes(code.claimCode)), 'no code is in a URL that is sent');
  let bytes = 0;
  for (const path of ['/app/pair', '/app/pair.css', '/app/pair.js']) {
    bytes += (await (await fetch(url.replace('localhost', '127.0.0.1') + path)).arrayBuffer()).byteLength;
  }
  assert.ok(bytes < 50 * 1024, `${bytes} bytes`);
  console.log(`${bytes} bytes`);
} finally {
  await browser.close();
}
