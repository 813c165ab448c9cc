//! A service with people and hubs, and what has to hold on every page.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { expect, test as base, type Locator, type Page, type Response } from '@playwright/test';

export const PASSWORD = 'correct horse battery staple';
export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
export const PROGRAM = process.env.HUB_CLOUD ?? 'hub-cloud';
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export class Service {
  /** Where its database and its keys are. */
  readonly data = mkdtempSync(join(tmpdir(), 'hub-console-'));
  #process: ChildProcess | undefined;
  #output = '';
  private constructor(
    readonly port: number,
    readonly settings: string[],
    readonly environment: Record<string, string>,
  ) {}

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** `settings` are further flags of the service, `environment` further variables. */
  static async create(settings: string[] = [], environment: Record<string, string> = {}): Promise<Service> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    if (typeof address !== 'object' || !address) throw new Error('no free port');
    const service = new Service(address.port, settings, environment);
    await service.start();
    return service;
  }

  async start() {
    const listen = `127.0.0.1:${this.port}`;
    const settings = ['--listen', listen, '--public-url', this.url, '--data-dir', this.data, '--upload-limit-per-minute', '1000000', '--trusted-proxies', '127.0.0.1', ...this.settings];
    this.#process = spawn(PROGRAM, ['serve', ...settings], { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...this.environment } });
    this.#process.stderr?.on('data', (chunk) => (this.#output = (this.#output + chunk).slice(-8000)));
    await expect.poll(() => fetch(`${this.url}/readyz`).then((answer) => answer.ok, () => false), { message: 'the service starts' }).toBe(true);
  }

  /** Ends the service as a power cut does. */
  async kill() {
    const process = this.#process;
    this.#process = undefined;
    if (!process || process.exitCode !== null) return;
    const gone = new Promise((resolve) => process.once('exit', resolve));
    process.kill('SIGKILL');
    await gone;
  }

  async remove(failed: boolean) {
    await this.kill();
    if (failed) console.log(this.#output);
    rmSync(this.data, { recursive: true, force: true });
  }

  async call<T = any>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text).data) as T;
  }

  /** Runs a command of the program, and gives what it writes. */
  run(command: string[], input = '') {
    return execFileSync(PROGRAM, command, { input, encoding: 'utf8' });
  }

  /** A platform administrator, who is a member of no tenant. */
  async admin(): Promise<Person> {
    const email = `${randomUUID()}@example.com`;
    this.run(['admin', 'create', '--data-dir', this.data, '--email', email, '--password-stdin'], `${PASSWORD}\n`);
    return this.login(email);
  }

  /** Somebody with another access token, which is valid for 15 minutes. */
  async login(email: string, tenant = ''): Promise<Person> {
    const login = await this.call('POST', '/auth/login', { email, password: PASSWORD });
    return Object.assign(new Person(this, email, login.accessToken, login.personaUuid), { tenant });
  }

  async person(): Promise<Person> {
    const email = `${randomUUID()}@example.com`;
    // Each registers from a network of its own: a service accepts some fifty accounts of one.
    const network = { 'x-forwarded-for': `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}` };
    const login = await this.call('POST', '/auth/register', { email, password: PASSWORD }, network);
    return new Person(this, email, login.accessToken, login.personaUuid);
  }
}

export class Person {
  tenant = '';
  constructor(
    readonly service: Service,
    readonly email: string,
    readonly token: string,
    readonly personaUuid: string,
  ) {}

