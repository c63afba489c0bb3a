// The page of `sotto ui`: lists runs, opens one or several, follows what is running, shows what budgets are left.
import { chooser, epsilon, epsilonUnder, h, percent, section, significant, spentBar, table, weakest } from './dom';
import { Basis, PageDocument } from './document';
import { Federation } from './federation_view';

export interface Entry {
  id: string;
  name?: string;
  state: string;
  method?: string;
  variant?: string;
  dataset?: string;
  model?: string;
  seed?: number;
  started?: number | null; // seconds since 1970
  rounds?: number;
  rounds_done?: number;
  accuracy?: number | null;
  proven_epsilon?: number | null;
  claimed_epsilon?: number | null;
  basis?: Basis;
  problem?: string;
}

interface BoardRow {
  client: number;
  name: string;
  budget: number | null;
  spent: number | null;
  left: number | null;
  rounds: number | null;
  more: boolean;
  why: string | null;
}

const token = new URLSearchParams(location.search).get('token') ?? '';

async function ask(path: string, parameters: [string, string][] = [], question?: object): Promise<any> {
  const query = new URLSearchParams([['token', token], ...parameters]);
  const response = await fetch(`${path}?${query}`, question && { method: 'POST', body: JSON.stringify(question) });
  if (!response.ok) throw new Error((await response.text()).trim() || `${response.status} ${response.statusText}`);
  return response.json();
}

export const askRuns = (): Promise<{ root: string; runs: Entry[]; federations: Federation[] }> => ask('/api/runs');
export const askFederation = (id: string): Promise<Federation> => ask('/api/federation', [['id', id]]);
// As a question of its own: the names of many runs are longer than an address may be.
export const askDocument = (runs: string[], have: string): Promise<any> => ask('/api/document', [], { runs, have });

// #run=a&run=b
export const openRuns = (): string[] => new URLSearchParams(location.hash.slice(1)).getAll('run');
const hashOf = (runs: string[]) => '#' + new URLSearchParams(runs.map((run): [string, string] => ['run', run])).toString();

const filter = { text: '', state: '', method: '' };
const selected = new Set<string>();

function matches(entry: Entry): boolean {
  const text = [entry.id, entry.name, entry.method, entry.variant, entry.dataset, entry.model, `seed ${entry.seed}`].join(' ').toLowerCase();
  return filter.text.toLowerCase().split(/\s+/).every((word) => text.includes(word)) &&
    (!filter.state || entry.state === filter.state) && (!filter.method || entry.method === filter.method);
}

const orders: Record<string, { label: string; before: (a: Entry, b: Entry) => number }> = {
  newest: { label: 'newest first', before: (a, b) => (b.started ?? 0) - (a.started ?? 0) || a.id.localeCompare(b.id) },
  name: { label: 'by name', before: (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }) },
  accuracy: { label: 'best first', before: (a, b) => (b.accuracy ?? -1) - (a.accuracy ?? -1) },
};
let order = 'newest';

const day = (started: number | null | undefined) => (started ? new Date(1000 * started).toISOString().slice(0, 16).replace('T', ' ') : '–');

// The list; `redo` draws it again after a change of the filter.
export function listSection(entries: Entry[], redo: () => void): HTMLElement {
  const shown = entries.filter(matches).sort(orders[order].before);
  const known = new Set(entries.map((e) => e.id));
  for (const id of selected) if (!known.has(id)) selected.delete(id);
  const distinct = (values: (string | undefined)[]) => [...new Set(values.filter((v): v is string => !!v))].sort();
  const any = { value: '', label: 'any' };
  const option = (value: string) => ({ value, label: value });
  const compare = h('button', { type: 'button', id: 'compare-button', class: 'main-button', disabled: selected.size < 2, onclick: () => (location.hash = hashOf([...selected])) },
    selected.size < 2 ? 'Compare: choose two or more' : `Compare ${selected.size} runs`);
  const basis = weakest(shown.map((e) => e.basis));
  const rows = shown.map((e) => [
    h('input', {
      type: 'checkbox', id: `pick-${e.id}`, 'aria-label': `Choose ${e.id}`, checked: selected.has(e.id),
      onchange: (event: any) => {
        if (event.target.checked) selected.add(e.id);
        else selected.delete(e.id);
        redo();
      },
    }),
    h('a', { href: hashOf([e.id]), id: `open-${e.id}` }, e.id === '.' ? e.name || 'this run' : e.id),
    h('span', { class: `state ${e.state}`, title: e.problem }, e.state),
    e.method ? e.method + (e.variant === 'sound' ? '' : ` (${e.variant})`) : '–',
    e.dataset ?? '–',
    String(e.seed ?? '–'),
    day(e.started),
    `${e.rounds_done ?? '–'} / ${e.rounds ?? '–'}`,
    percent(e.accuracy),
    e.proven_epsilon === undefined ? '–' : epsilonUnder(basis, e.proven_epsilon, e.basis),
    e.claimed_epsilon === undefined ? '–' : epsilon(e.claimed_epsilon),
  ]);
  return h(
    'section', { id: 'runs', 'aria-label': 'Runs' },
    h('p', { class: 'note', id: 'run-count' }, `${shown.length} of ${entries.length} runs`),
    h(
      'div', { class: 'controls' },
      h('label', { class: 'control' }, h('span', {}, 'Filter'), h('input', { id: 'filter', type: 'search', placeholder: 'name, method, data', value: filter.text, oninput: (event: any) => { filter.text = event.target.value; redo(); } })),
      chooser('filter-state', 'State', [any, ...distinct(entries.map((e) => e.state)).map(option)], filter.state, (v) => { filter.state = v; redo(); }),
      chooser('filter-method', 'Method', [any, ...distinct(entries.map((e) => e.method)).map(option)], filter.method, (v) => { filter.method = v; redo(); }),
      chooser('order', 'Order', Object.entries(orders).map(([value, o]) => ({ value, label: o.label })), order, (v) => { order = v; redo(); }),
      compare,
    ),
    entries.length === 0
      ? h('p', {}, 'There are no runs here yet. Start one with: ', h('code', {}, 'sotto run CONFIG'))
      : table({ head: ['', 'run', 'state', 'method', 'data', 'seed', 'started (UTC)', 'rounds', 'accuracy %', `${basis} ε`, 'claimed ε'], words: 5, rows }, 'Runs'),
  );
}

