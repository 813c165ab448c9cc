//! What is built and handed out: pipelines, rollouts, claim codes and apps, by keyboard.

import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { address, expect, HOSTILE, inspect, PASSWORD, type Person, press, safe, type Service, signIn, tabTo, test } from './harness';
import { program, Publisher } from './publisher';

type Watched = Parameters<typeof inspect>[0];

/** Goes to a button with Tab, as those do who have no pointer: for the main task of each page. */
async function reach(page: Watched, name: string | RegExp, role: 'button' | 'link' = 'button') {
  await tabTo(page, name, role);
  await page.keyboard.press('Enter');
}

/** Presses a button of the dialog that is open. */
const confirm = (page: Watched, name: string | RegExp) => page.getByRole('dialog').getByRole('button', { name, exact: true }).press('Enter');

test('a pipeline is made, tried, compared and saved', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(person.page('/pipelines'));
  await signIn(page, person);
  await expect(page.getByText('No pipelines yet')).toBeVisible();
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  await hub.hear([1, 2, 3].map((number) => ({ address: address(number), name: number === 1 ? HOSTILE : `Tag ${number}`, rssi: -60 - number })));

  // From a template, with each problem shown at its place.
  await reach(page, 'Create a pipeline', 'link');
  await inspect(page, 'templates of pipelines');
  await press(page, /^HTTP webhook/, 'link');
  await expect(page.getByLabel('Name', { exact: true })).toHaveValue('Webhook');
  await page.getByLabel('Name', { exact: true }).fill(HOSTILE);
  await page.getByLabel('Advertisers').selectOption('All');
  await page.getByLabel('Next step').selectOption('filter');
  await reach(page, 'Add step');
  await expect(page.getByLabel('Condition'), 'a step that is added has the focus').toBeFocused();
  await page.keyboard.type('rsi > -62');
  await page.getByLabel('Start the pipeline immediately').uncheck();
  await press(page, 'Create the pipeline');
  const step = page.locator('[data-step="1"]');
  await expect(step.getByText(/there is no member or quantity `rsi`/), 'beside its field').toBeVisible();
  await expect(page.getByLabel('Condition')).toBeFocused();
  await page.getByLabel('Condition').fill('rssi > -62');
  await page.keyboard.press('Enter');
  await expect(page.locator('[name="/destination/url"]')).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'a definition that is refused');
  await page.getByLabel('URL').fill('https://receiver.invalid/readings');

  // Steps are moved by the keyboard and keep their contents.
  await page.getByRole('button', { name: 'Move Step 2, Filter up' }).press('Alt+ArrowUp');
  await expect(page.locator('[data-step="0"]').getByLabel('Condition')).toHaveValue('rssi > -62');
  await expect(page.getByRole('button', { name: 'Move Step 1, Filter down' })).toBeFocused();
  await reach(page, 'Create the pipeline');
  await expect(page.getByRole('dialog')).toContainText(/whsec_[\w+/=-]{20,}/);
  await expect(page.getByRole('dialog')).toContainText('shown only once');
  await inspect(page, 'a signing secret');
  await confirm(page, 'I have copied it');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page).toHaveURL(/tab=try/);

  // Its trial: one event passes, two are dropped.
  await page.getByLabel('How many').fill('200');
  await page.keyboard.press('Enter');
  await expect(page.getByText('enter a number from 1 to 100')).toBeVisible();
  await page.getByLabel('How many').fill('10');
  await page.keyboard.press('Enter');
  await expect(page.getByText('3 events tried.')).toBeVisible();
  await expect(page.getByText('delivered', { exact: true })).toHaveCount(1);
  await expect(page.getByText('dropped by step 1')).toHaveCount(2);

  // A draft that was not saved is tried beside what is.
  await press(page, 'Editor', 'link');
  await expect(page.getByRole('button', { name: 'Review and save…' })).toHaveAttribute('aria-disabled', 'true');
  await page.getByLabel('Condition').fill('rssi > -63');
  await expect(page.getByText('Not saved yet.')).toBeVisible();
  await inspect(page, 'the editor');
  await press(page, 'Try the draft');
  await page.getByRole('button', { name: 'Try', exact: true }).press('Enter');
  await expect(page.getByText('saved: dropped by step 1, different result')).toHaveCount(1);
  await page.locator('details.card').first().locator('summary').first().press('Enter');
  await inspect(page, 'a trial');
  await page.getByLabel('Input').selectOption('body');
  await page.getByLabel('Event', { exact: true }).fill('{"rssi":');
  await press(page, 'Try');
  await expect(page.getByText(/^This is not valid JSON/i)).toBeVisible();

  // The same as text, and what is no JSON is said.
  await press(page, 'Editor', 'link');
  await press(page, 'JSON');
  const text = page.getByLabel('Definition');
  await expect(text, 'the form and the text are one draft').toHaveValue(/rssi > -63/);
  const good = await text.inputValue();
  await text.fill(good.slice(0, -1));
  await expect(page.getByText(/This is not valid JSON; the last valid text is used/)).toBeVisible();
  await text.fill(good.replace('"when"', '"whem"'));
  await press(page, /^Review and save/);
  await expect(page.getByText('/steps/0/whem', { exact: true })).toBeVisible();
  await inspect(page, 'a definition as text');
  await text.fill(good);

  // What the change does to stored events is shown before it is saved.
  await reach(page, /^Review and save/);
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('1 newly delivered');
  await expect(dialog).toContainText('2 same result');
  await expect(dialog.getByRole('region', { name: 'Changes of the definition' })).toContainText('rssi > -63');
  await inspect(page, 'a change before it is saved');
  await confirm(page, 'Save');
  await expect(page.getByText('Revision 2 was saved.')).toBeVisible();

  // A secret is shown nowhere, and kept for its server alone.
  await page.getByRole('button', { name: 'Form', exact: true }).press('Enter');
  await page.getByLabel('Credentials').selectOption('Token');
  await page.getByLabel('Token', { exact: true }).fill('a-secret-token');
  await press(page, /^Review and save/);
  await expect(dialog.getByRole('region', { name: 'Changes of the definition' })).toContainText('"token": "(new)"');
  await expect(dialog).not.toContainText('a-secret-token');
  await confirm(page, 'Save');
  await expect(page.getByText('Token: stored, and never shown.')).toBeVisible();
  await page.getByLabel('URL').fill('https://another.invalid/');
  await press(page, /^Review and save/);
  await expect(page.getByText('Credentials must be given again')).toBeVisible();
  await press(page, 'Discard changes');
  await press(page, 'Remove');
  await press(page, /^Review and save/);
  await confirm(page, 'Save');
  await expect(page.getByText('Revision 4 was saved.')).toBeVisible();

  await press(page, 'Delete…');
  await confirm(page, 'Delete the pipeline');
  await expect(page.getByText('No pipelines yet')).toBeVisible();
  await safe(page, 'pipelines');
});

