// One run: what came out, who got what, what it cost, and how to make it again.
import { chart } from './charts';
import { capital, chooser, clientList, clientName, epsilon, escaped, h, percent, seconds, section, significant, table, tickbox } from './dom';
import { Embedding, Maybe, Measure, Run, SpendingCurve, View } from './document';
import { Colours } from './theme';

// What the reader has chosen, kept while a live page redraws itself.
const choices = new Map<string, string>();
const chosen = (key: string, otherwise: string) => choices.get(key) ?? otherwise;

export const kMeasureNames: Record<string, string> = {
  accuracy: 'Accuracy',
  balanced_accuracy: 'Balanced accuracy',
  auroc: 'AUROC',
  local_accuracy: 'Accuracy on own classes',
  neighbour_accuracy: "Accuracy on others' classes",
};

const line = (name: string, value: string) => `<div class="tip"><span>${escaped(name)}</span><b>${escaped(value)}</b></div>`;
const heading = (text: string) => `<div class="tip-head">${escaped(text)}</div>`;

// Round lines are thin when there are many points, and dots show where there are few.
const symbols = (count: number) => ({ showSymbol: count <= 30, symbol: 'circle', symbolSize: count <= 30 ? 6 : 4 });

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
    const spent = largestProven(run);
    if (spent !== undefined) list.push(tile(`${capital(run.privacy.basis)} ε so far`, epsilon(spent), 'largest of any client'));
  }
  return h('dl', { class: 'tiles' }, ...list);
}

// The budget of everyone, or from the smallest to the largest.
function promised(terms: any): string {
  const budgets: number[] = terms.budgets ?? [];
  if (budgets.length === 0) return `ε = ${significant(terms.epsilon)}`;
  const low = Math.min(...budgets);
  const high = Math.max(...budgets);
  return low === high ? `ε = ${significant(low)}` : `Budgets of ε = ${significant(low)} to ${significant(high)}`;
}

function declaredView(run: Run): View | undefined {
  const observer = run.privacy.terms?.observer ?? 'server';
  return run.privacy.views?.find((view) => view.observers.includes(observer));
}

function largestProven(run: Run): Maybe | undefined {
  const view = declaredView(run);
  if (!view || view.rounds.length === 0) return undefined;
  const last = view.curves.map((curve) => curve.proven.at(-1) ?? null);
  return last.includes(null) ? null : Math.max(...(last as number[]));
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

function quantile(sorted: number[], level: number): number {
  const place = level * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (place - low) * (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]);
}

// Around the middle 80 % of clients; of few clients, around all of them.
function bandOf(measure: Measure, points: number): { low: Maybe[]; high: Maybe[]; name: string } {
  const few = measure.clients.length < 10;
  const low: Maybe[] = [];
  const high: Maybe[] = [];
  for (let i = 0; i < points; ++i) {
    const values = measure.values.map((v) => v[i]).filter((v): v is number => v !== null).sort((a, b) => a - b);
    low.push(values.length ? quantile(values, few ? 0 : 0.1) : null);
    high.push(values.length ? quantile(values, few ? 1 : 0.9) : null);
  }
  return { low, high, name: few ? 'lowest to highest client' : 'middle 80 % of clients' };
}

export function bandSeries(x: number[], low: Maybe[], high: Maybe[], colour: string, name: string, stack: string): any[] {
  const shared = { type: 'line', stack, silent: true, symbol: 'none', lineStyle: { width: 0 }, tooltip: { show: false }, z: 1 };
  return [
    { ...shared, name: `${name} (from)`, data: x.map((r, i) => [r, low[i]]) },
    {
      ...shared, name, itemStyle: { color: colour, opacity: 0.35 }, areaStyle: { color: colour, opacity: 0.18 },
      data: x.map((r, i) => [r, low[i] === null || high[i] === null ? null : high[i]! - low[i]!]),
    },
  ];
}

export const roundAxis = {
  type: 'value', name: 'round', nameLocation: 'middle', nameGap: 30, minInterval: 1, max: 'dataMax',
  min: (range: any) => (range.min < 0.3 * range.max ? 0 : range.min),
};

