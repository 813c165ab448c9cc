//! Light, dark, or as the system says.

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'hub-console-theme';

class Look {
  theme = $state<Theme>('system');
}

export const look = new Look();

export function setTheme(theme: Theme) {
  look.theme = theme;
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts until the page is left.
  }
}

export function startTheme() {
  try {
    const stored = localStorage.getItem(KEY);
    if (stored === 'light' || stored === 'dark') setTheme(stored);
  } catch {
    // The scheme of the system applies.
  }
}
