// Federations between machines, as a server's folder or a client's home knows them: who is there, rounds, bytes, what was
// spent and what is left.
import { chart } from './charts';
import { epsilon, h, ofWhole, percent, section, significant, spentBar, table } from './dom';
import { Maybe } from './document';
import { heading, line, roundAxis, symbols } from './run_parts';

interface Member {
  client: number;
  name: string;
  revoked: boolean;
  last_round: number;
  uploads: number;
  budget: Maybe;
  spent: Maybe;
}

interface ReleasedEvaluation {
  records: number;
  asked: number;
  accuracy: Maybe;
  noise_stddev: Maybe;
  clients: { client: number; accuracy: number; noise_stddev: number }[];
}

interface Server {
  kind: 'server';
  id: string;
  title: string;
  plan: string;
  method: string;
  running: boolean;
  finished: boolean;
  rounds: number;
  rounds_done: number;
  open_round: { round: number; asked: number; reported: number } | null;
  places: number;
  upload_bytes: number;
  epsilon: { promised: number; delta: number; spent: Maybe } | null;
  evaluation: ReleasedEvaluation | null;
  members: Member[];
}

interface HomeRound {
  round: number;
  sent: boolean;
  accuracy: Maybe;
  spent_epsilon: Maybe;
}

interface Joined {
  plan: string;
  method: string;
  rounds: number;
  client: number;
  participations: number;
  most_participations: number;
  last_round: number;
  outbox: { round: number; bytes: number } | null;
  over: boolean;
  history: HomeRound[];
}

interface Home {
  kind: 'home';
  id: string;
  title: string;
  name: string;
  server: string;
  budget: { epsilon: number; delta: number; spent: Maybe; left: number; per_day: Maybe };
  federations: Joined[];
}

interface Unreadable {
  kind?: undefined;
  id: string;
  problem: string;
}

export type Federation = Server | Home | Unreadable;

export const openFederation = (): string | null => new URLSearchParams(location.hash.slice(1)).get('federation');
const hashOf = (id: string) => '#' + new URLSearchParams([['federation', id]]).toString();

export const isLive = (f: Federation): boolean =>
  f.kind === 'server' ? f.running && !f.finished : f.kind === 'home' && f.federations.some((joined) => !joined.over);

export const titleOf = (f: Federation): string => (f.kind === 'home' && f.name) || (f.kind !== undefined && f.id === '.' ? f.title : f.id);

export const describeFederation = (f: Federation): string =>
  f.kind === 'server' ? `server of ${f.method}, plan ${f.plan.slice(0, 16)}` : f.kind === 'home' ? `a client's home; its server is ${f.server || 'not named'}` : f.problem;

export function stateOf(f: Federation): string {
  if (f.kind === undefined) return 'unreadable';
  if (f.kind === 'server') return f.finished ? 'finished' : f.running ? 'running' : 'stopped';
  return f.federations.length === 0 ? 'new' : f.federations.every((joined) => joined.over) ? 'finished' : 'joined';
}

const bytes = (count: number) => (count < 1e6 ? `${significant(count / 1e3, 3)} kB` : count < 1e9 ? `${significant(count / 1e6, 3)} MB` : `${significant(count / 1e9, 3)} GB`);

export function federationList(all: Federation[]): HTMLElement {
  const link = (f: Federation) => h('a', { href: hashOf(f.id), id: `federation-${f.id}` }, titleOf(f));
  const state = (f: Federation) => h('span', { class: `state ${stateOf(f)}`, title: f.kind ? undefined : f.problem }, stateOf(f));
  const rows = all.map((f) => {
    if (f.kind === 'server') return [link(f), state(f), `server, ${f.method}`, ofWhole(f.rounds_done, f.rounds), spentBar(f.epsilon?.spent ?? null, f.epsilon?.promised ?? null)];
    if (f.kind === 'home') {
      const last = f.federations.at(-1);
      return [link(f), state(f), 'home', last ? ofWhole(last.participations, last.most_participations) : '–', spentBar(f.budget.spent, f.budget.epsilon)];
    }
    return [f.id, state(f), f.problem, '–', '–'];
  });
  return section('federations', 'Federations', table({ head: ['folder', 'state', 'what', 'rounds', 'ε spent'], words: 5, rows }, 'Federations'));
}

const tile = (name: string, value: string, more: string, id: string) =>
  h('div', { class: 'tile' }, h('dt', {}, name), h('dd', {}, h('b', { id }, value), more && h('span', {}, more)));

export function federationSections(f: Federation): HTMLElement[] {
  if (f.kind === 'server') return serverSections(f);
  if (f.kind === 'home') return homeSections(f);
  return [h('p', { class: 'verdict', role: 'alert' }, f.problem)];
}

function roundText(f: Server): string {
  if (f.finished) return 'all are done';
  if (!f.open_round) return f.members.length < f.places ? 'none is open' : '';
  const { round, asked, reported } = f.open_round;
  return `${round > f.rounds ? 'evaluation' : `round ${round}`} is open: ${reported} of ${asked} have reported`;
}