function resultSection(run: Run, key: string, redoAll: () => void): HTMLElement {
  const names = Object.keys(run.evaluations.measures);
  if (names.length === 0) return section('results', 'Results', h('p', {}, 'No evaluation yet.'));
  const name = chosen(`${key}-measure`, 'accuracy');
  const measure = run.evaluations.measures[name] ?? run.evaluations.measures[names[0]];
  const x = run.evaluations.round;
  if (x.length === 1) {
    const once = `${kMeasureNames[name] ?? name} after round ${x[0]}, the only one that was evaluated: ${percent(measure.mean[0])} % mean over clients (± ${percent(measure.std[0])}, worst ${percent(measure.worst[0])} %).`;
    return section('results', 'Results', h('p', { id: 'one-evaluation' }, once), run.rounds.round.length > 1 ? trainingCharts(run, key) : null);
  }
  const band = bandOf(measure, x.length);
  const every = chosen(`${key}-every`, measure.clients.length <= 30 ? 'yes' : 'no') === 'yes';
  const hasGlobal = measure.global.some((v) => v !== null);
  const title = `${kMeasureNames[name]} over rounds`;
  let cursor = NaN;
  let focus = -1;

  const nearest = (): number => {
    let best = -1;
    let distance = Infinity;
    measure.values.forEach((values, client) => {
      for (const v of [values[values.length - 1]]) {
        const d = v === null ? Infinity : Math.abs(v - cursor);
        if (d < distance) [best, distance] = [client, d];
      }
    });
    return best;
  };

  const accuracy = chart(`${key}-accuracy`, {
    title,
    describe: `Mean over ${measure.clients.length} clients: ${percent(measure.mean[0])} % after round ${x[0]}, ${percent(measure.mean.at(-1))} % after round ${x.at(-1)}.`,
    height: 400,
    controls: [
      ...(names.length > 1
        ? [chooser(`${key}-measure`, 'Measure', names.map((n) => ({ value: n, label: kMeasureNames[n] ?? n })), name, (v) => {
            choices.set(`${key}-measure`, v);
            redoAll();
          })]
        : []),
      tickbox(`${key}-every`, 'Every client', every, (v) => {
        choices.set(`${key}-every`, v ? 'yes' : 'no');
        redoAll();
      }),
    ],
    hover: (y) => {
      cursor = y;
      const before = focus;
      focus = nearest();
      return focus !== before;
    },
    option: (c: Colours) => ({
      legend: { data: ['mean over clients', band.name, ...(hasGlobal ? ['global model'] : [])] },
      tooltip: {
        trigger: 'axis',
        formatter: (parts: any) => {
          const i = (Array.isArray(parts) ? parts : [parts])[0].dataIndex;
          let text = heading(`round ${x[i]}`) + line('mean', `${percent(measure.mean[i])} %`) + line('± over clients', percent(measure.std[i])) +
            line('worst', `${percent(measure.worst[i])} %`) + line(band.name, `${percent(band.low[i], 1)} – ${percent(band.high[i], 1)} %`);
          if (hasGlobal) text += line('global model', `${percent(measure.global[i])} %`);
          if (measure.clients.length <= 8) {
            measure.clients.forEach((id, k) => (text += line(clientName(run.client_names, id), `${percent(measure.values[k][i])} %`)));
          } else if (focus >= 0) {
            text += line(`${clientName(run.client_names, measure.clients[focus])} (nearest)`, `${percent(measure.values[focus][i])} %`);
          }
          return text;
        },
      },
      xAxis: roundAxis,
      yAxis: { type: 'value', scale: true, axisLabel: { formatter: (v: number) => `${significant(100 * v, 3)} %` } },
      series: [
        { name: 'mean over clients', type: 'line', z: 5, lineStyle: { width: 3 }, itemStyle: { color: c.palette[0] }, ...symbols(x.length), data: x.map((r, i) => [r, measure.mean[i]]) },
        ...(hasGlobal
          ? [{ name: 'global model', type: 'line', z: 6, symbol: 'none', lineStyle: { width: 2, type: 'dashed' }, itemStyle: { color: c.palette[1] }, data: x.map((r, i) => [r, measure.global[i]]) }]
          : []),
        ...bandSeries(x, band.low, band.high, c.palette[0], band.name, 'band'),
        ...(focus >= 0
          ? [{ name: 'nearest client', type: 'line', z: 6, silent: true, symbol: 'none', lineStyle: { width: 2 }, itemStyle: { color: c.palette[3] }, data: x.map((r, i) => [r, measure.values[focus][i]]) }]
          : []),
        ...(every
          ? measure.values.map((values, k) => ({
              name: clientName(run.client_names, measure.clients[k]), type: 'line', z: 2, silent: true, symbol: 'none',
              lineStyle: { width: 1, color: c.quiet, opacity: 0.45 }, data: x.map((r, i) => [r, values[i]]),
            }))
          : []),
      ],
    }),
    table: () => ({
      head: ['round', 'mean %', '± std', 'worst %', 'global %'],
      words: 0,
      rows: x.map((r, i) => [r, percent(measure.mean[i]), percent(measure.std[i]), percent(measure.worst[i]), percent(measure.global[i])]),
    }),
  });
  return section('results', 'Results', accuracy, trainingCharts(run, key));
}

