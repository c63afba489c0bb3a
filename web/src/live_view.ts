// The page of `sotto ui`: lists runs, opens one or several, follows what is running, shows what budgets are left.
import { chart, mount } from './charts';
import { chooser, epsilon, epsilonUnder, escaped, h, percent, section, significant, table, weakest } from './dom';
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
      body.replaceChildren(...boardBody(board.rows, run.id));
      mount();
    } catch (error) {
      body.replaceChildren(h('p', { class: 'note' }, String((error as Error).message)));
    }
  };
  const part = section(
    'budgets', 'Budget board',
    h('p', {}, 'What each client has spent, what is left, and for how many more rounds it lasts if each costs what its last one did.'),
    h('div', { class: 'controls' },
      chooser('board-like', 'Cost of a further round taken from', [{ value: run.id, label: `this run (${run.config.method.name})` }, ...others.map((e) => ({ value: e.id, label: `${e.id} (${e.method})` }))],
        boardLike.get(run.id) ?? run.id, (v) => { boardLike.set(run.id, v); void show(); })),
    body,
  );
  void Promise.resolve().then(show);
  return part;
}

function boardBody(rows: BoardRow[], id: string): HTMLElement[] {
  const why = [...new Set(rows.map((r) => r.why).filter((w): w is string => w !== null))];
  const withBudget = rows.filter((r) => r.budget !== null && r.spent !== null);
  const parts: HTMLElement[] = [];
  if (why.length) parts.push(h('p', { class: 'verdict' }, why.join('; ')));
  if (withBudget.length) {
    parts.push(
      chart(`${id}-board`, {
        title: 'Spent and left',
        describe: `${withBudget.filter((r) => r.rounds === 0).length} of ${withBudget.length} clients cannot afford another round.`,
        height: 280,
        option: (c) => ({
          legend: {},
          tooltip: {
            trigger: 'axis', axisPointer: { type: 'shadow' },
            formatter: (p: any) => {
              const r = withBudget[p[0].dataIndex];
              return `<div class="tip-head">${escaped(r.name)}</div>` + [['spent', epsilon(r.spent)], ['left', significant(r.left)], ['rounds left', roundsText(r)]]
                .map(([k, v]) => `<div class="tip"><span>${k}</span><b>${escaped(v)}</b></div>`).join('');
            },
          },
          xAxis: { type: 'category', name: 'client', nameLocation: 'middle', nameGap: 30, data: withBudget.map((r) => r.name.replace(/^client (\d+)$/, '$1')) },
          yAxis: { type: 'value', name: 'ε' },
          series: [
            { name: 'spent', type: 'bar', stack: 'ε', barMaxWidth: 30, itemStyle: { color: c.palette[1] }, data: withBudget.map((r) => r.spent) },
            { name: 'left', type: 'bar', stack: 'ε', barMaxWidth: 30, itemStyle: { color: c.palette[2] }, data: withBudget.map((r) => r.left) },
          ],
        }),
        table: () => ({ head: ['client', 'spent ε', 'left ε'], words: 0, rows: withBudget.map((r) => [r.name, epsilon(r.spent), significant(r.left)]) }),
      }),
    );
  }
  parts.push(
    table(
      { head: ['client', 'budget ε', 'spent ε', 'left ε', 'rounds left'], words: 0, rows: rows.map((r) => [r.name, significant(r.budget), epsilon(r.spent), significant(r.left), roundsText(r)]) },
      'Budgets',
    ),
  );
  return parts;
}

const roundsText = (r: BoardRow) => (r.rounds === null ? '–' : r.more ? `${r.rounds} or more` : String(r.rounds));
