import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: '.',
  outputDir: 'results',
  // Rollouts look for new releases once a minute, and the machine that runs this may do much else.
  timeout: 300_000,
  expect: { timeout: 90_000 },
  workers: 1,
  forbidOnly: true,
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    launchOptions: { executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] },
    viewport: { width: 1280, height: 800 },
    screenshot: 'only-on-failure',
  },
});