test('a pipeline that is not saved is kept while the console is open', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const stored = { name: 'Hook', enabled: false, source: {}, steps: [{ op: 'filter', when: 'rssi > -62' }], destination: { kind: 'HTTP', url: 'https://receiver.invalid/' } };
  const { pipelineUuid } = await person.call('POST', '/tenant/data-pipelines', stored);
  await page.goto(person.page(`/pipelines/${pipelineUuid}`));
  await signIn(page, person);
  const condition = page.getByLabel('Condition');
  await condition.fill('rssi > -70');
  const above = page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Pipelines' });
  await above.press('Enter');
  await expect(page.getByText('Hook is not saved. Your changes are kept')).toBeVisible();

  // It is there again, and is still distinguished from what somebody saves meanwhile.
  await person.call('PUT', `/tenant/data-pipelines/${pipelineUuid}`, { ...stored, description: 'Of somebody else' });
  await press(page, 'Hook', 'link');
  await expect(condition).toHaveValue('rssi > -70');
  await expect(page.getByText('Revision 2 was saved in the meantime. Your draft is based on revision 1')).toBeVisible();
  await press(page, /^Discard my draft/);
  await expect(condition).toHaveValue('rssi > -62');
  await above.press('Enter');
  await press(page, 'Hook', 'link');
  await expect(page.getByText('Revision 2 is saved.')).toBeVisible();
  await expect(condition, 'what was discarded does not return').toHaveValue('rssi > -62');

  // One that is new is kept by its template.
  await above.press('Enter');
  await press(page, 'New pipeline', 'link');
  await press(page, /^HTTP webhook/, 'link');
  await page.getByLabel('URL').fill('https://another.invalid/');
  await press(page, 'Select another template', 'link');
  await expect(page.getByText('The new pipeline is not saved. Your changes are kept')).toBeVisible();
  await press(page, /^MQTT broker/, 'link');
  await expect(page.getByLabel('URL'), 'another template is as it was').toHaveValue('mqtts://');
  await press(page, 'Select another template', 'link');
  await press(page, /^HTTP webhook/, 'link');
  await expect(page.getByLabel('URL')).toHaveValue('https://another.invalid/');

  // The browser asks before it leaves, until there is nothing to lose.
  const asked: string[] = [];
  page.on('dialog', (dialog) => (asked.push(dialog.type()), dialog.accept()));
  await page.reload();
  expect(asked).toEqual(['beforeunload']);
  await expect(page.getByLabel('URL')).toHaveValue('');
  await page.getByLabel('URL').fill('https://another.invalid/');
  await press(page, 'Discard changes');
  await expect(page.getByLabel('URL')).toHaveValue('');
  await page.reload();
  await expect(page.getByRole('button', { name: 'Create the pipeline' })).toBeVisible();
  expect(asked, 'nothing is lost').toHaveLength(1);
  await safe(page, 'pipelines that are not saved');
});

