import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';
import { limits } from './scripts/limits.mjs';

// The development server passes what is not its own on to a service.
const service = process.env.HUB_CLOUD_URL ?? 'http://127.0.0.1:8080';
const served = ['/app', '/auth', '/installer', '/invitations', '/me', '/openapi.json', '/platform', '/public', '/tenant'];
// build.rs puts the hash of all files in place of BUILDHASH.
const output = {
  entryFileNames: 'assets/[name]-BUILDHASH.js',
  chunkFileNames: 'assets/[name]-BUILDHASH.js',
  assetFileNames: 'assets/[name]-BUILDHASH[extname]',
  // Without HTTP/2, a browser asks for six files at a time: what many pages need is one of them.
  codeSplitting: { groups: [{ name: 'common', minShareCount: 4 }] },
};

export default defineConfig({
  base: '/console/',
  plugins: [svelte(), limits()],
  build: {
    target: ['chrome123', 'firefox120', 'safari17.5'],
    // A data: URL of a script or a style is what the content security policy refuses.
    assetsInlineLimit: 0,
    // One file of 11 KiB, compressed: a page would wait for ten small ones.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
    rolldownOptions: { checks: { pluginTimings: false }, output },
  },
  worker: { format: 'es', rolldownOptions: { output } },
  server: { proxy: Object.fromEntries(served.map((path) => [path, { target: service }])) },
});
