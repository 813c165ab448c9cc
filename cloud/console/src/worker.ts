//! Workers. Browsers take the address of a worker as code, so a policy makes it, which knows only the
//! built files of the console.

interface Policy {
  createScriptURL: (url: string) => unknown;
}
declare global {
  interface Window {
    trustedTypes?: { createPolicy: (name: string, rules: { createScriptURL: (url: string) => string }) => Policy };
  }
}

const policy = window.trustedTypes?.createPolicy('hub-console-worker', {
  createScriptURL: (url) => {
    const { origin, pathname } = new URL(url, location.href);
    if (origin !== location.origin || !pathname.startsWith(import.meta.env.BASE_URL)) {
      throw new TypeError('a worker is a file of the console');
    }
    return url;
  },
});

/** `url` comes from `import url from './x.worker?worker&url'`. */
export function startWorker(url: string): Worker {
  return new Worker((policy?.createScriptURL(url) ?? url) as string, { type: 'module' });
}