function trainingCharts(run: Run, key: string): HTMLElement {
  const x = run.rounds.round as number[];
  const loss = chart(`${key}-loss`, {
    title: 'Training loss',
    describe: `Mean over the records seen: ${significant(run.rounds.train_loss[0])} in round ${x[0]}, ${significant(run.rounds.train_loss.at(-1))} in round ${x.at(-1)}.`,
    height: 240,
    wide: false,
    option: () => ({
      tooltip: { trigger: 'axis', formatter: (p: any) => heading(`round ${x[p[0].dataIndex]}`) + line('loss', significant(run.rounds.train_loss[p[0].dataIndex])) },
      xAxis: roundAxis,
      yAxis: { type: 'value', scale: true },
      series: [{ name: 'loss', type: 'line', ...symbols(x.length), data: x.map((r, i) => [r, run.rounds.train_loss[i]]) }],
    }),
    table: () => ({ head: ['round', 'loss'], words: 0, rows: x.map((r, i) => [r, significant(run.rounds.train_loss[i])]) }),
  });
  const stacked = (name: string, data: Maybe[], colour: string) => ({ name, type: 'bar', stack: 'all', barCategoryGap: '20%', itemStyle: { color: colour }, data });
  const part = chart(`${key}-part`, {
    title: 'Who took part',
    describe: `Clients per round that sent something, abstained because their budget is spent, or whose training diverged.`,
    height: 240,
    wide: false,
    option: (c) => ({
      legend: {},
      tooltip: {
        trigger: 'axis',
        formatter: (p: any) => heading(`round ${x[p[0].dataIndex]}`) + p.map((s: any) => line(s.seriesName, String(s.value ?? 0))).join('') + line('took', seconds(run.rounds.seconds[p[0].dataIndex])),
      },
      xAxis: { type: 'category', data: x, name: 'round', nameLocation: 'middle', nameGap: 30 },
      yAxis: { type: 'value', minInterval: 1 },
      series: [
        stacked('sent', run.rounds.uploads, c.palette[0]),
        stacked('abstained', run.rounds.abstained, c.palette[4]),
        stacked('diverged', run.rounds.diverged, c.palette[1]),
      ],
    }),
    table: () => ({
      head: ['round', 'sent', 'abstained', 'diverged', 'seconds'],
      words: 0,
      rows: x.map((r, i) => [r, run.rounds.uploads[i] ?? 0, run.rounds.abstained[i] ?? 0, run.rounds.diverged[i] ?? 0, significant(run.rounds.seconds[i], 3)]),
    }),
  });
  return h('div', { class: 'pair' }, loss, part);
}

function clientSection(run: Run, key: string, redoAll: () => void): HTMLElement | null {
  const measure = run.evaluations.measures.accuracy;
  if (!measure) return null;
  const order = chosen(`${key}-order`, 'number');
  const at = measure.mean.length - 1;
  const bars = measure.clients.map((client, i) => ({ client, value: measure.values[i][at] }));
  if (order === 'value') bars.sort((a, b) => (a.value ?? -1) - (b.value ?? -1));
  const listed = run.config.data.clients > measure.clients.length ? ` Shown: ${measure.clients.length} of ${run.config.data.clients} clients.` : '';
  const perClient = chart(`${key}-clients`, {
    title: 'Accuracy of each client',
    describe: `After round ${run.evaluations.round[at]}: from ${percent(measure.worst[at])} %, mean ${percent(measure.mean[at])} %.${listed}`,
    note: listed.trim() || undefined,
    height: 300,
    controls: [
      chooser(`${key}-order`, 'Order', [{ value: 'number', label: 'by number' }, { value: 'value', label: 'worst first' }], order, (v) => {
        choices.set(`${key}-order`, v);
        redoAll();
      }),
    ],
    option: (c) => ({
      tooltip: { trigger: 'item', formatter: (p: any) => heading(clientName(run.client_names, bars[p.dataIndex].client)) + line('accuracy', `${percent(bars[p.dataIndex].value)} %`) },
      xAxis: { type: 'category', name: 'client', nameLocation: 'middle', nameGap: 30, data: bars.map((b) => run.client_names[b.client] ?? String(b.client)) },
      yAxis: { type: 'value', min: 0, max: 1, axisLabel: { formatter: (v: number) => `${Math.round(100 * v)} %` } },
      series: [
        {
          name: 'accuracy', type: 'bar', barMaxWidth: 36, itemStyle: { color: c.palette[0], borderRadius: [2, 2, 0, 0] }, data: bars.map((b) => b.value),
          markLine: { silent: true, symbol: 'none', lineStyle: { color: c.ink, type: 'dashed' }, label: { position: 'insideEndTop', color: c.ink, backgroundColor: c.card, padding: [2, 4], borderRadius: 3, formatter: `mean ${percent(measure.mean[at])} %` }, data: [{ yAxis: measure.mean[at] }] },
        },
      ],
    }),
    table: () => ({ head: ['client', 'accuracy %'], words: 0, rows: bars.map((b) => [run.client_names[b.client] ?? b.client, percent(b.value)]) }),
  });
  const domains = Object.entries(run.evaluations.domains);
  if (domains.length === 0) return section('clients', 'Clients', perClient);
  const perDomain = chart(`${key}-domains`, {
    title: 'Accuracy of each domain',
    describe: domains.map(([name, values]) => `${name}: ${percent(values[at])} %`).join(', '),
    height: Math.max(160, 44 * domains.length + 70),
    option: (c) => ({
      grid: { left: 130, right: 64 },
      tooltip: { trigger: 'item', formatter: (p: any) => heading(domains[p.dataIndex][0]) + line('mean over its clients', `${percent(domains[p.dataIndex][1][at])} %`) },
      xAxis: { type: 'value', min: 0, max: 1, axisLabel: { formatter: (v: number) => `${Math.round(100 * v)} %` } },
      yAxis: { type: 'category', inverse: true, data: domains.map(([name]) => name), axisLabel: { width: 110, overflow: 'truncate' } },
      series: [{ name: 'accuracy', type: 'bar', barMaxWidth: 24, itemStyle: { color: c.palette[2], borderRadius: [0, 2, 2, 0] }, label: { show: true, position: 'right', color: c.ink, formatter: (p: any) => `${percent(p.value, 1)} %` }, data: domains.map(([, values]) => values[at]) }],
    }),
    table: () => ({ head: ['domain', 'accuracy %'], rows: domains.map(([name, values]) => [name, percent(values[at])]) }),
  });
  return section('clients', 'Clients and domains', perClient, perDomain);
}