test('the help of expressions says what the service does', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(person.page('/pipelines/new?template=empty'));
  await signIn(page, person);
  await page.getByLabel('Next step').selectOption('filter');
  await press(page, 'Add step');
  const help = page.getByRole('group').filter({ has: page.getByText('Expression syntax') });
  await help.getByText('Expression syntax').press('Enter');
  await expect(help.getByText('Functions')).toBeVisible();
  await inspect(page, 'the help of expressions');

  // All that the reference has is there.
  const reference = readFileSync(join(import.meta.dirname, '../../docs/pipelines.md'), 'utf8');
  const [, operators, functions] = /\n\| \| Strongest first([^]*?)\n\n\| Function([^]*?)\n\n/.exec(reference) ?? [];
  const names = [...(functions ?? '').matchAll(/`(\w+\()/g), ...(operators ?? '').matchAll(/^\| (?:`.*?`(?:, )?)+/gm)].flatMap(([cell, name]) => name ?? [...cell.matchAll(/`(.*?)`/g)].map(([, sign]) => sign ?? ''));
  expect(names.length, 'functions and operators of the reference').toBeGreaterThan(40);
  const syntax = (await help.locator('dt').allTextContents()).join(' ');
  expect(names.filter((name) => !syntax.includes(name)), 'what the help leaves out').toEqual([]);

  // Each example gives what it says, of the event of the reference.
  const examples = await help.locator('dd').evaluateAll((all) => all.map((one) => [...one.querySelectorAll('code')].map(({ textContent }) => textContent ?? '')));
  const set = Object.fromEntries(examples.map(([example], index) => [`example${index}`, example]));
  const definition = { name: 'Examples', enabled: false, source: {}, steps: [{ op: 'map', set }], destination: { kind: 'HTTP', url: 'https://receiver.invalid/' } };
  const { pipelineUuid } = await person.call('POST', '/tenant/data-pipelines', definition);
  const event = JSON.parse(/```json event\n([^]*?)```/.exec(reference)?.[1] ?? '');
  const { results } = await person.call('POST', `/tenant/data-pipelines/${pipelineUuid}/test-run`, { event });
  expect(examples.map(([example], index) => [example, JSON.stringify(results[0].output[`example${index}`])])).toEqual(examples);
});

test('a pipeline is looked after', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  // A step that fails makes dead letters at once.
  const definition = {
    name: HOSTILE,
    enabled: false,
    source: {},
    steps: [{ op: 'script', source: 'function process(event) { throw new Error(event.name); }' }],
    destination: { kind: 'HTTP', url: 'https://receiver.invalid/readings' },
  };
  const { pipelineUuid } = await person.call('POST', '/tenant/data-pipelines', definition);
  await page.goto(person.page(`/pipelines/${pipelineUuid}`));
  await signIn(page, person);
  const dialog = page.getByRole('dialog');
  await press(page, 'Status', 'link');
  await expect(page.getByText('Paused; events wait.').first()).toBeVisible();
  await press(page, 'Resume…');
  await page.getByLabel('Continue').selectOption('TIME');
  await page.getByLabel('With events received at').fill('2199-01-01T00:00:01');
  await confirm(page, 'Resume');
  await expect(dialog.getByText(/future/).last()).toBeVisible();
  await page.getByLabel('Continue').selectOption('CURSOR');
  await confirm(page, 'Resume');
  await expect(page.getByText('The pipeline is running.')).toBeVisible();
  await hub.hear([{ address: address(9), name: HOSTILE, rssi: -40 }]);
  await press(page, 'Dead letters', 'link');
  await expect(page.getByRole('region', { name: 'Dead letters' })).toContainText(HOSTILE);
  await inspect(page, 'dead letters');
  await press(page, 'Retry all');
  await expect(dialog).toContainText('current revision 1');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);

  // Deliveries: the receiver does not exist.
  await person.call('PUT', `/tenant/data-pipelines/${pipelineUuid}`, { ...definition, steps: [], enabled: true });
  await hub.hear([{ address: address(10), name: 'Tag', rssi: -40 }]);
  await page.goto(person.page(`/pipelines/${pipelineUuid}?tab=deliveries`));
  await expect(page.getByText('failed, will retry').first()).toBeVisible();
  await page.getByRole('button', { name: 'Delivered', exact: true }).press('Enter');
  await expect(page.getByText('No deliveries with this outcome in the last 7 days')).toBeVisible();
  await page.getByRole('button', { name: 'Show all deliveries' }).press('Enter');

  await press(page, 'Replay', 'link');
  await page.getByLabel('Received from').fill('2199-01-01T00:00:01');
  await press(page, 'Start the replay');
  await expect(page.locator('[aria-invalid="true"]').first()).toBeVisible();
  await page.getByLabel('Received from').fill('2026-01-01T00:00:01');
  await press(page, 'Start the replay');
  await expect(page.getByText('The replay was started.')).toBeVisible();
  await page.getByRole('button', { name: 'Cancel', exact: true }).press('Enter');
  await inspect(page, 'a replay before it is cancelled');
  await confirm(page, 'Cancel the replay');
  await expect(page.getByText('cancelled', { exact: true })).toBeVisible();

  await press(page, 'Status', 'link');
  await press(page, 'Replace…');
  await confirm(page, 'Replace the secret');
  await expect(dialog).toContainText(/whsec_[\w+/=-]{20,}/);
  await confirm(page, 'I have copied it');
  await expect(page.getByText('The previous secret also signs messages')).toBeVisible();
  await inspect(page, 'the condition');

  // The list, and an event that the page of live events offers.
  await press(page, 'Live', 'link');
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  await hub.hear([{ address: address(11), name: 'Door', rssi: -40 }]);
  await page.getByRole('button', { name: 'Door' }).press('Enter');
  await press(page, 'Test a pipeline with it', 'link');
  const [event] = await person.call('GET', '/tenant/ble/events?size=1');
  await expect(page).toHaveURL(new RegExp(`/pipelines\\?event=${event.bleEventId}$`));
  await expect(page.getByText('Select the pipeline to test with event')).toBeVisible();
  await inspect(page, 'pipelines');
  await press(page, HOSTILE, 'link');
  await expect(page.getByLabel('Id of the event')).toHaveValue(String(event.bleEventId));
  await press(page, 'Try');
  await expect(page.getByText('1 event tried.')).toBeVisible();
  await press(page, 'Delete…');
  await confirm(page, 'Delete the pipeline');
  await expect(page.getByText('No pipelines yet')).toBeVisible();
  await safe(page, 'pipelines');
});

test('claim codes are made, shown, printed and revoked', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant(HOSTILE);
  await page.goto(person.page('/claim-codes'));
  await signIn(page, person);
  await expect(page.getByText('No claim codes')).toBeVisible();
  await reach(page, 'Create the first code');
  await page.getByLabel('Hubs per code').fill('0');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/must be between 1 and/)).toBeVisible();
  await expect(page.getByLabel('Hubs per code')).toBeFocused();
  await inspect(page, 'a code that is refused');
  await page.getByLabel('Hubs per code').fill('2');
  await page.getByLabel('Note').fill(HOSTILE);
  const { userUuid } = await service.call('POST', '/auth/login', { email: person.email, password: PASSWORD });
  await page.getByLabel('Owner').fill(userUuid);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('button', { name: 'Copy the code' })).toBeVisible();
  const [first] = await person.call('GET', '/tenant/hubs/claim-codes');
  await expect(dialog.getByText(first.claimCode, { exact: true })).toBeVisible();
  await expect(dialog.getByRole('img', { name: `QR code of ${first.claimCode}` })).toBeVisible();
  await expect(dialog).toContainText('opens the page where the owner');
  expect(first.pairingUrl).toBe(`${service.url}/app/pair#${first.claimCode}`);
  await inspect(page, 'a claim code');
  await page.keyboard.press('Escape');

  // A sheet of labels, in one go.
  await press(page, 'Create codes');
  await expect(page.getByLabel('Owner'), 'nothing of the last code is left').toHaveValue('');
  await page.getByLabel('Codes', { exact: true }).fill('24');
  await page.getByLabel('Note').fill('Dock');
  await page.keyboard.press('Enter');
  await expect(page.getByText('24 labels, 24 per A4 page')).toBeVisible();
  await expect(page.getByRole('img', { name: /^QR code of/ })).toHaveCount(24);
  await expect(page.getByText('Dock 24 of 24')).toBeVisible();
  const all: { claimCode: string }[] = await person.call('GET', '/tenant/hubs/claim-codes?size=100');
  expect(all).toHaveLength(25);
  for (const { claimCode } of all.slice(0, 24)) await expect(page.getByText(claimCode, { exact: true })).toHaveCount(1);
  await inspect(page, 'labels');
  await page.emulateMedia({ media: 'print' });
  await expect(page.getByRole('navigation', { name: 'Pages' }), 'paper has labels alone').toBeHidden();
  await expect(page.getByRole('button', { name: 'Print…' })).toBeHidden();
  const pdf = await page.pdf({ preferCSSPageSize: true });
  expect(pdf.toString('latin1').match(/\/Type \/Page\b(?!s)/g), '24 labels on one page').toHaveLength(1);
  await page.emulateMedia({ media: null });

  // Some of the list, and the end of a code.
  await service.call('POST', '/v1/hubs/claim', { claimCode: first.claimCode, deviceInstanceId: 'hardware', agentVersion: '1.0.0' });
  await press(page, 'Claim codes', 'link');
  await expect(page.getByText('1 of 2', { exact: true })).toBeVisible();
  await page.getByLabel(`Select ${first.claimCode}`).press('Space');
  await expect(page.getByRole('link', { name: 'Print 1 label' })).toBeVisible();
  await inspect(page, 'claim codes');
  await page.getByRole('button', { name: `Revoke ${first.claimCode}` }).press('Enter');
  await expect(dialog).toContainText('Hubs claimed with it are not affected');
  await confirm(page, 'Revoke the code');
  await expect(page.getByText('revoked', { exact: true })).toBeVisible();
  const unused = all[0]?.claimCode ?? '';
  await page.getByRole('button', { name: `Delete ${unused}` }).press('Enter');
  await confirm(page, 'Delete the code');
  await expect(page.getByText(unused)).toHaveCount(0);

  // Whoever looks on sees no code in full.
  const reader = await service.person();
  reader.tenant = person.tenant;
  await person.call('POST', `/tenant/tenants/${person.tenant}/members`, { personaUuid: reader.personaUuid, role: 'VIEWER' });
  const shown: { claimCode: string }[] = await reader.call('GET', '/tenant/hubs/claim-codes');
  expect(shown[0]?.claimCode).toMatch(/^\w{4}-…$/);
  const definition = { name: HOSTILE, enabled: false, source: {}, destination: { kind: 'HTTP', url: 'https://receiver.invalid/' } };
  const pipeline = await person.call('POST', '/tenant/data-pipelines', definition);
  await page.context().clearCookies();
  await page.goto(reader.page('/claim-codes'));
  await signIn(page, reader);
  await expect(page.getByText('your role shows only the beginning of each code')).toBeVisible();
  await expect(page.getByText(/^\w{4}-…$/).first()).toBeVisible();
  await expect(page.getByRole('button', { name: /^(Delete|Revoke|Show|Create)/ })).toHaveCount(0);
  for (const [path, name] of [
    ['/rollouts', 'Rollouts'],
    ['/apps', 'Apps'],
    [`/pipelines/${pipeline.pipelineUuid}?tab=condition`, HOSTILE],
    [`/pipelines/${pipeline.pipelineUuid}`, HOSTILE],
  ] as const) {
    await page.goto(reader.page(path));
    await expect(page.getByRole('heading', { name, level: 1 })).toBeVisible();
    await expect(page.getByText('https://receiver.invalid/').or(page.getByText('No update policies')).or(page.getByText('No apps yet')).or(page.getByText('Processed up to')).first()).toBeVisible();
    await expect(page.getByRole('button', { name: /^(New|Create|Delete|Pause|Resume|Move|Replace|Review)/ })).toHaveCount(0);
  }
  await inspect(page, 'a pipeline for those who look on');
  await safe(page, 'claim codes');
});

test('an app is published, and a rollout halted', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const publisher = new Publisher(service, ['agent', 'app']);
  await page.goto(person.page('/apps'));
  await signIn(page, person);
  await expect(page.getByText('No apps yet')).toBeVisible();
  await reach(page, 'Create an app');
  await page.getByLabel('Name').fill('No Good Name');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Name')).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Name').fill('cold-chain');
  await page.getByLabel('Description').fill(HOSTILE);
  await press(page, 'Create the app');
  await expect(page.getByText('No releases yet')).toBeVisible();
  await expect(page.getByText(HOSTILE)).toBeVisible();

  const config = join(publisher.files, 'app.toml');
  writeFileSync(config, 'entryPoint = "bin/run"\n');
  const file = publisher.sign('app', 'cold-chain', '1.0.0', ['--app', config]);
  await press(page, 'Publish the first release');
  await confirm(page, 'Publish');
  await expect(page.getByText('Select the file that ends with .manifest.json')).toBeVisible();
  await page.getByLabel('Manifest').setInputFiles(`${file}.manifest.json`);
  await page.getByLabel('Signature').setInputFiles(`${file}.manifest.json.minisig`);
  await page.getByLabel('File', { exact: true }).setInputFiles(`${file}.manifest.json`);
  await confirm(page, 'Publish');
  await expect(page.getByText(/this is not the file that was signed/i)).toBeVisible();
  await expect(page.getByText('file missing')).toBeVisible();
  await inspect(page, 'a file that was not signed');
  await page.getByLabel('File', { exact: true }).setInputFiles(file);
  await confirm(page, 'Publish');
  await expect(page.getByText('1.0.0 for any is ready.')).toBeVisible();
  await expect(page.getByText('ready', { exact: true })).toBeVisible();
  await inspect(page, 'an app');

  // A policy, and a release for it.
  await press(page, 'Rollouts', 'link');
  await expect(page.getByText('No update policies')).toBeVisible();
  await reach(page, 'Create a policy');
  await page.getByLabel('Version').fill('newest');
  await page.getByLabel('First wave').fill('0');
  await page.getByLabel('Version').press('Enter');
  await expect(page.getByText('Must be a semantic version of at most 64 characters')).toBeVisible();
  await expect(page.getByText('Must be from 1 to 100')).toBeVisible();
  await inspect(page, 'a policy that is refused');
  await page.getByLabel('Version').fill('');
  await page.getByLabel('First wave').fill('10');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No rollouts')).toBeVisible();
  await expect(page.getByText('10 % of the hubs, then 30 % more every 1 h')).toBeVisible();

  await publishAgent(service, person, publisher);
  const { claimCode } = await person.call('POST', '/tenant/hubs/claim-codes', {});
  const os = { name: 'debian', version: '12', arch: 'x86_64' };
  const claim = { claimCode, deviceInstanceId: 'x86', hubIdentifier: HOSTILE, agentVersion: '0.9.0', os };
  const hub = await service.call('POST', '/v1/hubs/claim', claim);
  const bar = page.locator('.bar').first();
  await expect(bar).toContainText('1.0.0, 10 %');

  // The rest of the hubs at once, one of which fails.
  await press(page, 'Change…');
  await page.getByLabel('First wave').fill('100');
  await page.keyboard.press('Enter');
  await expect(bar).toContainText('1.0.0, 100 %');
  await failUpdate(service, hub);
  const reasons = page.getByRole('region', { name: 'Failures by reason' });
  await expect(reasons).toContainText('NO_SPACE');
  await expect(reasons.getByRole('link', { name: HOSTILE })).toBeVisible();
  await inspect(page, 'a rollout');
  await page.getByRole('heading', { name: 'Waves and halt conditions' }).scrollIntoViewIfNeeded();
  await expect(page.getByRole('button', { name: 'Halt…' }), 'always in view').toBeInViewport();
  await reach(page, 'Halt…');
  await expect(page.getByRole('dialog')).toContainText('No more hubs get the release.');
  await inspect(page, 'what halting does');
  await confirm(page, 'Halt the rollout');
  await expect(bar).toContainText('halted');
  await press(page, 'Resume…');
  await confirm(page, 'Resume the rollout');
  await expect(bar).toContainText('running');
  await press(page, 'Rollouts', 'link');
  await expect(page.getByRole('link', { name: 'All hubs of this tenant' })).toBeVisible();
  await inspect(page, 'update policies');
  await press(page, 'Abort…');
  await confirm(page, 'Abort the rollout');
  await expect(page.getByText('aborted', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: /^(Halt|Resume|Abort)…/ })).toHaveCount(0);

  // Of another app, no release is offered until its own are known.
  const { appUuid } = await person.call('POST', '/tenant/apps', { name: 'other' });
  await page.goto(person.page(`/hubs/${hub.hubUuid}`));
  await press(page, 'Install app');
  await page.getByLabel('App', { exact: true }).selectOption('cold-chain');
  const release = page.getByLabel('Release', { exact: true });
  await expect(release).toContainText('1.0.0 (any)');
  let answer = () => {};
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  await page.route(`**/tenant/apps/${appUuid}/releases*`, async (route) => {
    await isAnswered;
    await route.continue();
  });
  await page.getByLabel('App', { exact: true }).selectOption('other');
  await expect(release).toBeHidden();
  answer();
  await expect(page.getByText('This app has no release that the hub can run')).toBeVisible();
  publisher.remove();
  await safe(page, 'rollouts');
});

