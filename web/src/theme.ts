// Light and dark: what the reader's system prefers, unless the button was pressed.
import { h } from './dom';

export interface Colours {
  ink: string;
  quiet: string;
  line: string;
  card: string;
  faint: string;
  font: string;
  palette: string[];
  ramp: string[]; // from little to much
}

const listeners: (() => void)[] = [];
export const onThemeChange = (listener: () => void) => listeners.push(listener);

const systemDark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;

function stored(): string | null {
  try {
    return localStorage.getItem('sotto-theme');
  } catch {
    return null; // a page opened from a file may have no storage
  }
}

let chosen = stored();

function apply() {
  const dark = !printing && (chosen ? chosen === 'dark' : systemDark.matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

export function startTheme() {
  apply();
  systemDark.addEventListener('change', apply);
}

// Paper is white.
export function setPrinting(now: boolean) {
  printing = now;
  apply();
}

export function themeButton(): HTMLElement {
  const button = h('button', { type: 'button', id: 'theme', class: 'quiet-button' });
  const name = () => (button.textContent = document.documentElement.dataset.theme === 'dark' ? 'Light' : 'Dark');
  button.addEventListener('click', () => {
    chosen = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    try {
      localStorage.setItem('sotto-theme', chosen);
    } catch {
      // lasts until the page is closed
    }
    apply();
  });
  listeners.push(name);
  name();
  return button;
}

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  const list = (name: string) => get(name).split(/\s+/);
  return {
    ink: get('--ink'),
    quiet: get('--quiet'),
    line: get('--line'),
    card: get('--card'),
    faint: get('--faint'),
    font: getComputedStyle(document.body).fontFamily, // by name: a chart measures its words itself
    palette: list('--palette'),
    ramp: list('--ramp'),
  };
}