function privacySection(run: Run, key: string, redoAll: () => void): HTMLElement {
  const privacy = run.privacy;
  if (privacy.problem) return section('privacy', 'Privacy', h('p', { class: 'note' }, privacy.problem));
  const terms = privacy.terms;
  const stated = terms
    ? `${promised(terms)} at δ = ${significant(terms.delta)}, ${terms.adjacency} adjacency, one ${terms.unit}, against the ${terms.observer}.`
    : 'The run states no privacy terms: what it releases is not protected.';
  const views = privacy.views ?? [];
  const observer = chosen(`${key}-observer`, String(Math.max(0, views.findIndex((v) => v.observers.includes(terms?.observer ?? 'server')))));
  const view = views[Number(observer)] ?? views[0];
  const parts: (HTMLElement | null)[] = [h('p', {}, stated)];
  if (privacy.basis_why) {
    parts.push(h('p', { class: 'note', id: `${key}-basis` }, `ε is ${privacy.basis}: ${privacy.basis_why}.`));
  }
  if (view && view.rounds.length > 0) {
    const pick = views.length < 2 ? [] : [
      chooser(`${key}-observer`, 'Protected against', views.map((v, i) => ({ value: String(i), label: v.observers.join(', ') })), observer, (v) => {
        choices.set(`${key}-observer`, v);
        redoAll();
      }),
    ];
    parts.push(...spendingCharts(run, key, view, pick));
  } else if (views.length) {
    parts.push(h('p', {}, 'Nothing has been released.'));
  }
  parts.push(noiseChart(run, key));
  if (privacy.kinds?.length) {
    parts.push(
      h('h3', {}, 'Releases'),
      table(
        {
          head: ['release', 'seen by', 'mechanism', 'guarantee', 'rows', 'clients', 'noise multiplier'],
          words: 4,
          rows: privacy.kinds.map((k) => [k.what, k.observer, k.mechanism, k.why_unproven ? `none: ${k.why_unproven}` : privacy.basis, k.rows, k.clients, range(k.multiplier)]),
        },
        'Releases',
      ),
    );
  }
  return section('privacy', 'Privacy', ...parts);
}

const range = (r: { min: number; max: number } | null) =>
  r === null ? '–' : significant(r.min) === significant(r.max) ? significant(r.min) : `${significant(r.min)} to ${significant(r.max)}`;

const finite = (values: Maybe[]) => values.some((v) => v !== null);

