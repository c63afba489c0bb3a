// What came out of a run, round by round, and who got what.
import { chart } from './charts';
import { chooser, clientName, h, percent, seconds, section, significant, tickbox } from './dom';
import { Maybe, Measure, Run } from './document';
import { bandSeries, choices, chosen, heading, kExactly, kMeasureNames, line, roundAxis, symbols } from './run_parts';
import { Colours } from './theme';

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

export function resultSection(run: Run, key: string, redoAll: () => void): HTMLElement {
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

const kMostBars = 60;

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
  // Bars of hundreds of rounds would be thinner than a pixel.
  const shape = x.length > kMostBars
    ? (colour: string) => ({ type: 'line', step: 'middle', symbol: 'none', lineStyle: { width: 0 }, areaStyle: { color: colour, opacity: 1 } })
    : () => ({ type: 'bar', barCategoryGap: '20%' });
  const stacked = (name: string, data: Maybe[], colour: string) => ({ name, stack: 'all', itemStyle: { color: colour }, data: data.map((v) => v ?? 0), ...shape(colour) });
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

export function clientSection(run: Run, key: string, redoAll: () => void): HTMLElement | null {
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
          markLine: { silent: true, symbol: 'none', precision: kExactly, lineStyle: { color: c.ink, type: 'dashed' }, label: { position: 'insideEndTop', color: c.ink, backgroundColor: c.card, padding: [2, 4], borderRadius: 3, formatter: `mean ${percent(measure.mean[at])} %` }, data: [{ yAxis: measure.mean[at] }] },
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