  call<T = any>(method: string, path: string, body?: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${this.token}`, ...(this.tenant ? { 'x-tenant-uuid': this.tenant } : {}) };
    return this.service.call(method, path, body, headers);
  }

  async createTenant(name: string): Promise<this> {
    this.tenant = (await this.call('POST', '/tenant/tenants', { name })).tenantUuid;
    return this;
  }

  /** Hubs by label. */
  async claim(labels: string[]): Promise<Hub[]> {
    const { claimCode } = await this.call('POST', '/tenant/hubs/claim-codes', { maxUses: labels.length });
    const hubs: Hub[] = [];
    // In order, a few at a time: lists show the newest first.
    for (let from = 0; from < labels.length; from += 10) {
      hubs.push(...(await Promise.all(labels.slice(from, from + 10).map((label) => Hub.claim(this.service, claimCode, label)))));
    }
    return hubs;
  }

  page(path = '') {
    return `${this.service.url}/console/t/${this.tenant}${path}`;
  }
}

export class Hub {
  private constructor(
    readonly service: Service,
    readonly uuid: string,
    readonly token: string,
    readonly refreshToken: string,
  ) {}

  static async claim(service: Service, claimCode: string, hubIdentifier: string): Promise<Hub> {
    const body = { claimCode, deviceInstanceId: randomUUID(), hubIdentifier, hostname: 'gw', agentVersion: '1.4.0' };
    const { hubUuid, accessToken, refreshToken } = await service.call('POST', '/v1/hubs/claim', body);
    return new Hub(service, hubUuid, accessToken, refreshToken);
  }

  /** The hub with a new token, as its machine has it after this boot. */
  async refresh(bootId: string): Promise<Hub> {
    const { accessToken } = await this.call('POST', '/v1/hubs/refresh', { refreshToken: this.refreshToken, bootId });
    return new Hub(this.service, this.uuid, accessToken, this.refreshToken);
  }

  call<T = any>(method: string, path: string, body?: unknown): Promise<T> {
    return this.service.call(method, path, body, { authorization: `Bearer ${this.token}` });
  }

  telemetry(body: unknown) {
    return this.call('POST', `/v1/hubs/${this.uuid}/telemetry`, body);
  }

  log(messages: string[], level = 'INFO') {
    const at = new Date().toISOString();
    return this.call('POST', `/v1/hubs/${this.uuid}/logs`, messages.map((message) => ({ at, level, target: 'test', message })));
  }

  hear(events: { address: string; name?: string; rssi?: number; manufacturerData?: Record<string, string>; serviceData?: Record<string, string> }[]) {
    const observedAt = new Date().toISOString();
    const manufacturerData = { '0499': 'BQAB' };
    return this.call('POST', '/v1/ble/events', {
      batchUuid: randomUUID(),
      events: events.map((event) => ({ observedAt, rssi: -60, manufacturerData, ...event })),
    });
  }
}

export interface Package {
  name: string;
  version: string;
  source?: string;
}

/** The adapter of hubs that report what they run. */
export const ADAPTER = '00:1A:7D:DA:71:13';

/** Has a hub report that it runs Debian 12 with these packages. */
export async function report(hub: Hub | undefined, packages: Package[]) {
  if (!hub) throw new Error('no hub');
  const lines = packages.map(({ name, version, source = '' }) => `${name}\t${version}\tarm64\t${source}\t\n`).sort();
  const packagesSha256 = createHash('sha256').update(`debian\t12\n${lines.join('')}`).digest('hex');
  const packageList = { distribution: 'debian', distributionVersion: '12', packages: packages.map((one) => ({ ...one, architecture: 'arm64' })) };
  const system = { kernel: '6.1.0-18-arm64', bluez: '5.66', agent: '1.4.0', adapterFirmware: { [ADAPTER]: HOSTILE } };
  const { packageListWanted } = await hub.call('POST', `/v1/hubs/${hub.uuid}/packages`, { packagesSha256, packageList, ...system });
  expect(packageListWanted).toBe(false);
}

/** Has a hub report that it runs a release of an app. */
export async function runs(hub: Hub | undefined, appUuid: string, releaseUuid: string, version: string) {
  if (!hub) throw new Error('no hub');
  const app = { appUuid, releaseUuid, version, state: 'RUNNING', since: new Date().toISOString() };
  await hub.call('PUT', `/v1/hubs/${hub.uuid}/installed-apps`, { apps: [app] });
}

export const address = (number: number) => `C0:00:00:00:${Math.floor(number / 256).toString(16).padStart(2, '0')}:${(number % 256).toString(16).padStart(2, '0')}`.toUpperCase();

/** Pages under work: a folder that `vite build` made, in place of the pages in the program. */
const BUILT = process.env.HUB_CONSOLE_BUILD;
const TYPES: Record<string, string> = { '.css': 'text/css', '.html': 'text/html', '.js': 'text/javascript', '.svg': 'image/svg+xml' };

async function servePagesOf(folder: string, page: Page, service: Service) {
  const { headers } = await page.request.get(`${service.url}/console`).then((answer) => ({ headers: answer.headers() }));
  delete headers['content-encoding'];
  delete headers['content-length'];
  const isPage = ({ origin, pathname }: URL) => origin === service.url && /^\/console(\/|$)/.test(pathname);
  await page.context().route(isPage, (route) => {
    const name = new URL(route.request().url()).pathname.replace('/console', '');
    // A redirect is not seen here: the page that it leads to is that of the program, with its files.
    if (extname(name) && !existsSync(join(folder, name))) return route.continue();
    const file = join(folder, extname(name) ? name : 'index.html');
    return route.fulfill({ headers: { ...headers, 'content-type': TYPES[extname(file)] ?? '' }, body: readFileSync(file) });
  });
}

interface Watched extends Page {
  errors: string[];
  foreign: string[];
  /** What pages asked for and did not get, as `404 GET /tenant/...`: a red line in the browser's console each. */
  refused: string[];
  /** What a test makes the service refuse. */
  expected: RegExp[];
}

/** What a page asked for by itself and was refused; other methods answer what a person does. */
function refusal(response: Response): string | undefined {
  const { pathname } = new URL(response.url());
  const method = response.request().method();
  const isAsked = method === 'GET' || pathname === '/auth/session/refresh';
  return isAsked && response.status() >= 400 ? `${response.status()} ${method} ${pathname}` : undefined;
}

/** Notes what the policy forbids, what fails, what is refused, and what leaves the origin. */
export async function watch(page: Page, service: Service): Promise<Watched> {
  if (BUILT) await servePagesOf(BUILT, page, service);
  const watched = Object.assign(page, { errors: [] as string[], foreign: [] as string[], refused: [] as string[], expected: [] as RegExp[] });
  await page.addInitScript(() => {
    const seen: string[] = [];
    Object.assign(window, { violations: seen });
    document.addEventListener('securitypolicyviolation', (event) => {
      seen.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  page.on('pageerror', (error) => watched.errors.push(String(error.stack)));
  page.on('response', (response) => {
    const refused = refusal(response);
    if (refused) watched.refused.push(refused);
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== service.url && !['data:', 'blob:'].includes(protocol)) watched.foreign.push(request.url());
  });
  return watched;
}

/** Buttons that lie on each other, and lists of tabs that scroll up and down. */
function misplaced(): string[] {
  const scrolling = [...document.querySelectorAll('main nav')].filter((nav) => getComputedStyle(nav).overflowY !== 'visible' && nav.scrollHeight > nav.clientHeight);
  const overlapping = [...document.querySelectorAll('.button + .button')].filter((button) => {
    const [one, other] = [button.previousElementSibling, button].map((element) => element?.getBoundingClientRect() ?? new DOMRect());
    if (!one?.width || !other?.width) return false;
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    return across > 1 && down > 1;
  });
  return [...scrolling.map((nav) => `${nav.getAttribute('aria-label')} scrolls`), ...overlapping.map((button) => `${button.textContent?.trim()} lies on another button`)];
}

/** Holds on every page: no barriers in light and dark at every width, nothing forbidden, no name run. */
export async function inspect(page: Watched, where: string) {
  const before = page.viewportSize() ?? { width: 1280, height: 800 };
  for (const width of [320, 420, 768, 1200, 2560]) {
    await page.setViewportSize({ width, height: 900 });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    expect(await page.evaluate(misplaced), `${where}, ${width}: controls have their place`).toEqual([]);
  }
  // Evaluated by the debugger, which no policy concerns.
  await page.evaluate(axe);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    for (const width of [320, 1280, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      const at = `${where}, ${colorScheme}, ${width}`;
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      expect(await page.evaluate(() => document.documentElement.scrollWidth), `${at}: fits its width`).toBeLessThanOrEqual(width);
      const violations = await page.evaluate(async (colorScheme) => {
        // The scheme changes colours and nothing else.
        const only = colorScheme === 'dark' ? { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } } : {};
        const { violations } = await (window as any).axe.run(document, { resultTypes: ['violations'], ...only });
        return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map((node: any) => node.html).join(' ')}`);
      }, colorScheme);
      expect(violations, `${at}: barriers for people`).toEqual([]);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize(before);
  await safe(page, where);
}