function spendingCharts(run: Run, key: string, view: View, controls: HTMLElement[]): HTMLElement[] {
  const seen = view.observers.join(', ');
  const basis = run.privacy.basis;
  const unproven = [...new Set((run.privacy.kinds ?? []).map((k) => k.why_unproven).filter((w): w is string => w !== null))];
  const anyProven = view.curves.some((curve) => finite(curve.proven));
  const anyClaimed = view.curves.some((curve) => finite(curve.claimed));
  const missing = view.curves.some((curve) => curve.proven.at(-1) === null);
  const why = missing ? `No finite ε can be proven in the eyes of ${seen}${unproven.length ? `: ${unproven.join('; ')}` : ''}.` : '';
  if (!anyProven && !anyClaimed) return [h('div', { class: 'verdict' }, h('b', {}, 'ε = ∞. '), why), ...controls];

  const budgets = [...new Set(view.curves.map((curve) => curve.budget).filter((b): b is number => b !== null))].sort((a, b) => a - b);
  const colourOf = (c: Colours, curve: SpendingCurve) => c.palette[Math.max(0, budgets.indexOf(curve.budget ?? NaN)) % c.palette.length];
  let focus = 0;
  const claims = view.curves.some((curve) => curve.claimed.some((v, i) => v !== null && (curve.proven[i] === null || Math.abs(v - curve.proven[i]!) > 1e-6 * v)));
  const x = view.rounds;
  const step = (curve: SpendingCurve, what: 'proven' | 'claimed', c: Colours, index: number) => ({
    name: `${what === 'proven' ? basis : what} ${index}`, type: 'line', step: 'end', symbol: 'none', silent: index !== 0 || what === 'claimed',
    z: index === focus ? 4 : 3,
    lineStyle: { width: index === focus ? 3 : 1.5, type: what === 'proven' ? 'solid' : 'dotted', opacity: view.curves.length > 12 && index !== focus ? 0.55 : 1 },
    itemStyle: { color: colourOf(c, curve) },
    data: x.map((r, i) => [r, curve[what][i]]),
  });
  const over = chart(`${key}-spent`, {
    title: 'Privacy spent over rounds',
    describe: `In the eyes of ${seen}. Largest ${basis} ε at the end: ${epsilon(missing ? null : Math.max(...view.curves.map((curve) => curve.proven.at(-1) ?? 0)))}. Budgets: ${budgets.map((b) => significant(b)).join(', ') || 'none'}.`,
    note: [`Solid: ${basis}.${claims ? ' Dotted: claimed.' : ''}${budgets.length ? ' Dashed: budget, in the colour of its clients.' : ''}`, why].filter(Boolean).join(' '),
    height: 340,
    controls,
    hover: (y) => {
      const before = focus;
      let distance = Infinity;
      view.curves.forEach((curve, i) => {
        const end = curve.proven.at(-1) ?? curve.claimed.at(-1);
        const d = end === null || end === undefined ? Infinity : Math.abs(end - y);
        if (d < distance) [focus, distance] = [i, d];
      });
      return focus !== before;
    },
    option: (c) => ({
      tooltip: {
        trigger: 'axis',
        formatter: (p: any) => {
          const i = (Array.isArray(p) ? p : [p])[0].dataIndex;
          const curve = view.curves[focus];
          return heading(`round ${x[i]}, ${clientList(curve.clients, 6, run.client_names)}`) + line(`${basis} ε`, epsilon(curve.proven[i])) + line('claimed ε', epsilon(curve.claimed[i])) +
            (curve.budget === null ? '' : line('budget', significant(curve.budget)));
        },
      },
      xAxis: roundAxis,
      yAxis: { type: 'value', name: 'ε', min: 0, axisLabel: { formatter: (v: number) => significant(v, 3) } },
      series: [
        ...view.curves.flatMap((curve, i) => (finite(curve.proven) ? [step(curve, 'proven', c, i)] : [])),
        ...(claims ? view.curves.flatMap((curve, i) => (finite(curve.claimed) ? [step(curve, 'claimed', c, i)] : [])) : []),
        {
          // Unseen points hold the axis open up to the largest budget.
          name: 'budget', type: 'line', silent: true, symbol: 'none', lineStyle: { opacity: 0 }, data: budgets.map((b) => [x[0], b]),
          markLine: {
            silent: true, symbol: 'none', label: { position: 'insideStartTop', color: c.ink, formatter: (p: any) => `budget ${significant(p.value)}` },
            data: budgets.map((b, i) => ({ yAxis: b, lineStyle: { type: 'dashed', width: 1.5, color: c.palette[i % c.palette.length] } })),
          },
        },
      ],
    }),
    table: () => ({
      head: ['clients', 'round', `${basis} ε`, 'claimed ε', 'budget'],
      rows: view.curves.flatMap((curve) => x.map((r, i) => [clientList(curve.clients, 3, run.client_names), r, epsilon(curve.proven[i]), epsilon(curve.claimed[i]), curve.budget === null ? '–' : significant(curve.budget)])),
    }),
  });
  return [over, sidesChart(run, key, view)];
}

