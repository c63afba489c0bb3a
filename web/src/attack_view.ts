// What attackers made of a run.
import { chart } from './charts';
import { h, percent, section, significant, table } from './dom';
import { Run } from './document';
import { bandSeries, heading, line } from './run_parts';

export function attackSection(run: Run, key: string): HTMLElement | null {
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
