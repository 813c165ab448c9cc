//! The page that the address names. Addresses are paths below /console: `/t/<tenant>/<page>` for what
//! belongs to a tenant, and `/<page>` for the rest. Links are plain `<a href>`.

export const BASE = '/console';

class Address {
  path = $state('/');
  search = $state('');
  hash = $state('');
  readonly query = $derived(new URLSearchParams(this.search));
  /** The page of a list, which `Pager` sets. */
  readonly page = $derived(Math.max(1, Math.floor(Number(this.query.get('page'))) || 1));
  /** Counts visits of pages: a repeated visit of a page differs from a change of its query. */
  visit = $state(0);
}

export const address = new Address();

function read() {
  const { pathname, search, hash } = location;
  const path = pathname.slice(BASE.length).replace(/\/+$/, '') || '/';
  if (path !== address.path) address.visit += 1;
  address.path = path;
  address.search = search;
  address.hash = hash;
}

/** Goes to a path below /console, such as `/signin?next=...`. */
export function navigate(to: string, { replace = false } = {}) {
  history[replace ? 'replaceState' : 'pushState'](null, '', BASE + to);
  read();
}

/** Changes the query of the page that is shown; undefined and '' remove a name. */
export function setQuery(changes: Record<string, string | undefined>, { push = false } = {}) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.size ? `?${query}` : '';
  if (text === location.search) return;
  history[push ? 'pushState' : 'replaceState'](null, '', location.pathname + text + location.hash);
  read();
}

/** The parameters of a path by a pattern such as `/hubs/:hubUuid`, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const [wanted, actual] = [pattern.split('/'), path.split('/')];
  if (wanted.length !== actual.length) return null;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = actual[index] ?? '';
    if (part.startsWith(':')) {
      if (value === '') return null;
      try {
        params[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (part !== value) return null;
  }
  return params;
}

export function listen() {
  read();
  addEventListener('popstate', read);
  addEventListener('click', (event) => {
    const link = (event.target as Element | null)?.closest?.('a');
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute('download')) return;
    if (link.origin !== location.origin || !`${link.pathname}/`.startsWith(`${BASE}/`)) return;
    if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
    event.preventDefault();
    navigate(link.pathname.slice(BASE.length) + link.search + link.hash);
    scrollTo(0, 0);
  });
}