// Claimed against proven (or simulated) against audited, for each group of clients.
function sidesChart(run: Run, key: string, view: View): HTMLElement {
  const basis = run.privacy.basis;
  const rows = view.curves.map((curve) => {
    const audited = (run.audit?.entries ?? [])
      .filter((e) => (e.client === undefined || curve.clients.includes(e.client)) && (e.observer === undefined || view.observers.includes(e.observer)))
      .map((e) => e.audited_epsilon);
    return {
      name: clientList(curve.clients, 2, run.client_names).replace(/^clients? /, ''),
      clients: curve.clients,
      claimed: curve.claimed.at(-1) ?? null,
      proven: curve.proven.at(-1) ?? null,
      audited: audited.length ? Math.max(...audited) : null,
      budget: curve.budget,
    };
  });
  const hasAudit = rows.some((row) => row.audited !== null);
  return chart(`${key}-sides`, {
    title: hasAudit ? `Claimed, ${basis} and audited ε` : `Claimed and ${basis} ε`,
    describe: 'For each group of clients with the same history.',
    note: hasAudit
      ? `Audited: a lower bound found by attacking the run${run.audit?.confidence ? `, at ${percent(run.audit.confidence, 0)} % confidence` : ''}. ${capital(basis)} must lie above it.`
      : 'No audit of this run is recorded.',
    height: 300,
    option: (c) => ({
      legend: {},
      tooltip: {
        trigger: 'axis',
        axisPointer: { type: 'shadow' },
        formatter: (p: any) => {
          const row = rows[p[0].dataIndex];
          return heading(clientList(row.clients, 6, run.client_names)) + line('claimed', epsilon(row.claimed)) + line(basis, epsilon(row.proven)) +
            (row.audited === null ? '' : line('audited, at least', significant(row.audited))) + (row.budget === null ? '' : line('budget', significant(row.budget)));
        },
      },
      xAxis: { type: 'category', name: 'clients', nameLocation: 'middle', nameGap: 30, data: rows.map((row) => row.name) },
      yAxis: { type: 'value', name: 'ε', min: 0 },
      series: [
        { name: 'claimed', type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[1] }, data: rows.map((row) => row.claimed) },
        { name: basis, type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[0] }, data: rows.map((row) => row.proven) },
        ...(hasAudit ? [{ name: 'audited', type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[2] }, data: rows.map((row) => row.audited) }] : []),
        ...(rows.some((row) => row.budget !== null)
          ? [{ name: 'budget', type: 'scatter', symbol: 'rect', symbolSize: [40, 3], itemStyle: { color: c.ink }, data: rows.map((row) => row.budget) }]
          : []),
      ],
    }),
    table: () => ({
      head: ['clients', 'claimed ε', `${basis} ε`, 'audited ε', 'budget'],
      rows: rows.map((row) => [clientList(row.clients, 8, run.client_names), epsilon(row.claimed), epsilon(row.proven), significant(row.audited), significant(row.budget)]),
    }),
  });
}

function noiseChart(run: Run, key: string): HTMLElement | null {
  const noise = run.privacy.noise ?? [];
  if (noise.length === 0) return null;
  const unit = run.privacy.terms?.unit ?? 'record';
  const rows = noise.map((n) => ({ ...n, name: `${n.what}: ${n.group}`, norm: n.stddev.max * Math.sqrt(n.coordinates) }));
  const scale = logAxis(rows.flatMap((r) => [r.sensitivity.max / 2, r.norm]));
  return chart(`${key}-noise`, {
    title: 'Noise against signal',
    describe: rows.map((r) => `${r.name}: one ${unit} moves at most ${significant(r.sensitivity.max)}, the noise's norm is about ${significant(r.norm)}`).join('; '),
    note: `For each group of numbers in the last release: how far one ${unit} can move it, and how long the noise vector is. Noise is drawn once for the sum of many.`,
    height: Math.max(190, 60 * rows.length + 110),
    option: (c) => ({
      legend: {},
      grid: { left: 150 },
      tooltip: {
        trigger: 'axis', axisPointer: { type: 'shadow' },
        formatter: (p: any) => {
          const r = rows[p[0].dataIndex];
          return heading(r.name) + line(`one ${unit}, at most`, range(r.sensitivity)) + line('noise, one coordinate', range(r.stddev)) + line('coordinates', String(r.coordinates)) + line('noise, norm', significant(r.norm));
        },
      },
      xAxis: { type: 'log', ...scale, startValue: scale.min, name: 'norm', nameLocation: 'middle', nameGap: 30, axisLabel: { formatter: (v: number) => significant(v, 2) } },
      yAxis: { type: 'category', inverse: true, data: rows.map((r) => r.name), axisLabel: { width: 130, overflow: 'truncate' } },
      series: [
        { name: `one ${unit}`, type: 'bar', barMaxWidth: 18, itemStyle: { color: c.palette[0] }, data: rows.map((r) => r.sensitivity.max) },
        { name: 'noise', type: 'bar', barMaxWidth: 18, itemStyle: { color: c.palette[1] }, data: rows.map((r) => r.norm) },
      ],
    }),
    table: () => ({
      head: ['release: group', 'coordinates', `one ${unit} moves it`, 'noise stddev', 'noise norm'],
      rows: rows.map((r) => [r.name, r.coordinates, range(r.sensitivity), range(r.stddev), significant(r.norm)]),
    }),
  });
}

// Whole powers around the values: of two where few, so that an axis has more than two ticks, else of ten.
export function logAxis(values: number[]): { logBase: number; min: number; max: number } {
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [1, 10];
  const base = high / low > 1000 ? 10 : 2;
  const power = (v: number, round: (v: number) => number) => base ** round(Math.log(v) / Math.log(base));
  const [min, max] = [power(low * 0.99, Math.floor), power(high * 1.01, Math.ceil)];
  return { logBase: base, min, max: max > min ? max : min * base };
}