/** The part of it that needs no looking. */
export async function safe(page: Watched, where: string) {
  expect(await page.evaluate(() => (window as any).violations), `${where}: forbidden by the policy`).toEqual([]);
  expect(await page.evaluate(() => (window as any).hacked), `${where}: a name was run`).toBeUndefined();
  expect(page.errors, `${where}: a script failed`).toEqual([]);
  expect(page.foreign, `${where}: a request left the origin`).toEqual([]);
  quiet(page, where);
}

/** No page asked for what it cannot get. */
function quiet({ refused, expected }: Watched, where: string) {
  const unexpected = refused.filter((one) => !expected.some((pattern) => pattern.test(one)));
  expect(unexpected, `${where}: a request of a page was refused`).toEqual([]);
}

/** Signs in with the keyboard alone, at the address that the page has. */
export async function signIn(page: Page, person: Person, password = PASSWORD) {
  await expect(page.getByLabel('E-mail')).toBeFocused();
  await page.keyboard.type(person.email);
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
}

/** Moves the focus to an element as the keyboard does. */
export async function tabTo(page: Page, name: string | RegExp, role: 'button' | 'link' | 'textbox' | 'combobox' | 'table' = 'button', within: Page | Locator = page) {
  const wanted = within.getByRole(role, { name }).first();
  await wanted.waitFor();
  for (let presses = 0; presses < 120; presses++) {
    if (await wanted.evaluate((element) => element === document.activeElement)) return wanted;
    await page.keyboard.press('Tab');
  }
  throw new Error(`Tab does not lead to ${role} ${name}`);
}

