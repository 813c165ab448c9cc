//! What the tests of managing a tenant share.

import type { Page } from '@playwright/test';
import { expect, type Person, Service, tabTo, test as shared } from './harness';

// With a mail server that is never reached, and endpoints on this machine.
const SETTINGS = ['--smtp-url', 'smtp://localhost:2', '--mail-from', 'hubs@example.com', '--allow-private-targets'];
export const test = shared.extend<object, { service: Service }>({
  service: [
    async ({}, use) => {
      const service = await Service.create(SETTINGS);
      try {
        await use(service);
      } finally {
        await service.remove(false);
      }
    },
    { scope: 'worker' },
  ],
});

export const dialog = (page: Page) => page.getByRole('dialog');
export async function press(page: Page, name: string | RegExp, role: 'button' | 'link' = 'button') {
  // The whole name: others contain it.
  const whole = typeof name === 'string' ? new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`) : name;
  await tabTo(page, whole, role);
  await page.keyboard.press('Enter');
}
/** What is said beside a field of the dialog, or of the page. */
export async function expectError(page: Page, label: string | RegExp, message: RegExp) {
  const field = page.getByLabel(label).first();
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  await expect(field).toHaveAccessibleDescription(message);
}
export async function named(service: Service, nickname: string): Promise<Person> {
  const person = await service.person();
  await person.call('PUT', '/app/profile', { nickname });
  return person;
}
