// What a run learnt from: who holds which classes, features in two dimensions, clipping curves.
import { chart } from './charts';
import { h, section, significant } from './dom';
import { Embedding, Run } from './document';
import { heading, line, logAxis } from './run_parts';

export function dataSection(run: Run, key: string): HTMLElement | null {
  const parts: HTMLElement[] = [];
  const p = run.partition;
  if (p) {
    const cells = p.counts.flatMap((row, client) => row.map((count, label) => [client, label, count]));
    const name = (client: number) => run.client_names?.[client] ?? String(client);
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
          tooltip: { trigger: 'item', formatter: (q: any) => heading(run.client_names?.length ? name(q.value[0]) : `client ${q.value[0]}`) + line(p.classes[q.value[1]], `${q.value[2]} records`) },
          xAxis: { type: 'category', name: 'client', nameLocation: 'middle', nameGap: 28, data: p.counts.map((_, i) => name(i)) },
          yAxis: { type: 'category', inverse: true, data: p.classes, axisLabel: { width: 105, overflow: 'truncate', hideOverlap: true } },
          visualMap: { min: 0, max: most, calculable: false, orient: 'horizontal', left: 'center', bottom: 0, itemHeight: 120, itemWidth: 12, text: [`${most}`, '0'], textStyle: { color: c.quiet }, inRange: { color: c.ramp } },
          series: [{ name: 'records', type: 'heatmap', itemStyle: { borderColor: c.card, borderWidth: cells.length > 3000 ? 0 : 1 }, data: cells }],
        }),
        table: () => ({ head: ['client', ...p.classes], words: 0, rows: p.counts.map((row, client) => [name(client), ...row]) }),
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