function dataSection(run: Run, key: string): HTMLElement | null {
  const parts: HTMLElement[] = [];
  const p = run.partition;
  if (p) {
    const cells = p.counts.flatMap((row, client) => row.map((count, label) => [client, label, count]));
    const most = Math.max(1, ...cells.map((cell) => cell[2]));
    const many = p.clients > p.counts.length ? `The first ${p.counts.length} of ${p.clients} clients.` : undefined;
    parts.push(
      chart(`${key}-partition`, {
        title: 'Who holds which classes',
        describe: `${p.title}: ${p.counts.length} clients, ${p.classes.length} classes.`,
        note: [p.title, many].filter(Boolean).join('. '),
        height: Math.min(620, Math.max(220, 26 * p.classes.length + 110)),
        canvas: cells.length > 3000,
        option: (c) => ({
          grid: { left: 120, bottom: 76 },
          tooltip: { trigger: 'item', formatter: (q: any) => heading(`client ${q.value[0]}`) + line(p.classes[q.value[1]], `${q.value[2]} records`) },
          xAxis: { type: 'category', name: 'client', nameLocation: 'middle', nameGap: 28, data: p.counts.map((_, i) => String(i)) },
          yAxis: { type: 'category', inverse: true, data: p.classes, axisLabel: { width: 105, overflow: 'truncate', hideOverlap: true } },
          visualMap: { min: 0, max: most, calculable: false, orient: 'horizontal', left: 'center', bottom: 0, itemHeight: 120, itemWidth: 12, text: [`${most}`, '0'], textStyle: { color: c.quiet }, inRange: { color: c.ramp } },
          series: [{ name: 'records', type: 'heatmap', itemStyle: { borderColor: c.card, borderWidth: cells.length > 3000 ? 0 : 1 }, data: cells }],
        }),
        table: () => ({ head: ['client', ...p.classes], words: 0, rows: p.counts.map((row, client) => [client, ...row]) }),
      }),
    );
  } else if (run.picture) {
    parts.push(h('figure', { class: 'chart wide' }, h('figcaption', {}, h('h3', {}, 'Who holds which classes')), h('img', { src: run.picture, alt: 'Clients from left to right, classes from top to bottom' })));
  }
  [run.embedding ?? []].flat().forEach((e, i) => parts.push(embeddingChart(e, i === 0 ? `${key}-embedding` : `${key}-embedding-${i}`)));
  if (run.curve) parts.push(curveChart(run, key));
  return parts.length ? section('data', run.curve ? 'Data and bounds' : 'Data', ...parts) : null;
}

function embeddingChart(e: Embedding, key: string): HTMLElement {
  const labels = [...new Set(e.label)].sort((a, b) => a - b);
  const name = (label: number) => e.classes?.[label] ?? `class ${label}`;
  const marks = ['circle', 'rect', 'triangle', 'diamond'];
  return chart(key, {
    title: e.title ?? 'Features',
    describe: `${e.x.length} records in two dimensions, ${labels.length} classes.`,
    height: 460,
    canvas: e.x.length > 3000,
    option: (c) => ({
      legend: { type: 'scroll', itemHeight: 10, itemWidth: 10, icon: undefined },
      tooltip: { trigger: 'item', formatter: (p: any) => heading(p.seriesName) },
      xAxis: { type: 'value', scale: true, axisLabel: { show: false }, axisTick: { show: false } },
      yAxis: { type: 'value', scale: true, axisLabel: { show: false }, axisTick: { show: false } },
      grid: { left: 12, right: 12, bottom: 12 },
      series: labels.map((label, i) => ({
        name: name(label), type: 'scatter', symbol: marks[Math.floor(i / c.palette.length) % marks.length], symbolSize: 6,
        itemStyle: { color: c.palette[i % c.palette.length], opacity: 0.75 },
        data: e.x.flatMap((x, k) => (e.label[k] === label ? [[x, e.y[k]]] : [])),
      })),
    }),
    table: () => ({ head: ['class', 'records'], rows: labels.map((label) => [name(label), e.label.filter((l) => l === label).length]) }),
  });
}

function curveChart(run: Run, key: string): HTMLElement {
  const v = run.curve!;
  const onEpsilon = v.curve.axis !== 'noise';
  const xName = onEpsilon ? 'budget ε' : 'signal over noise of one step';
  const points = [...new Map(v.budgets.map((b) => [b.x, b])).values()];
  return chart(`${key}-curve`, {
    title: 'Clipping curve',
    describe: `${v.curve.family ?? ''} curve from ${significant(v.y[0])} to ${significant(v.y.at(-1))}.`,
    note: onEpsilon ? 'Dots: the budgets of this run.' : undefined,
    height: 300,
    option: (c) => ({
      tooltip: { trigger: 'axis', formatter: (p: any) => heading(`${xName} ${significant(p[0].value[0], 3)}`) + line('clipping bound', significant(p[0].value[1], 3)) },
      xAxis: { type: 'log', ...logAxis(v.x), name: xName, nameLocation: 'middle', nameGap: 30, axisLabel: { formatter: (x: number) => significant(x, 2) } },
      yAxis: { type: 'log', ...logAxis(v.y), name: 'bound', axisLabel: { formatter: (y: number) => significant(y, 2) } },
      series: [
        { name: 'curve', type: 'line', symbol: 'none', lineStyle: { width: 2.5 }, itemStyle: { color: c.palette[0] }, data: v.x.map((x, i) => [x, v.y[i]]) },
        { name: 'budgets', type: 'scatter', symbolSize: 9, itemStyle: { color: c.palette[1] }, data: points.map((b) => [b.x, b.y]) },
      ],
    }),
    table: () => ({ head: [xName, 'clipping bound'], words: 0, rows: v.x.map((x, i) => [significant(x), significant(v.y[i])]) }),
  });
}

