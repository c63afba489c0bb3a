// What a run has cost its clients in privacy: against whom, over time, claimed and proven, and how loud its noise is.
import { chart } from './charts';
import { capital, chooser, clientList, epsilon, h, percent, section, significant, table } from './dom';
import { Maybe, Run, SpendingCurve, View } from './document';
import { choices, chosen, heading, kExactly, line, logAxis, roundAxis } from './run_parts';
import { Colours } from './theme';

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

export function largestProven(run: Run): Maybe | undefined {
  const view = declaredView(run);
  if (!view || view.rounds.length === 0) return undefined;
  const last = view.curves.map((curve) => curve.proven.at(-1) ?? null);
  return last.includes(null) ? null : Math.max(...(last as number[]));
}

export function privacySection(run: Run, key: string, redoAll: () => void): HTMLElement {
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

// A name for each line, rising; lines that are close together are named once, at the highest of them.
function budgetNames(budgets: number[]): string[] {
  const close = 0.07 * Math.max(...budgets);
  let waiting: number[] = [];
  return budgets.map((budget, i) => {
    waiting.push(budget);
    if (i + 1 < budgets.length && budgets[i + 1] - budget < close) return '';
    const shown = waiting.length > 3 ? `${significant(waiting[0])} to ${significant(budget)}` : waiting.map((b) => significant(b)).join(', ');
    const name = `${waiting.length > 1 ? 'budgets' : 'budget'} ${shown}`;
    waiting = [];
    return name;
  });
}

function spendingCharts(run: Run, key: string, view: View, controls: HTMLElement[]): HTMLElement[] {
  const seen = view.observers.map((observer) => `the ${observer}`).join(', ');
  const basis = run.privacy.basis;
  const unproven = [...new Set((run.privacy.kinds ?? []).map((k) => k.why_unproven).filter((w): w is string => w !== null))];
  const anyProven = view.curves.some((curve) => finite(curve.proven));
  const anyClaimed = view.curves.some((curve) => finite(curve.claimed));
  const missing = view.curves.some((curve) => curve.proven.at(-1) === null);
  const why = missing ? `No finite ε can be proven against ${seen}${unproven.length ? `: ${unproven.join('; ')}` : ''}.` : '';
  if (!anyProven && !anyClaimed) return [h('div', { class: 'verdict' }, h('b', {}, 'ε = ∞. '), why), ...controls];

  const budgets = [...new Set(view.curves.map((curve) => curve.budget).filter((b): b is number => b !== null))].sort((a, b) => a - b);
  const colourOf = (c: Colours, curve: SpendingCurve) => c.palette[Math.max(0, budgets.indexOf(curve.budget ?? NaN)) % c.palette.length];
  const names = budgetNames(budgets);
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
    describe: `Against ${seen}. Largest ${basis} ε at the end: ${epsilon(missing ? null : Math.max(...view.curves.map((curve) => curve.proven.at(-1) ?? 0)))}. Budgets: ${budgets.map((b) => significant(b)).join(', ') || 'none'}.`,
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
            silent: true, symbol: 'none', precision: kExactly, label: { position: 'insideStartTop', color: c.ink },
            data: budgets.map((b, i) => ({
              yAxis: b,
              lineStyle: { type: 'dashed', width: 1.5, color: c.palette[i % c.palette.length] },
              label: { show: names[i] !== '', formatter: names[i] },
            })),
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
            (row.audited === null ? '' : line('audited', `≥ ${significant(row.audited)}`)) + (row.budget === null ? '' : line('budget', significant(row.budget)));
        },
      },
      xAxis: { type: 'category', name: 'clients', nameLocation: 'middle', nameGap: 30, data: rows.map((row) => row.name) },
      yAxis: { type: 'value', name: 'ε', min: 0 },
      series: [
        { name: 'claimed', type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[1] }, data: rows.map((row) => row.claimed) },
        { name: basis, type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[0] }, data: rows.map((row) => row.proven) },
        ...(hasAudit ? [{ name: 'audited', type: 'bar', barMaxWidth: 28, itemStyle: { color: c.palette[2] }, label: { show: true, position: 'top', color: c.ink, formatter: (p: any) => `≥ ${significant(p.value, 3)}` }, data: rows.map((row) => row.audited) }] : []),
        ...(rows.some((row) => row.budget !== null)
          ? [{ name: 'budget', type: 'scatter', symbol: 'rect', symbolSize: [40, 3], itemStyle: { color: c.ink }, data: rows.map((row) => row.budget) }]
          : []),
      ],
    }),
    table: () => ({
      head: ['clients', 'claimed ε', `${basis} ε`, 'audited ε', 'budget'],
      rows: rows.map((row) => [clientList(row.clients, 8, run.client_names), epsilon(row.claimed), epsilon(row.proven), row.audited === null ? '–' : `≥ ${significant(row.audited)}`, significant(row.budget)]),
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
        trigger: 'item',
        formatter: (p: any) => {
          const r = rows[p.dataIndex];
          return heading(r.name) + line(`one ${unit}, at most`, range(r.sensitivity)) + line('noise, one coordinate', range(r.stddev)) + line('coordinates', String(r.coordinates)) + line('noise, norm', significant(r.norm));
        },
      },
      xAxis: { type: 'log', ...scale, startValue: scale.min, name: 'norm', nameLocation: 'middle', nameGap: 30, axisLabel: { formatter: (v: number) => significant(v, 2) } },
      yAxis: { type: 'category', inverse: true, data: rows.map((r) => r.name), splitLine: { show: true }, axisLabel: { width: 130, overflow: 'truncate' } },
      series: [
        // Dots: a bar's length means nothing on a logarithmic axis.
        { name: `one ${unit}`, type: 'scatter', symbolSize: 12, itemStyle: { color: c.palette[0] }, data: rows.map((r, i) => [r.sensitivity.max, i]) },
        { name: 'noise', type: 'scatter', symbol: 'diamond', symbolSize: 14, itemStyle: { color: c.palette[1] }, data: rows.map((r, i) => [r.norm, i]) },
      ],
    }),
    table: () => ({
      head: ['release: group', 'coordinates', `one ${unit} moves it`, 'noise stddev', 'noise norm'],
      rows: rows.map((r) => [r.name, r.coordinates, range(r.sensitivity), range(r.stddev), significant(r.norm)]),
    }),
  });
}
