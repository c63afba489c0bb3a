// Several runs side by side. Runs that differ only in their seed are one group, and the seed is the unit of every test.
import { bandSeries, kExactly, kMeasureNames, logAxis, roundAxis } from './run_parts';
import { chart, errorBars } from './charts';
import { chooser, epsilon, epsilonUnder, escaped, h, percent, section, significant, table, weakest } from './dom';
import { Comparison, Group, Maybe, PageDocument } from './document';
import { Colours } from './theme';

const choices = new Map<string, string>();

export const kMetricNames: Record<string, string> = {
  'accuracy/mean': 'Accuracy, mean over clients',
  'accuracy/worst': 'Accuracy of the worst client',
  accuracy_global: 'Accuracy of the global model',
  'balanced_accuracy/mean': 'Balanced accuracy, mean over clients',
  balanced_accuracy_global: 'Balanced accuracy of the global model',
  'auroc/mean': 'AUROC, mean over clients',
  auroc_global: 'AUROC of the global model',
  'global_test_accuracy/mean': "Accuracy on all clients' classes",
};

const kDashes = ['solid', 'dashed', 'dotted'];
const style = (c: Colours, i: number) => ({
  colour: c.palette[i % c.palette.length],
  dash: kDashes[Math.floor(i / c.palette.length) % kDashes.length],
});

// What a label has no room for is there on hover.
const allSettings = (comparison: Comparison) => ({
  show: true,
  formatter: (p: any) => escaped(comparison.groups.find((g) => g.label === p.name)?.settings ?? p.name).replaceAll(', ', '<br>'),
});

const mean = (values: number[]) => values.reduce((a, b) => a + b, 0) / values.length;

export function compareSections(document: PageDocument, redoAll: () => void): HTMLElement[] {
  const comparison = document.comparison;
  if (!comparison) return [];
  return [
    section('compare', 'Side by side', overlay(document, comparison, redoAll)),
    differences(comparison, redoAll),
    section('frontier', 'Privacy and utility', frontier(comparison, redoAll)),
  ];
}

// The mean over seeds of the mean over clients; the band spans the seeds.
function overlay(document: PageDocument, comparison: Comparison, redoAll: () => void): HTMLElement {
  const names = [...new Set(document.runs.flatMap((run) => Object.keys(run.evaluations.measures)))];
  const name = choices.get('measure') ?? 'accuracy';
  const curves = comparison.groups.map((group) => {
    const byRound = new Map<number, number[]>();
    for (const index of group.runs) {
      const run = document.runs[index];
      const measure = run.evaluations.measures[name];
      run.evaluations.round.forEach((round, i) => {
        const value = measure?.mean[i];
        if (value !== null && value !== undefined) byRound.set(round, [...(byRound.get(round) ?? []), value]);
      });
    }
    const rounds = [...byRound.keys()].sort((a, b) => a - b);
    return { group, rounds, values: rounds.map((round) => byRound.get(round)!) };
  });
  const many = curves.length > 12;
  return chart('compare-overlay', {
    title: `${kMeasureNames[name] ?? name} over rounds`,
    describe: curves.map((c) => `${c.group.label}: ${percent(c.values.length ? mean(c.values.at(-1)!) : null)} % at the end`).join('; '),
    note: 'Mean over clients. With several seeds: the line is their mean, the band spans them.',
    height: many ? 520 : 400,
    controls: names.length < 2 ? [] : [
      chooser('compare-measure', 'Measure', names.map((n) => ({ value: n, label: kMeasureNames[n] ?? n })), name, (v) => {
        choices.set('measure', v);
        redoAll();
      }),
    ],
    option: (c) => ({
      legend: { data: curves.map((curve) => curve.group.label), type: 'scroll', tooltip: allSettings(comparison) },
      tooltip: {
        trigger: 'axis', order: 'valueDesc',
        formatter: (parts: any) => {
          const shown = (Array.isArray(parts) ? parts : [parts]).filter((p: any) => !/ \((from|seeds)\)$/.test(p.seriesName));
          return `<div class="tip-head">round ${shown[0]?.value[0]}</div>` +
            shown.map((p: any) => `<div class="tip"><span>${p.marker}${escaped(p.seriesName)}</span><b>${percent(p.value[1])} %</b></div>`).join('');
        },
      },
      xAxis: roundAxis,
      yAxis: { type: 'value', scale: true, axisLabel: { formatter: (v: number) => `${significant(100 * v, 3)} %` } },
      series: curves.flatMap((curve, i) => {
        const { colour, dash } = style(c, i);
        const seeds = curve.values.some((v) => v.length > 1);
        return [
          {
            name: curve.group.label, type: 'line', z: 3, lineStyle: { width: 2.5, type: dash }, itemStyle: { color: colour },
            showSymbol: curve.rounds.length <= 30, symbol: 'circle', symbolSize: 6, data: curve.rounds.map((r, k) => [r, mean(curve.values[k])]),
          },
          ...(seeds
            ? bandSeries(curve.rounds, curve.values.map((v) => Math.min(...v)), curve.values.map((v) => Math.max(...v)), colour, `${curve.group.label} (seeds)`, `band ${i}`)
            : []),
        ];
      }),
    }),
    table: () => ({
      head: ['settings', 'round', 'mean %', 'seeds'],
      rows: curves.flatMap((curve) => curve.rounds.map((r, k) => [curve.group.label, r, percent(mean(curve.values[k])), curve.values[k].length])),
    }),
  });
}

