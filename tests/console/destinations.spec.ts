//! Destinations of pipelines are filled in as a form, and events arrive at what is there: a broker that
//! asks for a password, a stream of NATS, and a store of objects. Secrets are never shown.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createListener, type AddressInfo, connect, type Socket } from 'node:net';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { address, expect, HOSTILE, type Hub, inspect, needs, type Person, press, safe, type Service, signIn, tabTo, test } from './harness';

// Brokers and stores are on this machine.
test.use({ settings: ['--allow-private-targets'] });

type Watched = Parameters<typeof inspect>[0];
const SECRET = 'a secret that nobody reads again';
const RUUVI = 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP';
const NATS = new URL(process.env.HUB_TESTS_NATS_URL ?? 'nats://127.0.0.1:4222');

const confirm = (page: Watched, name: string) => page.getByRole('dialog').getByRole('button', { name, exact: true }).press('Enter');
const destination = (page: Watched) => page.getByRole('region', { name: '3. Destination' });

/** A tenant with one device and a hub that hears it. */
async function sensor(service: Service): Promise<{ person: Person; hub: Hub; device: number }> {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const { deviceInstanceId } = await person.call('POST', '/tenant/devices', { deviceUuid, name: HOSTILE, address: address(1) });
  return { person, hub, device: deviceInstanceId };
}
const hear = (hub: Hub) => hub.hear([{ address: address(1), name: HOSTILE, manufacturerData: { '0499': RUUVI } }]);

/** What is stored of the only pipeline, in which no secret may be. */
async function stored(person: Person) {
  const [pipeline] = await person.call('GET', '/tenant/data-pipelines');
  expect(JSON.stringify(pipeline)).not.toContain(SECRET);
  return pipeline;
}

/** Fills in one field of the destination with the keyboard. */
async function type(page: Watched, label: string, text: string) {
  await tabTo(page, label, 'textbox', destination(page));
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

async function freePort(): Promise<number> {
  const listener = createListener();
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;
  await new Promise((resolve) => listener.close(resolve));
  return port;
}

/** Mosquitto, which lets in the user `hubs` with the secret alone, and what it was sent. */
class Broker {
  readonly messages: { topic: string; payload: string; retain: number }[] = [];
  #programs: ChildProcess[] = [];
  private constructor(readonly port: number) {}

  static async start(folder: string): Promise<Broker> {
    const broker = new Broker(await freePort());
    const [config, passwords] = [join(folder, 'mosquitto.conf'), join(folder, 'passwords')];
    execFileSync('mosquitto_passwd', ['-b', '-c', passwords, 'hubs', SECRET]);
    writeFileSync(config, `listener ${broker.port} 127.0.0.1\nallow_anonymous false\npassword_file ${passwords}\nuser ${process.env.USER ?? 'root'}\n`);
    broker.#programs.push(spawn('mosquitto', ['-c', config], { stdio: 'ignore' }));
    await expect.poll(() => isOpen(broker.port), { message: 'the broker listens' }).toBe(true);
    return broker;
  }

  subscribe(topic: string) {
    const program = spawn('mosquitto_sub', ['-h', '127.0.0.1', '-p', String(this.port), '-u', 'hubs', '-P', SECRET, '-t', topic, '-F', '%j'], { stdio: ['ignore', 'pipe', 'ignore'] });
    let rest = '';
    program.stdout.on('data', (chunk) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      this.messages.push(...lines.map((line) => JSON.parse(line)));
    });
    this.#programs.push(program);
  }

  stop() {
    for (const program of this.#programs) program.kill();
  }
}

const isOpen = (port: number, host = '127.0.0.1') =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host);
    socket.on('connect', () => (socket.destroy(), resolve(true)));
    socket.on('error', () => resolve(false));
  });