function serverSections(f: Server): HTMLElement[] {
  const e = f.evaluation;
  const overview = h('section', { id: 'overview', 'aria-label': 'Overview' }, h('dl', { class: 'tiles' },
    tile('Rounds', `${f.rounds_done} of ${f.rounds}`, roundText(f), 'value-rounds'),
    tile('Clients', `${f.members.length} of ${f.places}`, 'places taken', 'value-clients'),
    tile('Uploads', bytes(f.upload_bytes), 'tensors that were folded', 'value-bytes'),
    f.epsilon ? tile('ε spent', epsilon(f.epsilon.spent), `of ${significant(f.epsilon.promised)} promised, δ = ${significant(f.epsilon.delta)}`, 'value-spent') : tile('ε spent', '∞', 'no privacy is promised', 'value-spent'),
    e && e.accuracy !== null ? tile('Model', `${percent(e.accuracy, 1)} %`, `± ${percent(e.noise_stddev, 1)} % by the noise, as ${e.clients.length} of ${e.asked} clients say`, 'value-model') : tile('Model', '–', 'how good it is stays at the clients', 'value-model')));
  const rows = f.members.map((m) => [
    m.name,
    h('span', { class: `state ${m.revoked ? 'stopped' : 'running'}` }, m.revoked ? 'revoked' : 'member'),
    ofWhole(m.uploads, f.rounds),
    m.last_round || '–',
    spentBar(m.spent, m.budget),
  ]);
  const members = section('clients', 'Clients',
    f.members.length === 0
      ? h('p', {}, 'Nobody has joined yet. At each client: ', h('code', {}, 'sotto join HOME'))
      : table({ head: ['name', '', 'uploads', 'last round', 'ε spent here'], words: 5, rows }, 'Clients'),
    h('p', { class: 'note' }, 'By what uploads state and the plan allows. What a client has spent in all its federations, only its home knows.'));
  return [overview, members, h('p', {}, h('a', { href: '#' + new URLSearchParams([['run', f.id]]).toString(), id: 'as-run' }, 'Rounds, releases and ε over time'))];
}

function homeSections(f: Home): HTMLElement[] {
  const b = f.budget;
  const overview = h('section', { id: 'overview', 'aria-label': 'Overview' },
    h('dl', { class: 'tiles' },
      tile('ε spent', epsilon(b.spent), `of ${significant(b.epsilon)} over all federations, δ = ${significant(b.delta)}`, 'value-spent'),
      tile('ε left', significant(b.left, 3), b.per_day === null ? '' : `at most ${significant(b.per_day)} in 24 hours`, 'value-left'),
      tile('Federations', String(f.federations.length), '', 'value-federations')),
    h('p', { class: 'budget' }, spentBar(b.spent, b.epsilon)));
  const rows = f.federations.map((j) => [
    h('code', {}, j.plan.slice(0, 16)),
    h('span', { class: `state ${j.over ? 'finished' : 'running'}` }, j.over ? 'finished' : 'joined'),
    j.method,
    ofWhole(j.last_round, j.rounds),
    ofWhole(j.participations, j.most_participations),
    j.outbox ? `round ${j.outbox.round}, ${bytes(j.outbox.bytes)}` : '–',
  ]);
  const joined = section('joined', 'Federations',
    f.federations.length === 0
      ? h('p', {}, 'No federation was joined. Look first with ', h('code', {}, 'sotto check'), ', then ', h('code', {}, 'sotto join'), '.')
      : table({ head: ['plan', '', 'method', 'last round', 'taken part in', 'outbox'], words: 6, rows }, 'Federations'));
  return [overview, joined, ...f.federations.filter((j) => j.history.length > 0).map((j) => historySection(f, j)),
    h('p', { class: 'note' }, 'All of this is for the owner of the records, and leaves this machine in no other way than as releases.')];
}

function historySection(f: Home, j: Joined): HTMLElement {
  const key = `home-${j.plan.slice(0, 16)}`;
  const x = j.history.map((r) => r.round);
  const series = (title: string, suffix: string, name: string, value: (r: HomeRound) => Maybe, text: (v: Maybe) => string, more: any, describe: string) =>
    chart(`${key}-${suffix}`, {
      title, describe, height: 260,
      option: (c) => ({
        tooltip: { trigger: 'axis', formatter: (p: any) => heading(`round ${p[0].value[0]}`) + line(name, text(p[0].value[1])) },
        xAxis: { ...roundAxis, max: j.rounds },
        yAxis: { type: 'value', name, min: 0, ...more },
        series: [{ name, type: 'line', ...symbols(x.length), lineStyle: { width: 2 }, itemStyle: { color: c.palette[0] }, data: j.history.map((r) => [r.round, value(r)]) }],
      }),
      table: () => ({ head: ['round', 'sent', name], rows: j.history.map((r) => [r.round, r.sent ? 'yes' : 'no', text(value(r))]) }),
    });
  const last = j.history.at(-1)!;
  return section(`history-${key}`, `Rounds of ${j.plan.slice(0, 16)}`, h('div', { class: 'pair' },
    series('Accuracy on own held-out records', 'accuracy', 'accuracy %', (r) => (r.accuracy === null ? null : 100 * r.accuracy), (v) => significant(v, 4), { max: 100 }, `${percent(last.accuracy)} % after round ${last.round}`),
    series('ε spent by this home', 'epsilon', 'ε', (r) => r.spent_epsilon, epsilon, { max: Math.max(f.budget.epsilon, ...j.history.map((r) => r.spent_epsilon ?? 0)) }, `${epsilon(last.spent_epsilon)} after round ${last.round}`)));
}