/** Presses a button or a link once it can have the focus: a dialog that is closing still covers it, and would get the key. */
export async function press(page: Page, name: string | RegExp, role: 'button' | 'link' = 'button') {
  const wanted = page.getByRole(role, { name }).first();
  const isFocused = async () => {
    await wanted.focus();
    return wanted.evaluate((element) => element === document.activeElement);
  };
  await expect.poll(isFocused, { message: `${role} ${name} can have the focus` }).toBe(true);
  await page.keyboard.press('Enter');
}

/** `settings` are those that a file of tests gives its service beside the usual ones. */
export const test = base.extend<{ watched: Watched }, { settings: string[]; service: Service }>({
  settings: [[], { scope: 'worker', option: true }],
  service: [
    async ({ settings }, use, info) => {
      const service = await Service.create(settings);
      let failed = true;
      try {
        await use(service);
        failed = info.project.retries > 0;
      } finally {
        await service.remove(failed);
      }
    },
    { scope: 'worker' },
  ],
  watched: async ({ page, service }, use) => {
    const watched = await watch(page, service);
    await use(watched);
    quiet(watched, 'at the end');
  },
});
/** Skips the test where something is missing, in the words that tests/run counts. */
export function needs(isThere: boolean, what: string) {
  if (!isThere) console.log(`skipped: ${test.info().title} needs ${what}`);
  test.skip(!isThere, `needs ${what}`);
}

export { expect };