const boardLike = new Map<string, string>();
const boards = new Map<string, HTMLElement>(); // what was shown last stays until there is something newer

// Who can still afford how many rounds; priced like this run's own, or like another one's.
export function boardSection(document: PageDocument, entries: Entry[]): HTMLElement {
  const run = document.runs[0];
  const body = boards.get(run.id) ?? h('div', { id: 'board' }, h('p', { class: 'note' }, 'Counting …'));
  boards.set(run.id, body);
  const others = entries.filter((e) => e.id !== run.id && e.method);
  const show = async () => {
    const like = boardLike.get(run.id) ?? run.id;
    try {
      const board = await ask('/api/board', [['run', run.id], ['like', like]]);
      if (!body.isConnected) return;
      const open = body.querySelector('details')?.open ?? false;
      body.replaceChildren(...boardBody(board.rows));
      body.querySelector('details')?.toggleAttribute('open', open);
    } catch (error) {
      body.replaceChildren(h('p', { class: 'note' }, String((error as Error).message)));
    }
  };
  const part = section(
    'budgets', 'Budget board',
    h('p', {}, 'What each client has spent, what is left, and for how many more rounds it lasts if each costs what its last one did.'),
    h('div', { class: 'controls' },
      chooser('board-like', 'A further round costs as much as in', [{ value: run.id, label: `this run (${run.config.method.name})` }, ...others.map((e) => ({ value: e.id, label: `${e.id} (${e.method})` }))],
        boardLike.get(run.id) ?? run.id, (v) => { boardLike.set(run.id, v); void show(); })),
    body,
  );
  void Promise.resolve().then(show);
  return part;
}

const kBoardRows = 12;

// Those with least left come first; of many clients, the others wait under a click.
function boardBody(rows: BoardRow[]): HTMLElement[] {
  const why = [...new Set(rows.map((r) => r.why).filter((w): w is string => w !== null))];
  const share = (r: BoardRow) => (r.budget === null || r.spent === null ? 1 : r.spent / r.budget);
  const sorted = rows.length > kBoardRows ? [...rows].sort((a, b) => share(b) - share(a)) : rows;
  const board = (some: BoardRow[]) => table(
    { head: ['client', 'spent of its budget ε', 'left ε', 'rounds left'], words: 2, rows: some.map((r) => [r.name, spentBar(r.spent, r.budget), significant(r.left), roundsText(r)]) },
    'Budgets',
  );
  const stuck = rows.filter((r) => r.rounds === 0).length;
  return [
    ...why.map((w) => h('p', { class: 'verdict' }, w)),
    h('p', { class: 'note' }, stuck === 0 ? 'All clients can afford another round.' : `${stuck} of ${rows.length} clients cannot afford another round.`),
    board(sorted.slice(0, kBoardRows)),
    ...(rows.length > kBoardRows ? [h('details', { class: 'as-table' }, h('summary', {}, `The other ${rows.length - kBoardRows} clients`), board(sorted.slice(kBoardRows)))] : []),
  ];
}

const roundsText = (r: BoardRow) => (r.rounds === null ? '–' : r.more ? `${r.rounds} or more` : String(r.rounds));