/** As much of a client of NATS as makes a stream and hears what it is sent. */
class Nats {
  readonly messages: { subject: string; payload: string }[] = [];
  #rest = Buffer.alloc(0);
  #subscriptions = 0;
  private constructor(readonly socket: Socket) {
    socket.on('data', (chunk) => this.#read(chunk));
    socket.write('CONNECT {"verbose":false,"pedantic":false}\r\n');
  }

  static connect() {
    return new Nats(connect(Number(NATS.port || 4222), NATS.hostname));
  }

  #read(chunk: Buffer) {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (;;) {
      const end = this.#rest.indexOf('\r\n');
      if (end < 0) return;
      const words = this.#rest.subarray(0, end).toString().split(' ');
      const isMessage = words[0] === 'MSG' || words[0] === 'HMSG';
      const size = isMessage ? Number(words.at(-1)) : 0;
      const whole = end + 2 + (isMessage ? size + 2 : 0);
      if (this.#rest.length < whole) return;
      const headers = words[0] === 'HMSG' ? Number(words.at(-2)) : 0;
      if (isMessage) this.messages.push({ subject: words[1] ?? '', payload: this.#rest.subarray(end + 2 + headers, end + 2 + size).toString() });
      else if (words[0] === 'PING') this.socket.write('PONG\r\n');
      this.#rest = this.#rest.subarray(whole);
    }
  }

  subscribe(subject: string) {
    this.socket.write(`SUB ${subject} ${(this.#subscriptions += 1)}\r\n`);
  }

  async ask(subject: string, body: unknown) {
    const [inbox, payload] = [`_INBOX.${randomUUID()}`, JSON.stringify(body)];
    this.subscribe(inbox);
    this.socket.write(`PUB ${subject} ${inbox} ${Buffer.byteLength(payload)}\r\n${payload}\r\n`);
    const answer = () => this.messages.find((message) => message.subject === inbox)?.payload;
    await expect.poll(answer, { message: subject }).toBeTruthy();
    return JSON.parse(answer() ?? 'null');
  }
}

let broker: Broker;
test.afterEach(() => broker?.stop());

test('events reach an MQTT broker that asks for a password', async ({ watched: page, service }) => {
  needs(['/usr/sbin/mosquitto', '/usr/bin/mosquitto_sub'].every(existsSync), 'mosquitto and mosquitto-clients');
  broker = await Broker.start(service.data);
  const { person, hub, device } = await sensor(service);
  await page.goto(person.page('/pipelines/new'));
  await signIn(page, person);
  await tabTo(page, /^Home Assistant/, 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('textbox', { name: 'Topic' })).toHaveValue('ble/{{deviceInstanceId}}');
  await type(page, 'URL', 'http://127.0.0.1');
  await page.keyboard.press('Enter');
  await expect(destination(page).getByLabel('URL')).toHaveAttribute('aria-invalid', 'true');
  await expect(destination(page).getByLabel('URL')).toHaveAccessibleDescription(/mqtt/);
  await inspect(page, 'a broker that is refused');
  await type(page, 'URL', `mqtt://127.0.0.1:${broker.port}`);

  await type(page, 'Topic', 'ble/{{deviceInstanceId');
  await page.keyboard.press('Enter');
  await expect(destination(page).getByRole('textbox', { name: 'Topic' }), 'shown at its field').toHaveAttribute('aria-invalid', 'true');
  await type(page, 'Topic', 'ble/{{deviceInstanceId}}');
  await tabTo(page, 'Credentials', 'combobox');
  await page.keyboard.type('User name');
  await type(page, 'User name', 'hubs');
  await type(page, 'Password', 'another password');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Home Assistant', level: 1 })).toBeVisible();
  await expect(page.getByText('User name and password (hubs): stored, and never shown', { exact: false })).toBeVisible();
  expect(await page.content()).not.toContain('another password');
  await inspect(page, 'a pipeline to a broker');

  // The broker says why it lets nobody in.
  broker.subscribe('#');
  await hear(hub);
  await press(page, 'Deliveries', 'link');
  await expect(page.getByText(/failed, will retry/).first()).toBeVisible();
  await expect(page.getByRole('region', { name: 'Deliveries' })).toContainText(/authori[sz]ed|password|credentials/i);
  await inspect(page, 'a delivery that the broker refuses');
  expect(broker.messages).toEqual([]);

  // The right password in place of the one that is stored; the form shows none.
  await press(page, 'Editor', 'link');
  await tabTo(page, 'Replace', 'button', destination(page));
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Credentials'), 'the focus is not lost with the button').toBeFocused();
  await expect(destination(page).getByLabel('Password')).toHaveValue('');
  await inspect(page, 'credentials that are replaced');
  await press(page, 'Keep the stored credentials');
  await expect(page.getByRole('button', { name: 'Replace' })).toBeFocused();
  await expect(page.getByRole('button', { name: 'Review and save…' }), 'nothing is changed').toHaveAttribute('aria-disabled', 'true');
  await press(page, 'Replace');
  await expect(destination(page).getByLabel('User name'), 'what is no secret need not be typed again').toHaveValue('hubs');
  await type(page, 'Password', SECRET);
  await page.keyboard.press('Enter');
  const difference = page.getByRole('dialog').getByRole('region', { name: 'Changes of the definition' });
  await expect(difference).toContainText('"password": "(new)"');
  expect(await page.getByRole('dialog').textContent()).not.toContain(SECRET);
  await confirm(page, 'Save');
  await expect(page.getByText('Revision 2 was saved.')).toBeVisible();
  expect(await page.content()).not.toContain(SECRET);
  expect((await stored(person)).destination).toMatchObject({ kind: 'MQTT', retain: true, homeAssistantDiscovery: true, auth: { type: 'BASIC', username: 'hubs' } });

  // What waits is sent again at once.
  await press(page, 'Status', 'link');
  await press(page, 'Resume…');
  await confirm(page, 'Resume');
  const reading = () => broker.messages.find(({ topic }) => topic === `ble/${device}`);
  await expect.poll(reading, { message: 'the event arrives' }).toBeTruthy();
  expect(JSON.parse(reading()?.payload ?? '')).toMatchObject({ deviceInstanceId: device, name: HOSTILE });
  const announced = broker.messages.find(({ topic }) => topic === `homeassistant/sensor/hub_cloud_${device}/temperature/config`);
  expect(JSON.parse(announced?.payload ?? 'null')).toMatchObject({ device_class: 'temperature' });
  await press(page, 'Deliveries', 'link');
  await press(page, 'Delivered');
  await expect(page.getByRole('cell', { name: 'delivered', exact: true })).toBeVisible();

  // As text: what is stored is not in it, and stays.
  await press(page, 'Editor', 'link');
  await press(page, 'JSON');
  const text = page.getByLabel('Definition');
  await expect(text).toHaveValue(/"username": "hubs"/);
  const written = await text.inputValue();
  expect(written).not.toContain('password');
  const definition = JSON.parse(written);
  await text.fill(JSON.stringify({ ...definition, steps: [], destination: { ...definition.destination, qos: 2 } }));
  await press(page, 'Form');
  await expect(page.getByLabel('Quality of service')).toHaveValue('2');
  await press(page, /^Review and save/);
  await confirm(page, 'Save');
  await expect(page.getByText('Revision 3 was saved.')).toBeVisible();
  const before = broker.messages.length;
  await hear(hub);
  await expect.poll(() => broker.messages.length, { message: 'the secret was kept' }).toBeGreaterThan(before);
  await safe(page, 'a broker');
});

test('events reach a stream of NATS', async ({ watched: page, service }) => {
  needs(await isOpen(Number(NATS.port || 4222), NATS.hostname), `NATS at ${NATS.href}`);
  const { person, hub, device } = await sensor(service);
  const subject = `console-${randomUUID()}`;
  const nats = Nats.connect();
  await page.goto(person.page('/pipelines/new?template=empty'));
  await signIn(page, person);
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type('Stream');
  await tabTo(page, 'Kind', 'combobox', destination(page));
  await page.keyboard.type('NATS');
  await expect(destination(page).getByLabel('Subject'), 'another kind has fields of its own').toHaveValue('readings.{{deviceInstanceId}}');
  await type(page, 'URL', NATS.href);
  await type(page, 'Subject', `${subject}.*`);
  await tabTo(page, 'Credentials', 'combobox');
  await page.keyboard.type('Token');
  await type(page, 'Token', SECRET);
  await destination(page).getByLabel('TLS first, before the server greeting').press('Space');
  await press(page, 'Create the pipeline');
  await expect(destination(page).locator('[aria-invalid="true"]').first()).toBeFocused();
  await inspect(page, 'a subject that is refused');
  await type(page, 'Subject', `${subject}.{{deviceInstanceId}}`);
  await page.keyboard.press('Enter');
  const tlsFirst = destination(page).getByLabel('TLS first, before the server greeting');
  await expect(tlsFirst, 'a refusal stands at its box').toHaveAccessibleDescription(/tls:/);
  await expect(tlsFirst).toBeFocused();
  await inspect(page, 'a box that is refused');
  await page.keyboard.press('Space');
  await press(page, 'Create the pipeline');
  await expect(page.getByRole('heading', { name: 'Stream', level: 1 })).toBeVisible();
  await expect(page.getByText('Token: stored, and never shown', { exact: false })).toBeVisible();
  expect(await page.content()).not.toContain(SECRET);
  expect((await stored(person)).destination).toEqual({ kind: 'NATS', url: expect.stringContaining('nats://'), subject: `${subject}.{{deviceInstanceId}}`, auth: { type: 'BEARER' } });

  // No stream takes the subject yet: the page says what is missing.
  await hear(hub);
  await press(page, 'Deliveries', 'link');
  await expect(page.getByRole('region', { name: 'Deliveries' })).toContainText(/stream/);
  await inspect(page, 'a delivery that no stream takes');
  await nats.ask(`$JS.API.STREAM.CREATE.${subject}`, { name: subject, subjects: [`${subject}.>`], storage: 'memory' });
  await press(page, 'Delivered');
  await expect(page.getByRole('cell', { name: 'delivered', exact: true })).toBeVisible();
  // What is acknowledged is in the stream.
  const { message } = await nats.ask(`$JS.API.STREAM.MSG.GET.${subject}`, { last_by_subj: `${subject}.${device}` });
  expect(JSON.parse(Buffer.from(message.data, 'base64').toString())).toMatchObject({ deviceInstanceId: device, name: HOSTILE });
  await nats.ask(`$JS.API.STREAM.DELETE.${subject}`, {});
  nats.socket.destroy();
  await safe(page, 'a stream');
});

test('a kind that the console has no words for is edited by its members', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  // As a service that has one more kind describes itself.
  await page.route('**/openapi.json', async (route) => {
    const description = await (await route.fetch()).json();
    description.components.schemas.CreatePipelineRequest.properties.destination['x-kinds'].push('KAFKA');
    await route.fulfill({ json: description });
  });
  await page.goto(person.page('/pipelines/new?template=empty'));
  await signIn(page, person);
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type('Log');
  await tabTo(page, 'Kind', 'combobox', destination(page));
  await page.keyboard.type('KAFKA');
  await type(page, 'URL', 'kafka://broker.invalid');
  await type(page, 'Additional member', 'topicName');
  await page.keyboard.press('Enter');
  await expect(destination(page).getByLabel('Topic name'), 'a member that is added has the focus').toBeFocused();
  await page.keyboard.type('readings');
  await inspect(page, 'a kind without words');
  await page.keyboard.press('Enter');
  await expect(destination(page).getByLabel('Kind'), 'this service does not know it').toHaveAttribute('aria-invalid', 'true');
  await press(page, 'JSON');
  await expect(page.getByLabel('Definition')).toHaveValue(/"topicName": "readings"/);
  await safe(page, 'a kind without words');
});

test('events are stored as objects', async ({ watched: page, service }) => {
  const objects: { path: string; authorization: string; size: number }[] = [];
  const store = createServer(async (request: IncomingMessage, response) => {
    let size = 0;
    for await (const chunk of request) size += (chunk as Buffer).length;
    if (request.method === 'PUT') objects.push({ path: request.url ?? '', authorization: request.headers.authorization ?? '', size });
    response.setHeader('etag', `"${randomUUID()}"`).end();
  });
  await new Promise<void>((resolve) => store.listen(0, '127.0.0.1', resolve));
  const endpoint = `http://127.0.0.1:${(store.address() as AddressInfo).port}`;
  const { person, hub } = await sensor(service);
  await page.goto(person.page('/pipelines/new'));
  await signIn(page, person);
  await tabTo(page, /^S3 archive/, 'link');
  await page.keyboard.press('Enter');
  await type(page, 'URL', 's3://readings/cold');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Credentials'), 'a store asks for credentials').toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('Credentials')).toBeFocused();
  await page.keyboard.type('Access key');
  await type(page, 'Access key id', 'hubs');
  await type(page, 'Endpoint', endpoint);
  await type(page, 'Seconds per object', '5');
  await page.keyboard.press('Enter');
  await expect(page.locator('[aria-invalid="true"]').first()).toBeFocused();
  await inspect(page, 'a store that is refused');
  await type(page, 'Seconds per object', '10');
  await page.keyboard.press('Enter');
  await expect(destination(page).getByLabel('Secret access key')).toHaveAttribute('aria-invalid', 'true');
  await expect(destination(page).getByLabel('Secret access key')).toBeFocused();
  await page.keyboard.type(SECRET);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Archive', level: 1 })).toBeVisible();
  await expect(page.getByText('Access key (hubs): stored, and never shown', { exact: false })).toBeVisible();
  expect(await page.content()).not.toContain(SECRET);
  expect((await stored(person)).destination).toMatchObject({ kind: 'S3', url: 's3://readings/cold', everySeconds: 10, auth: { type: 'S3', accessKeyId: 'hubs', endpoint } });
  await inspect(page, 'a pipeline to a store');
  await hear(hub);
  await expect.poll(() => objects.length, { message: 'an object is stored', timeout: 60_000 }).toBe(1);
  expect(objects[0]?.path).toMatch(/^\/readings\/cold\/20\d\d\/\d\d\/\d\d\/\d\d\/[^/]+\.ndjson\.zst$/);
  expect(objects[0]?.authorization).toContain('Credential=hubs/');
  expect(objects[0]?.size).toBeGreaterThan(0);
  await press(page, 'Deliveries', 'link');
  await expect(page.getByRole('cell', { name: 'delivered', exact: true })).toBeVisible();

  // Another key of the same store: where that is stays.
  await press(page, 'Editor', 'link');
  await expect(destination(page).getByLabel('Seconds per object')).toHaveValue('10');
  await press(page, 'Replace');
  await expect(destination(page).getByLabel('Endpoint')).toHaveValue(endpoint);
  await type(page, 'Access key id', 'another');
  await press(page, /^Review and save/);
  await expect(destination(page).getByLabel('Secret access key'), 'it needs its secret').toHaveAttribute('aria-invalid', 'true');
  await press(page, 'Discard changes');
  await expect(page.getByText('Access key (hubs): stored', { exact: false })).toBeVisible();
  store.close();
  await safe(page, 'a store');
});
