//! A tenant with many hubs and devices. HUB_FLEET and HUB_DEVICES say how many: 10000 and 100000 are the
//! most that the service allows, and take minutes to make.

import { expect, Hub, type Person, safe, type Service, signIn, test } from './harness';

const HUBS = Number(process.env.HUB_FLEET ?? 600);
const DEVICES = Number(process.env.HUB_DEVICES ?? 600);
const whole = new Intl.NumberFormat('en-US');
/** Of each, there and back: two answers of a service that is not optimised. */
const LONGEST = 2000;

test.use({ settings: ['--hubs-per-tenant', '20000'], locale: 'en-US' });
test.setTimeout(3_600_000);

const hex = (number: number) => number.toString(16).padStart(8, '0').toUpperCase();

/** Sixteen at a time, as the service commits them together. What a busy service refuses is sent again. */
async function many(count: number, make: (index: number) => Promise<unknown>) {
  let next = 0;
  const work = async () => {
    for (let index = next++; index < count; index = next++) {
      for (let tries = 1; ; tries++) {
        try {
          await make(index);
          break;
        } catch (error) {
          // It may have been made before the answer was lost.
          if (tries > 1 && String(error).includes('TAKEN')) break;
          if (tries === 20 || !/: 503 |fetch failed/.test(String(error))) throw error;
          await new Promise((resolve) => setTimeout(resolve, 500));
        }
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

async function fill(service: Service, owner: Person) {
  const begun = Date.now();
  const { claimCode } = await owner.call('POST', '/tenant/hubs/claim-codes', { maxUses: HUBS + 100 });
  await many(HUBS, (index) => Hub.claim(service, claimCode, `Hub ${String(index).padStart(5, '0')}`));
  const hubs = Date.now();
  console.log(`${HUBS} hubs made in ${Math.round((hubs - begun) / 1000)} s`);
  const person = await service.login(owner.email, owner.tenant);
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  await many(DEVICES, (index) => {
    const address = `C0:00:${hex(index).match(/../g)?.join(':')}`;
    return person.call('POST', '/tenant/devices', { deviceUuid, name: `Sensor ${String(index).padStart(6, '0')}`, address });
  });
  console.log(`${DEVICES} devices made in ${Math.round((Date.now() - hubs) / 1000)} s`);
}

test('a long list is filtered, walked and opened', { tag: '@alone' }, async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await fill(service, person);
  await page.goto(person.page('/hubs'));
  await signIn(page, person);
  await expect(page.getByRole('table', { name: 'Hubs' })).toBeVisible();
  const times: Record<string, number> = {};
  // The best of three: the machine may do much else.
  const timed = async (name: string, act: () => Promise<unknown>) => {
    for (let turn = 0; turn < 3; turn++) {
      const begun = Date.now();
      await act();
      times[name] = Math.min(times[name] ?? Infinity, Date.now() - begun);
    }
  };
  const walk = async (path: string, what: string, count: number, find: string) => {
    const link = (index: number) => page.locator(`[data-row="${index}"] a`).first();
    const all = page.getByText(`${whole.format(count)} ${what}`, { exact: true });
    await timed(`${what}: list`, async () => {
      await page.goto(person.page(path));
      await expect(link(0)).toBeVisible();
    });
    await expect(all).toBeVisible();
    const rows = async () => page.locator('[data-row]').count();
    expect(await rows(), 'rows that are not seen do not exist').toBeLessThan(60);
    await link(0).focus();
    await timed(`${what}: to the end and back`, async () => {
      await page.keyboard.press('End');
      await expect(link(count - 1)).toBeFocused();
      await page.keyboard.press('Home');
      await expect(link(0)).toBeFocused();
    });
    expect(await rows()).toBeLessThan(60);
    await timed(`${what}: filter and clear`, async () => {
      await page.getByLabel(`Filter ${what}`).fill(find);
      await expect(page.getByText(new RegExp(`^1 ${what.slice(0, -1)} match(es)? the filter$`))).toBeVisible();
      await page.getByLabel(`Filter ${what}`).fill('');
      await expect(all).toBeVisible();
    });
    const name = (await link(0).textContent()) ?? '';
    await timed(`${what}: open and back`, async () => {
      await link(0).press('Enter');
      await expect(page.getByRole('heading', { name, level: 1 })).toBeVisible();
      await page.goBack();
      await expect(link(0)).toBeVisible();
    });
  };
  await walk('/hubs', 'hubs', HUBS, `Hub ${String(Math.floor(HUBS / 2)).padStart(5, '0')}`);
  await walk('/devices', 'devices', DEVICES, `Sensor ${String(Math.floor(DEVICES / 2)).padStart(6, '0')}`);
  console.log(Object.entries(times).map(([name, at]) => `${name} ${at} ms`).join(', '));
  for (const [name, at] of Object.entries(times)) expect(at, name).toBeLessThan(LONGEST);
  await safe(page, 'long lists');
});
