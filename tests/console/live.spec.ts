//! The live view: many events a second, and a service that goes away.

import type { CDPSession } from '@playwright/test';
import { address, expect, type Hub, HOSTILE, inspect, type Person, safe, signIn, tabTo, test } from './harness';

async function counted(page: { locator: (selector: string) => any; getByText: (text: RegExp) => any }): Promise<number> {
  const text = (await page.getByText(/received$/).textContent()) ?? '';
  return Number(text.replaceAll(/\D/g, ''));
}

async function two(person: Person): Promise<[Hub, Hub]> {
  const [one, other] = await person.claim([HOSTILE, 'Cellar']);
  if (!one || !other) throw new Error('no hubs');
  return [one, other];
}

test('devices are followed, filtered and opened', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [one, other] = await two(person);
  await page.goto(person.page('/live'));
  await signIn(page, person);
  await expect(page.getByText('No events yet')).toBeVisible();
  await inspect(page, 'live, without events');
  await one.hear([{ address: address(1), name: HOSTILE, rssi: -50 }, { address: address(2), rssi: -90 }]);
  await other.hear([{ address: address(1), rssi: -70 }]);
  await expect(page.getByText('3 received')).toBeVisible();
  await inspect(page, 'live');

  await tabTo(page, new RegExp(address(1)));
  await page.keyboard.press('Enter');
  const detail = page.getByRole('region', { name: 'Device' });
  await expect(detail.getByRole('link', { name: HOSTILE })).toBeVisible();
  await expect(detail.getByRole('link', { name: 'Cellar' })).toBeVisible();
  await expect(detail).toContainText('05 00 01');
  await inspect(page, 'live, a device');

  await tabTo(page, 'Pause');
  await page.keyboard.press('Enter');
  await one.hear([{ address: address(3) }]);
  await expect(page.getByText('paused')).toBeVisible();
  await expect(page.getByText(address(3))).toHaveCount(0);
  await page.keyboard.press('Enter');
  await expect(page.getByText(address(3))).toBeVisible();
  await page.getByLabel('Filter devices').fill('rssi:<-80');
  await expect(page.locator('[data-row]')).toHaveCount(1);
  await expect(page).toHaveURL(/q=rssi/);
  // On a phone, the values of a device are below its name.
  await page.setViewportSize({ width: 320, height: 800 });
  await expect(page.locator('[data-row]').first()).toContainText('not decoded');
  await safe(page, 'live');
});

test('what is not shown does not travel', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [one, other] = await two(person);
  await page.goto(person.page('/live?every=1h'));
  await signIn(page, person);
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  await expect(page.getByLabel('Sampling')).toHaveValue('1h');
  for (let round = 0; round < 3; round++) await one.hear([{ address: address(1), rssi: -50 }, { address: address(2), rssi: -90 }]);
  await one.hear([{ address: address(3) }]);
  await expect(page.getByText('3 received'), 'one of each').toBeVisible();

  const stream = (query: RegExp) => page.waitForResponse((answer) => query.test(decodeURIComponent(answer.url())));
  const followed = stream(new RegExp(`hubUuid=${other.uuid}&address=${address(1)}&minRssi=-69$`, 'i'));
  await page.getByLabel('Filter devices').fill(`hub:${other.uuid} address:${address(1)} rssi:>-70`);
  await page.getByLabel('Sampling').selectOption('');
  await followed;
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  await expect(page.getByText('only matching events are received')).toBeVisible();
  await one.hear([{ address: address(1), rssi: -50 }]);
  await other.hear([{ address: address(1), rssi: -70 }, { address: address(2), rssi: -50 }, { address: address(1), rssi: -69 }]);
  await expect(page.getByText('4 received'), 'one of four fits').toBeVisible();
  await expect(page.locator('[data-row]')).toHaveCount(1);
  // What the service knows nothing of is left to the page.
  const all = stream(/ble\/events\?$/);
  await page.getByLabel('Filter devices').fill(`hub:${other.uuid.slice(0, 8)} address:${address(1).slice(0, 8)} name:x`);
  await all;
  await inspect(page, 'live, filtered');
});

