// One run: what came out, who got what, what it cost, and how to make it again.
import { attackSection } from './attack_view';
import { dataSection } from './data_view';
import { capital, epsilon, h, percent, seconds, section, significant, table } from './dom';
import { Run } from './document';
import { largestProven, privacySection } from './privacy_view';
import { clientSection, resultSection } from './results_view';

export function tiles(run: Run): HTMLElement {
  const s = run.summary;
  const tile = (name: string, value: string, more = '', id = '') =>
    h('div', { class: 'tile' }, h('dt', {}, name), h('dd', {}, h('b', id ? { id } : {}, value), more && h('span', {}, more)));
  const list: HTMLElement[] = [];
  if (s) {
    list.push(tile('Accuracy', `${percent(s.accuracy.mean)} %`, `± ${percent(s.accuracy.std)} over clients`, 'value-accuracy'));
    list.push(tile('Worst client', `${percent(s.accuracy.worst)} %`, '', 'value-worst'));
    if (s.accuracy_global !== null) list.push(tile('Global model', `${percent(s.accuracy_global)} %`, 'on all held-out records', 'value-global'));
    const proven = s.privacy.proven_epsilon;
    const claimed = s.privacy.claimed_epsilon;
    const against = `against the ${s.privacy.observer}`;
    list.push(tile(`${capital(run.privacy.basis)} ε`, epsilon(proven?.max), proven ? `${against}, largest of any client` : against, 'value-proven'));
    list.push(tile('Claimed ε', epsilon(claimed?.max), s.variant === 'paper' ? 'as the paper counts' : '', 'value-claimed'));
    list.push(tile('Training', seconds(s.seconds), `${significant(s.samples_per_second, 3)} records/s`));
  } else {
    const last = run.evaluations.measures.accuracy;
    const mean = last?.mean[last.mean.length - 1];
    list.push(tile('Rounds', `${run.rounds_done} of ${run.config.rounds}`, '', 'value-rounds'));
    list.push(tile('Accuracy so far', `${percent(mean)} %`, run.evaluations.round.length ? `after round ${run.evaluations.round.at(-1)}` : ''));
    if (run.state === 'running') {
      const each = secondsPerRound(run);
      list.push(tile('Time left', each === null ? '–' : `about ${seconds(Math.ceil(each * (run.config.rounds - run.rounds_done)))}`, each === null ? '' : `${seconds(each)} a round`, 'value-left'));
    }
    const spent = largestProven(run);
    if (spent !== undefined) list.push(tile(`${capital(run.privacy.basis)} ε so far`, epsilon(spent), 'largest of any client'));
  }
  return h('dl', { class: 'tiles' }, ...list);
}

// As the last few took, evaluations included.
function secondsPerRound(run: Run): number | null {
  const took = run.rounds.seconds.map((s, i) => (s ?? 0) + (run.rounds.evaluation_seconds?.[i] ?? 0)).slice(-10);
  return took.length ? took.reduce((a, b) => a + b, 0) / took.length : null;
}

// Only the live page knows where a run is.
export function resumeNote(run: Run): HTMLElement | null {
  if (!run.resume) return null;
  return h('p', { id: 'resume' }, run.state === 'running' ? 'If it is stopped, it goes on with ' : 'It goes on with ', h('code', {}, run.resume));
}

export function describeRun(run: Run): string {
  const c = run.config;
  const variant = c.method.variant === 'sound' ? '' : ` (${c.method.variant})`;
  return `${c.method.name}${variant} on ${c.data.name}, model ${c.model.name}, ${c.data.clients} clients, ${c.rounds} rounds, seed ${c.seed}`;
}

export function runSections(run: Run, key: string, redoAll: () => void): HTMLElement[] {
  return [
    resultSection(run, key, redoAll),
    clientSection(run, key, redoAll),
    privacySection(run, key, redoAll),
    dataSection(run, key),
    attackSection(run, key),
    reproduceSection(run),
  ].filter((part): part is HTMLElement => part !== null);
}

function reproduceSection(run: Run): HTMLElement {
  const secure = run.config.privacy?.noise === 'secure';
  const commands = `# save the settings below as config.toml\nsotto run config.toml --out again\nsotto ledger verify again`;
  const promise = secure
    ? 'Secure noise cannot be drawn twice: the result will be close, not equal.'
    : 'With the same version and libraries the result is the same, bit for bit.';
  const environment = run.environment
    ? table({ head: ['what', 'this run'], words: 2, rows: Object.entries(run.environment).map(([k, v]) => [k, v]) }, 'Environment')
    : h('p', { class: 'note' }, 'The run did not record what it was made with.');
  return section(
    'reproduce', 'How to reproduce',
    h('pre', { class: 'box', tabindex: 0, 'aria-label': 'Commands' }, commands),
    h('p', {}, `${promise} Hash of the settings: `, h('code', {}, run.hash)),
    h('h3', {}, 'Environment'), environment,
    h('h3', {}, 'Settings'),
    h('details', { class: 'settings' }, h('summary', {}, 'config.toml'), h('pre', { tabindex: 0, 'aria-label': 'config.toml' }, run.config_toml)),
  );
}