function signed(value: number): string {
  return `${value > 0 ? '+' : value < 0 ? '−' : ''}${percent(Math.abs(value))}`;
}

function differences(comparison: Comparison, redoAll: () => void): HTMLElement {
  const names = Object.keys(comparison.metrics);
  if (names.length === 0) return section('differences', 'Differences', h('p', {}, 'No run is finished.'));
  const name = names.includes(choices.get('metric') ?? '') ? choices.get('metric')! : names[0];
  const metric = comparison.metrics[name];
  const reference = Math.min(Number(choices.get('reference') ?? 0), comparison.groups.length - 1);
  const base = metric.mean[reference];
  const basis = weakest(comparison.groups.map((group) => group.basis));
  const rows = comparison.groups.map((group, i) => {
    const value = metric.mean[i];
    const p = metric.p[i][reference];
    const single = metric.values[i].length < 2 || metric.values[reference].length < 2;
    const verdict = i === reference ? 'reference' : p === null ? (single ? 'one seed, no test' : '–') : p < 0.05 ? 'differs' : 'could be luck';
    return [
      h('span', { title: group.settings }, group.label), verdict, String(metric.values[i].length), percent(value), percent(metric.std[i]),
      i === reference || value === null || base === null ? '–' : signed(value - base),
      i === reference ? '–' : significant(p, 3), epsilon(group.claimed_epsilon), epsilonUnder(basis, group.proven_epsilon, group.basis),
    ];
  });
  const few = comparison.groups.some((_, i) => i !== reference && metric.values[i].length > 0 && metric.values[i].length < 4);
  return section(
    'differences', 'Differences',
    h(
      'div', { class: 'controls' },
      chooser('compare-metric', 'Value', names.map((n) => ({ value: n, label: kMetricNames[n] ?? n })), name, (v) => {
        choices.set('metric', v);
        redoAll();
      }),
      chooser('compare-reference', 'Against', comparison.groups.map((g, i) => ({ value: String(i), label: g.label })), String(reference), (v) => {
        choices.set('reference', v);
        redoAll();
      }),
    ),
    table({ head: ['settings', 'verdict', 'seeds', 'mean %', '± std', 'difference', 'p', 'claimed ε', `${basis} ε`], words: 2, rows }, 'Differences'),
    h('p', { class: 'note' }, `Two-sided Mann–Whitney test, exact up to 60 values; a seed is one value, "differs" means p < 0.05.${few ? ' With fewer than four seeds a side no difference can reach that.' : ''}`),
  );
}

interface Point {
  group: Group;
  x: number;
  y: number;
  low: number;
  high: number;
}