test('a service that is killed and started loses and doubles nothing', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await two(person);
  await page.goto(person.page('/live'));
  await signIn(page, person);
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  const hear = (from: number) => hub.hear(Array.from({ length: 20 }, (_, index) => ({ address: address(from + index) })));
  await hear(0);
  await expect.poll(() => counted(page)).toBe(20);
  await service.kill();
  await expect(page.getByText('reconnecting', { exact: true })).toBeVisible();
  await service.start();
  // The browser waits before it tries again; this is received in between, or just after.
  for (let batch = 1; batch < 6; batch++) await hear(batch * 20);
  await expect.poll(() => counted(page)).toBe(120);
  await expect(page.getByText(/Connection lost from/)).toBeVisible();
  await expect(page.getByText(/nothing is missing/)).toBeVisible();
  await expect(page.getByText('120 devices', { exact: true })).toBeVisible();
  await expect(page.getByText(/left out/)).toHaveCount(0);
  await hear(200);
  await expect.poll(() => counted(page)).toBe(140);
  await inspect(page, 'live, after a gap');
});

/** How long the load lasts: 600 for a whole measurement. */
const SECONDS = Number(process.env.HUB_LIVE_SECONDS ?? 15);

/** The bytes in use in the page and in its worker, once what is not in use is gone. */
async function heaps(cdp: CDPSession): Promise<() => Promise<{ page: number; worker: number }>> {
  let [id, next] = ['', 0];
  cdp.on('Target.attachedToTarget', ({ sessionId, targetInfo }) => {
    if (targetInfo.type === 'worker') id = sessionId;
  });
  await cdp.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: false });
  await expect.poll(() => id, { message: 'the page has a worker' }).not.toBe('');
  const ask = (method: string) =>
    new Promise<any>((resolve) => {
      const asked = (next += 1);
      const hear = ({ message }: { message: string }) => {
        const { id: answered, result } = JSON.parse(message);
        if (answered !== asked) return;
        cdp.off('Target.receivedMessageFromTarget', hear);
        resolve(result);
      };
      cdp.on('Target.receivedMessageFromTarget', hear);
      void cdp.send('Target.sendMessageToTarget', { sessionId: id, message: JSON.stringify({ id: asked, method }) });
    });
  return async () => {
    await cdp.send('HeapProfiler.collectGarbage');
    await ask('HeapProfiler.collectGarbage');
    return { page: (await cdp.send('Runtime.getHeapUsage')).usedSize, worker: (await ask('Runtime.getHeapUsage')).usedSize };
  };
}

test('a thousand events a second freeze nothing and fill nothing', { tag: '@alone' }, async ({ watched: page, service }) => {
  test.setTimeout(180_000 + SECONDS * 1500);
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await two(person);
  await page.goto(person.page('/live'));
  await signIn(page, person);
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  let sent = 0;
  const hear = async () => {
    await hub.hear(Array.from({ length: 200 }, (_, index) => ({ address: address((sent + index) % 1500) })));
    sent += 200;
  };
  // Every device has been heard before memory is measured.
  while (sent < 5000) await hear();
  await expect.poll(() => counted(page)).toBe(sent);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable');
  const heap = await heaps(cdp);
  const busy = async () => (await cdp.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration')?.value ?? 0;
  const used = await heap();
  await page.evaluate(() => {
    const [long, from] = [[] as [number, number][], performance.now()];
    Object.assign(window, { long });
    new PerformanceObserver((list) => long.push(...list.getEntries().map(({ startTime, duration }): [number, number] => [startTime - from, duration]))).observe({
      entryTypes: ['longtask'],
    });
  });
  const [begun, before, already] = [Date.now(), await busy(), sent];
  while (Date.now() - begun < SECONDS * 1000) {
    await hear();
    // Ahead of the pace: it waits.
    const ahead = sent - already - (Date.now() - begun);
    if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead));
  }
  const seconds = (Date.now() - begun) / 1000;
  const share = ((await busy()) - before) / seconds;
  const long = await page.evaluate(() => (window as any).long as [number, number][]);
  // The best third counts: the machine may do much else, and a fault of the page shows in each.
  const longest = [0, 1, 2].map((third) => Math.max(0, ...long.filter(([at]) => Math.floor((at * 3) / (seconds * 1000)) === third).map(([, duration]) => duration)));
  await expect.poll(() => counted(page)).toBe(sent);
  const later = await heap();
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  console.log(
    `${Math.round((sent - already) / seconds)} events/s for ${Math.round(seconds)} s: main thread ${(share * 100).toFixed(1)} %, longest tasks ${longest.join(', ')} ms, ` +
      `page ${mib(used.page)} to ${mib(later.page)} MiB, worker ${mib(used.worker)} to ${mib(later.worker)} MiB`,
  );
  expect(share, 'share of the main thread').toBeLessThan(0.15);
  expect(Math.min(...longest), 'the longest task').toBeLessThanOrEqual(100);
  for (const of of ['page', 'worker'] as const) expect(later[of] - used[of], `growth of the ${of}`).toBeLessThan(4 * 2 ** 20);
  await safe(page, 'live, under load');
});
