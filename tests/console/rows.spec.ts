//! Rows of tables open where one clicks.

import type { Locator } from '@playwright/test';
import { expect, safe, signIn, test } from './harness';

test('a click in a row opens what the row is about', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim(['Roof']);
  const { pipelineUuid } = await person.call('POST', '/tenant/data-pipelines', { name: 'To ERP', source: {}, destination: { kind: 'HTTP', url: 'https://example.com/' } });
  const { appUuid } = await person.call('POST', '/tenant/apps', { name: 'logger' });
  const fleet = person.page('/hubs');
  await page.goto(fleet);
  await signIn(page, person);

  const row = page.getByRole('row', { name: 'Roof' });
  const status = row.getByText('offline');
  await expect(status).toHaveCSS('cursor', 'pointer');
  await expect(page.getByRole('columnheader', { name: 'Status' })).not.toHaveCSS('cursor', 'pointer');
  await status.click();
  await expect(page.getByRole('heading', { name: 'Roof' })).toBeVisible();

  // A new tab for the middle button, and with Ctrl.
  await page.goBack();
  const opened = async (how: Parameters<Locator['click']>[0]) => {
    const tab = page.context().waitForEvent('page');
    await status.click(how);
    const other = await tab;
    await other.waitForURL(person.page(`/hubs/${hub?.uuid}`));
    await other.close();
    expect(page.url(), 'the list stays').toBe(fleet);
  };
  await opened({ button: 'middle' });
  await opened({ modifiers: ['Control'] });

  // Text that is selected is no click.
  const name = row.locator('.mono');
  const box = await name.boundingBox();
  if (!box) throw new Error('the row has no hardware');
  await page.mouse.move(box.x + 4, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + 90, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  expect(await page.evaluate(() => getSelection()?.toString())).not.toBe('');
  expect(page.url()).toBe(fleet);

  // Tables of every kind; one click is one visit.
  await page.goto(person.page('/pipelines'));
  await page.getByRole('row', { name: 'To ERP' }).getByRole('cell').last().click({ position: { x: 2, y: 2 } });
  await expect(page).toHaveURL(new RegExp(`/pipelines/${pipelineUuid}$`));
  await page.goBack();
  await expect(page).toHaveURL(/\/pipelines$/);
  await page.goto(person.page('/apps'));
  await page.getByRole('row', { name: 'logger' }).getByRole('cell').last().click();
  await expect(page).toHaveURL(new RegExp(`/apps/${appUuid}$`));
  await page.goto(person.page('/claim-codes'));
  await expect(page.getByRole('row').last(), 'a row without a page of its own is not pressed').not.toHaveCSS('cursor', 'pointer');
  await safe(page, 'rows');
});
