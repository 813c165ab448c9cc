// Signs in to the pairing page, with a password and at a strict OpenID Connect provider.
import assert from 'node:assert/strict';
import { PASSWORD, browser, call, check, issuer, logInAtIssuer, open, openIn, register, requested, stored, supplier, url } from './page.mjs';

const { tenant } = await supplier();

const sent = (code) => requested.filter((one) => one.includes(code)).filter((one) => one.split('#')[0].includes(code));
const cookies = async (page) => (await page.context().cookies(url)).filter(({ name }) => name.startsWith('hub_'));

/// A code for whoever is signed in on the page, which only a script of the service could get.
const codeFor = (page) => page.evaluate(async (supplierUuid) => {
  const session = await (await fetch('/auth/session/refresh', { method: 'POST' })).json();
  const made = await fetch('/app/hubs/pairing-codes', {
    method: 'POST', body: JSON.stringify({ supplierUuid }),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${session.data.accessToken}` },
  });
  return (await made.json()).data.claimCode;
}, tenant);

const UNKNOWN = '0000-0000-0000-0000';

try {
  console.log('--- at the provider');
  for (const colorScheme of ['light', 'dark']) {
    const name = `ada-${colorScheme}`;
    const page = await open(`${url}/app/pair#${UNKNOWN}`, { colorScheme });
    await page.waitForSelector('#issuer:not([hidden])');
    assert.equal(await page.textContent('#issuer'), 'Sign in with 127.0.0.1');
    await check(page, `${colorScheme}: the ways to sign in`);
    await page.focus('#issuer');
    await page.keyboard.press('Enter');
    await logInAtIssuer(page, name);
    await page.click('button[type=submit]');
    await page.waitForSelector('#again:not([hidden])');
    assert.equal(page.url(), `${url}/app/pair#${UNKNOWN}`, 'the code has survived');
    assert.match(await page.textContent('#problem'), /was made for another account/);
    await check(page, `${colorScheme}: back`);
    assert.deepEqual(await stored(page), [0, 0, ''], 'scripts find nothing in the browser');
    const kept = await cookies(page);
    assert.deepEqual(kept.map(({ name, httpOnly, sameSite }) => [name, httpOnly, sameSite]), [['hub_session', true, 'Strict']]);

    // Their own code, in another tab, which is signed in as well.
    const code = await codeFor(page);
    const tab = await openIn(page.context(), `${url}/app/pair#${code}`);
    await tab.waitForSelector('#offer:not([hidden])');
    assert.equal(await tab.textContent('#shown-code'), code);
    // Signed out here, the other tab notices, and its code survives the way there and back.
    await page.click('#sign-out');
    await page.waitForSelector('#issuer:not([hidden])');
    await tab.getByText('You have been signed out. Sign in again.').waitFor({ timeout: 60000 });
    await check(tab, `${colorScheme}: signed out elsewhere`);
    await tab.click('#issuer');
    // The provider still knows them, and sends them back at once.
    await tab.waitForSelector('#offer:not([hidden])');
    assert.equal(await tab.textContent('#shown-code'), code);
    assert.deepEqual(sent(code), [], 'no code is in a URL that is sent');
    await page.context().close();
  }

  console.log('--- who changes their mind, and who comes too late');
  const page = await open(`${url}/app/pair#${UNKNOWN}`);
  await page.click('#issuer');
  await logInAtIssuer(page, 'ben');
  await page.getByText('Cancel').click();
  await page.getByText('You were not signed in, because you or the other service did not agree.').waitFor();
  assert.equal(page.url(), `${url}/app/pair#${UNKNOWN}`);
  await check(page, 'refused');
  await page.goto(`${url}/auth/oidc/callback?state=x&code=y`);
  await page.getByText('This browser does not wait for this answer').waitFor();
  await check(page, 'an answer that nobody waits for');
  await page.context().close();

  console.log('--- two tabs that are loaded at once');
  const person = await register();
  const code = (await call('POST', '/app/hubs/pairing-codes', { supplierUuid: tenant }, person.token)).claimCode;
  const first = await open(`${url}/app/pair#${code}`);
  await first.fill('#email', person.email);
  await first.fill('#password', PASSWORD);
  await first.keyboard.press('Enter');
  await first.waitForSelector('#offer:not([hidden])');
  const tabs = await Promise.all([1, 2, 3, 4].map(() => openIn(first.context(), `${url}/app/pair#${code}`)));
  for (const tab of [...tabs, first]) {
    await tab.reload();
    await tab.waitForSelector('#offer:not([hidden])');
  }

  console.log('--- another site');
  const evil = await openIn(first.context(), `${issuer}/.well-known/openid-configuration`);
  const outcomes = await evil.evaluate(async (service) => {
    const tried = [];
    for (const method of ['POST', 'DELETE']) {
      for (const options of [{}, { credentials: 'include' }, { credentials: 'include', mode: 'no-cors' }]) {
        const path = method === 'POST' ? '/auth/session/refresh' : '/auth/session';
        tried.push(await fetch(service + path, { method, ...options }).then((answer) => answer.type, () => 'refused'));
      }
    }
    return tried;
  }, url);
  // What goes out without being asked about is refused by the service and cannot be read.
  assert.deepEqual(outcomes, ['refused', 'refused', 'opaque', 'refused', 'refused', 'refused']);
  await first.reload();
  await first.waitForSelector('#offer:not([hidden])');

  const own = requested.filter((one) => one.startsWith('http') && ![url, issuer].some((known) => one.startsWith(known)));
  assert.deepEqual(own, [], 'nothing comes from elsewhere');
} finally {
  await browser.close();
}
