// Links accounts at a supplier, whose authorization server is a strict OpenID Connect provider.
import assert from 'node:assert/strict';
import { browser, call, check, issuer, logInAtIssuer, open, register, supplier, url } from './page.mjs';

const { owner, tenant, inTenant } = await supplier();
await call('PUT', '/tenant/supplier-oauth-config', {
  issuer, authorize_url: `${issuer}/auth`, token_url: `${issuer}/token`, revoke_url: `${issuer}/token/revocation`,
  client_id: 'hubs', client_secret: 'a secret of supplier and service: 1', scope: 'openid offline_access',
  consent_text: 'We read your thermostat.', return_urls: [`${url}/app/pair`],
}, owner.token, inTenant);
const person = await register();

const begin = async (returnUrl) =>
  (await call('POST', '/app/supplier-link/authorize', { supplierUuid: tenant, returnUrl }, person.token)).authorizeUrl;
const links = () => call('GET', '/app/supplier-links', undefined, person.token);

async function told(page, title, where, path = 'callback') {
  await page.waitForURL(`${url}/auth/supplier-link/${path}?**`);
  assert.equal(await page.textContent('h1'), title);
  assert.equal(await page.title(), title);
  await check(page, where);
}

try {
  for (const colorScheme of ['light', 'dark']) {
    console.log(`--- linked and unlinked, ${colorScheme}`);
    const name = `ada-${colorScheme}`;
    const page = await open(await begin(), { colorScheme });
    await logInAtIssuer(page, name);
    await page.click('button[type=submit]');
    await told(page, 'Almost linked', `${colorScheme}: pending`, 'pending');
    assert.deepEqual(await links(), []);
    const members = new URL(page.url()).searchParams;
    const completion = { state: members.get('state'), completion: members.get('completion') };
    await call('POST', '/app/supplier-link/complete', completion, person.token);
    const [link, ...others] = await links();
    assert.deepEqual([link.userSub, link.status, others], [name, 'ACTIVE', []]);
    const { access_token: token } = await call('GET', `/app/supplier-links/${link.id}/access-token`, undefined, person.token);
    assert.ok(token.length > 10);
    // Loaded again, the answer is used up, and the link is still there.
    await page.goto(`${url}/auth/supplier-link/callback?state=${completion.state}&code=x`);
    await told(page, 'Account not linked', `${colorScheme}: loaded again`);
    assert.match(await page.textContent('p'), /it was used before/);
    assert.equal((await links()).length, 1);
    const ended = await call('DELETE', `/app/supplier-links/${link.id}`, undefined, person.token);
    assert.deepEqual(ended, { id: link.id, status: 'REVOKED', revokedAtSupplier: true });
    assert.deepEqual(await links(), []);

    // Who says no reads that, and nothing is linked.
    await page.context().clearCookies();
    await page.goto(await begin());
    await logInAtIssuer(page, name);
    await page.getByText('Cancel').click();
    await told(page, 'Account not linked', `${colorScheme}: refused`);
    assert.match(await page.textContent('p'), /you or the supplier did not agree/);
    assert.deepEqual(await links(), []);

    // An app that wants its people back gets them.
    await page.context().clearCookies();
    await page.goto(await begin(`${url}/app/pair`));
    await logInAtIssuer(page, name);
    await page.getByText('Cancel').click();
    await page.waitForURL(`${url}/app/pair?state=**&status=failed`);
    await page.context().close();
  }

  console.log('--- an address that somebody made up');
  const page = await open(`${url}/auth/supplier-link/callback?state=${encodeURIComponent('<script>window.hacked=1</script>')}&code=x`);
  await told(page, 'Account not linked', 'made up');
  const json = await fetch(`${url.replace('localhost', '127.0.0.1')}/auth/supplier-link/callback?state=x&code=x`);
  assert.deepEqual([json.status, (await json.json()).code], [400, 'INVALID_STATE'], 'a program gets what it can read');
} finally {
  await browser.close();
}