function frontier(comparison: Comparison, redoAll: () => void): HTMLElement {
  const names = Object.keys(comparison.metrics);
  if (names.length === 0) return h('p', {}, 'No run is finished.');
  const name = names.includes(choices.get('metric') ?? '') ? choices.get('metric')! : names[0];
  const which = choices.get('epsilon') ?? 'proven';
  const basis = weakest(comparison.groups.map((group) => group.basis));
  const metric = comparison.metrics[name];
  const series = new Map<string, Point[]>();
  const without: { label: string; y: number }[] = [];
  comparison.groups.forEach((group, i) => {
    const y = metric.mean[i];
    if (y === null) return;
    const x: Maybe = which === 'proven' ? group.proven_epsilon : group.claimed_epsilon;
    if (x === null || x <= 0) {
      without.push({ label: x === null ? `${group.label} (ε = ∞)` : `${group.label} (ε = 0)`, y });
      return;
    }
    const std = metric.std[i] ?? 0;
    series.set(group.series, [...(series.get(group.series) ?? []), { group, x, y, low: y - std, high: y + std }]);
  });
  const lines = [...series.entries()].map(([label, points]) => ({ label, points: points.sort((a, b) => a.x - b.x) }));
  const xs = lines.flatMap((l) => l.points.map((p) => p.x));
  const note = 'One line per method; bars are ± one standard deviation over seeds. Settings without a finite positive ε are horizontal lines.';
  return chart('compare-frontier', {
    title: `${kMetricNames[name] ?? name} against ε`,
    describe: lines.map((l) => `${l.label}: ${l.points.map((p) => `${percent(p.y)} % at ε ${significant(p.x, 3)}`).join(', ')}`).join('; ') || 'No setting has a finite ε.',
    note,
    height: 400,
    controls: [
      chooser('compare-epsilon', 'ε', [{ value: 'proven', label: basis }, { value: 'claimed', label: 'claimed' }], which, (v) => {
        choices.set('epsilon', v);
        redoAll();
      }),
    ],
    option: (c) => ({
      legend: { data: [...lines.map((l) => l.label), ...without.map((w) => w.label)], type: 'scroll', tooltip: allSettings(comparison) },
      tooltip: {
        trigger: 'item',
        formatter: (p: any) => {
          const point = lines.find((l) => l.label === p.seriesName)?.points[p.dataIndex];
          const text = point ? `${percent(point.y)} ± ${percent(point.y - point.low)} %` : '';
          return point ? `<div class="tip-head">${escaped(point.group.label)}</div><div class="tip"><span>ε</span><b>${significant(point.x)}</b></div><div class="tip"><span>seeds</span><b>${point.group.seeds.length}</b></div><div class="tip"><span>value</span><b>${text}</b></div>` : escaped(p.seriesName);
        },
      },
      xAxis: { type: 'log', name: `${which === 'proven' ? basis : which} ε, largest of any client`, nameLocation: 'middle', nameGap: 30, axisLabel: { formatter: (v: number) => significant(v, 2) }, ...logAxis(xs) },
      yAxis: { type: 'value', scale: true, axisLabel: { formatter: (v: number) => `${significant(100 * v, 3)} %` } },
      series: [
        ...lines.flatMap((l, i) => {
          const { colour, dash } = style(c, i);
          return [
            { name: l.label, type: 'line', z: 3, symbol: 'circle', symbolSize: 9, lineStyle: { width: 2, type: dash }, itemStyle: { color: colour }, data: l.points.map((p) => [p.x, p.y]) },
            errorBars(colour, l.points.map((p) => [p.x, p.low, p.high])),
          ];
        }),
        ...without.map((w, i) => {
          const { colour } = style(c, lines.length + i);
          return { name: w.label, type: 'line', data: [], itemStyle: { color: colour }, markLine: { silent: true, symbol: 'none', precision: kExactly, label: { show: false }, lineStyle: { color: colour, type: 'dashed', width: 1.5 }, data: [{ yAxis: w.y }] } };
        }),
        // Without values of its own a line above draws no axis: this one, unseen, holds the range open.
        { name: 'range', type: 'line', silent: true, symbol: 'none', lineStyle: { opacity: 0 }, tooltip: { show: false }, data: without.map((w) => [logAxis(xs).min, w.y]) },
      ],
    }),
    table: () => ({
      head: ['settings', 'ε', 'mean %', '± std', 'seeds'],
      rows: [
        ...lines.flatMap((l) => l.points.map((p) => [p.group.label, significant(p.x), percent(p.y), percent(p.y - p.low), p.group.seeds.length])),
        ...without.map((w) => [w.label, '–', percent(w.y), '–', '–']),
      ],
    }),
  });
}