/** Takes the job of a hub, as its agent does, and fails. */
async function failUpdate(service: Service, { hubUuid, accessToken }: { hubUuid: string; accessToken: string }) {
  const authorization = { authorization: `Bearer ${accessToken}` };
  let job: { hubJobUuid: string } | undefined;
  await expect
    .poll(async () => (job = (await service.call('GET', `/v1/hubs/${hubUuid}/desired-state`, undefined, authorization)).jobs[0]), { message: 'the hub gets its job' })
    .toBeDefined();
  const failed = { eventUuid: randomUUID(), kind: 'FAILED', message: HOSTILE, detail: { reason: 'NO_SPACE' }, occurredAt: new Date().toISOString() };
  await service.call('POST', `/v1/hubs/${hubUuid}/jobs/${job?.hubJobUuid}/events`, failed, authorization);
}

/** Publishes a release of the agent as the platform does. */
async function publishAgent(service: Service, person: Person, publisher: Publisher) {
  program(['admin', 'create', '--email', person.email, '--password-stdin', '--data-dir', service.data], `${PASSWORD}\n`);
  const { accessToken } = await service.call('POST', '/auth/login', { email: person.email, password: PASSWORD });
  const file = publisher.sign('agent', 'hub-agent', '1.0.0');
  const [manifest, signature] = ['.manifest.json', '.manifest.json.minisig'].map((suffix) => readFileSync(file + suffix, 'utf8'));
  const { uploadUrl } = await service.call('POST', '/platform/agent-releases', { channel: 'stable', manifest, signature }, { authorization: `Bearer ${accessToken}` });
  const answer = await fetch(uploadUrl, { method: 'PUT', body: readFileSync(file) });
  expect(answer.ok, 'the file of the agent is stored').toBe(true);
}
