import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The development server passes what is not its own on to a service.
const service = process.env.HUB_CLOUD_URL ?? 'http://127.0.0.1:8080';
const served = ['/app', '/auth', '/installer', '/invitations', '/me', '/openapi.json', '/platform', '/public', '/tenant'];

export default defineConfig({
  base: '/console/',
  plugins: [svelte()],
  build: {
    outDir: 'build',
    target: ['chrome123', 'firefox120', 'safari17.5'],
    manifest: 'manifest.json',
    // A data: URL of a script or a style is what the content security policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  worker: { format: 'es' },
  server: { proxy: Object.fromEntries(served.map((path) => [path, { target: service }])) },
});
