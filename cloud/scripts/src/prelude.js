'use strict';
// Runs once, after the script was compiled and before it is first called.
(() => {
  // What tells calls apart, what makes code of text, and what would need a loop of events.
  for (const name of ['eval', 'Function', 'Promise', 'Atomics', 'SharedArrayBuffer', 'queueMicrotask',
    'WeakRef', 'FinalizationRegistry', 'Date', 'performance', 'gc']) delete globalThis[name];
  delete Math.random;
  delete Error.captureStackTrace;
  const refuse = () => { throw new TypeError('scripts cannot make code of text'); };
  const functions = [function () {}, function* () {}, async function () {}, async function* () {}];
  for (const one of functions) {
    Object.defineProperty(Object.getPrototypeOf(one), 'constructor', { value: refuse });
  }
  // Everything that can be reached is frozen, so that no call can change another.
  const iterators = [[][Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](),
    ''[Symbol.iterator](), ''.matchAll(/a/g), functions[1](), functions[3]()];
  const seen = new Set();
  const rest = [globalThis, ...functions, ...iterators];
  while (rest.length > 0) {
    const one = rest.pop();
    if (one === null || (typeof one !== 'object' && typeof one !== 'function') || seen.has(one)) continue;
    seen.add(one);
    rest.push(Object.getPrototypeOf(one));
    for (const key of Reflect.ownKeys(one)) {
      const { value, get, set } = Object.getOwnPropertyDescriptor(one, key);
      rest.push(value, get, set);
    }
    Object.freeze(one);
  }
})();
