// Takes a picture of the live view of a running demo: node picture.mjs SCREEN FILE, where SCREEN is what
// `hub-cloud demo` has printed. docs/images/take starts both.
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright';

const [screen = '', file = ''] = process.argv.slice(2);
const text = readFileSync(screen, 'utf8');
const member = (pattern) => {
  const found = pattern.exec(text)?.[1];
  if (!found) throw new Error(`${screen} has no ${pattern}`);
  return found;
};
const console_ = member(/console\s+(http\S+)/);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, colorScheme: 'light', reducedMotion: 'reduce' });
await page.goto(console_);
await page.getByLabel('E-mail').fill(member(/^account\s+(\S+)/m));
await page.getByLabel('Password').fill(member(/password\s+(\S+)/));
await page.getByRole('button', { name: 'Sign in', exact: true }).click();
await page.getByRole('link', { name: 'Live', exact: true }).click();
await page.waitForTimeout(30_000);
await page.screenshot({ path: file });
await browser.close();