function attackSection(run: Run, key: string): HTMLElement | null {
  if (!run.attacks) return null;
  const parts: HTMLElement[] = [];
  const curves = run.attacks.flatMap((a) => [
    ...(a.roc ? [{ name: a.name, auc: a.auc, roc: a.roc }] : []),
    ...(a.baseline?.roc ? [{ name: `${a.name}, without privacy`, auc: a.baseline.auc, roc: a.baseline.roc }] : []),
  ]);
  const banded = curves.some((a) => a.roc.low && a.roc.high);
  if (curves.length) {
    parts.push(
      chart(`${key}-roc`, {
        title: 'Who was in the training data? True against false positives',
        describe: curves.map((a) => `${a.name}: area under the curve ${significant(a.auc, 3)}`).join('; '),
        ...(banded ? { note: 'Bands: 95 % limits of the true positive rate.' } : {}),
        height: 380,
        option: (c) => ({
          legend: { data: curves.map((a) => a.name) },
          tooltip: { trigger: 'item', formatter: (p: any) => heading(p.seriesName) + line('false positives', percent(p.value[0])) + line('true positives', percent(p.value[1])) },
          xAxis: { type: 'value', min: 0, max: 1, name: 'false positive rate', nameLocation: 'middle', nameGap: 30 },
          yAxis: { type: 'value', min: 0, max: 1, name: 'true positive rate' },
          series: [
            ...curves.flatMap((a, i) => {
              const colour = c.palette[i % c.palette.length];
              const points = { name: a.name, type: 'line', symbolSize: 5, showSymbol: a.roc.false_positive_rate.length <= 40, lineStyle: { width: 2 }, itemStyle: { color: colour }, data: a.roc.false_positive_rate.map((f, k) => [f, a.roc.true_positive_rate[k]]) };
              const { low, high } = a.roc;
              return low && high ? [...bandSeries(a.roc.false_positive_rate, low, high, colour, `${a.name} (limits)`, `roc ${i}`), points] : [points];
            }),
            { name: 'guessing', type: 'line', silent: true, symbol: 'none', lineStyle: { type: 'dashed', width: 1, color: '#888' }, data: [[0, 0], [1, 1]] },
          ],
        }),
        table: () => ({
          head: ['attack', 'false positives', 'true positives'],
          rows: curves.flatMap((a) => a.roc.false_positive_rate.map((f, i) => [a.name, significant(f), significant(a.roc.true_positive_rate[i])])),
        }),
      }),
    );
  }
  parts.push(table(
    {
      head: ['attack', 'what it tries', 'area under the curve', 'without privacy', 'advantage', 'without privacy'],
      words: 2,
      rows: run.attacks.map((a) => [a.name, a.what ?? '–', ...[a.auc, a.baseline?.auc, a.advantage, a.baseline?.advantage].map((v) => significant(v, 4))]),
    },
    'Attacks',
  ));
  for (const attack of run.attacks) {
    const grids = [
      { picture: attack.grid, caption: 'this run' },
      { picture: attack.baseline?.grid, caption: 'without privacy' },
    ].filter((g) => g.picture);
    if (grids.length) {
      parts.push(
        h('h3', {}, `Pictures: ${attack.name}`),
        h('div', { class: 'pictures' }, ...grids.map((g) => h('figure', {}, h('img', { src: g.picture!, alt: `What ${attack.name} made, ${g.caption}` }), h('figcaption', {}, g.caption)))),
      );
    }
    if (!attack.reconstructions?.length) continue;
    parts.push(
      h('h3', {}, `Reconstructions: ${attack.name}`),
      h(
        'div',
        { class: 'pictures' },
        ...attack.reconstructions.map((r, i) =>
          h(
            'figure',
            {},
            h('img', { src: r.original, alt: `Record ${i + 1}` }),
            h('img', { src: r.reconstructed, alt: `What the attack made of record ${i + 1}` }),
            h('figcaption', {}, `record, guess${r.psnr === undefined ? '' : `; ${significant(r.psnr, 3)} dB`}`),
          ),
        ),
      ),
    );
  }
  return section('attacks', 'Attacks', ...parts);
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

