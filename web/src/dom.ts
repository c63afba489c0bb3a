// Elements and numbers. Text reaches the page as text nodes only: nothing a file holds can become markup.
import { Basis, Maybe } from './document';

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: any) => void)>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked') (element as any)[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

// For the HTML that a chart's tooltip is made of.
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);

export function percent(value: unknown, digits = 2): string {
  return isNumber(value) ? (100 * value).toFixed(digits) : '–';
}

// ε: null stands for infinity.
export function epsilon(value: unknown): string {
  return isNumber(value) ? significant(value, 4) : '∞';
}

// The name of a column of ε of several runs: that of the weakest.
export function weakest(bases: (Basis | undefined)[]): Basis {
  return bases.includes('simulated') ? 'simulated' : 'proven';
}

// A run's ε in such a column: one that is proven among others that are not says so itself.
export function epsilonUnder(column: Basis, value: unknown, basis: Basis | undefined): string {
  return epsilon(value) + (isNumber(value) && value > 0 && basis !== undefined && basis !== column ? ` (${basis})` : '');
}

export const capital = (word: string) => word[0].toUpperCase() + word.slice(1);

export function significant(value: unknown, digits = 4): string {
  if (!isNumber(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(digits - 1).replace(/\.?0+e/, 'e');
  return String(Number(value.toPrecision(digits)));
}

export function seconds(value: unknown): string {
  if (!isNumber(value)) return '–';
  if (value < 100) return `${significant(value, 3)} s`;
  const minutes = Math.round(value / 60);
  return minutes < 120 ? `${minutes} min` : `${significant(value / 3600, 3)} h`;
}

// What people call a client: its name, or its number.
export function clientName(names: string[] | undefined, client: number): string {
  return names?.[client] ?? `client ${client}`;
}

// 0–4, 7, 9 … and how many more; the names of a few clients that have some.
export function clientList(clients: number[], most = 6, names: string[] = []): string {
  if (names.length > 0 && clients.length <= most) return clients.map((client) => names[client]).join(', ');
  const ranges: string[] = [];
  let i = 0;
  while (i < clients.length && ranges.length < most) {
    let j = i;
    while (j + 1 < clients.length && clients[j + 1] === clients[j] + 1) ++j;
    ranges.push(j > i + 1 ? `${clients[i]}–${clients[j]}` : clients.slice(i, j + 1).join(', '));
    i = j + 1;
  }
  const rest = clients.length - i;
  const word = clients.length === 1 ? 'client' : 'clients';
  return `${word} ${ranges.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

// A part of a whole, as a length and in words. Readers that see no length read the words.
function bar(share: number, words: string, whenFull: 'done' | 'used-up'): HTMLElement {
  const percents = Math.round(100 * Math.min(1, Math.max(0, share)));
  return h('span', { class: 'share' },
    h('span', { class: `track${share >= 0.995 ? ` ${whenFull}` : ''}`, 'aria-hidden': 'true' }, h('span', { class: 'fill', style: `width: ${percents}%` })),
    h('span', { class: 'words' }, words));
}

export const ofWhole = (part: number, whole: number) => bar(whole > 0 ? part / whole : 0, `${part} of ${whole}`, 'done');

export const spentBar = (spent: Maybe, budget: Maybe) =>
  budget === null ? h('span', {}, '∞: no privacy is promised')
    : bar(spent === null ? 1 : spent / budget, spent === null ? '∞' : `${epsilon(spent)} of ${significant(budget)} (${percent(spent / budget, 0)} %)`, 'used-up');

export interface TableData {
  head: string[];
  rows: (string | number | Node)[][];
  words?: number; // how many columns from the left hold words; the others are numbers
}

export function table(data: TableData, caption: string): HTMLElement {
  const words = data.words ?? 1;
  const cell = (content: string | number | Node, index: number) =>
    h('td', { class: index < words ? 'word' : 'number' }, content instanceof Node ? content : String(content));
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      {},
      h('caption', { class: 'unseen' }, caption),
      h('thead', {}, h('tr', {}, ...data.head.map((name, i) => h('th', { scope: 'col', class: i < words ? 'word' : 'number' }, name)))),
      h('tbody', {}, ...data.rows.map((row) => h('tr', {}, ...row.map(cell)))),
    ),
  );
}

export interface Choice {
  value: string;
  label: string;
}

export function chooser(id: string, label: string, choices: Choice[], chosen: string, onchange: (value: string) => void): HTMLElement {
  return h(
    'label',
    { class: 'control' },
    h('span', {}, label),
    h(
      'select',
      { id, onchange: (event: any) => onchange(event.target.value) },
      ...choices.map((c) => h('option', { value: c.value, selected: c.value === chosen }, c.label)),
    ),
  );
}

export function tickbox(id: string, label: string, checked: boolean, onchange: (value: boolean) => void): HTMLElement {
  return h(
    'label',
    { class: 'control' },
    h('input', { id, type: 'checkbox', checked, onchange: (event: any) => onchange(event.target.checked) }),
    h('span', {}, label),
  );
}

export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), ...children);
}
