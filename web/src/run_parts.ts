// What the views of a run share: what the reader has chosen, lines of tooltips, axes, bands.
import { escaped } from './dom';
import { Maybe } from './document';

// What the reader has chosen, kept while a live page redraws itself.
export const choices = new Map<string, string>();

export const chosen = (key: string, otherwise: string) => choices.get(key) ?? otherwise;

export const kMeasureNames: Record<string, string> = {
  accuracy: 'Accuracy',
  balanced_accuracy: 'Balanced accuracy',
  auroc: 'AUROC',
  local_accuracy: 'Accuracy on own classes',
  neighbour_accuracy: "Accuracy on others' classes",
  validation_accuracy: 'Accuracy on validation records',
  global_test_accuracy: "Accuracy on all clients' classes",
};

// The digits to which ECharts rounds where a line is drawn; by itself it rounds to two, a whole percent.
export const kExactly = 12;

export const line = (name: string, value: string) => `<div class="tip"><span>${escaped(name)}</span><b>${escaped(value)}</b></div>`;

export const heading = (text: string) => `<div class="tip-head">${escaped(text)}</div>`;

// Round lines are thin when there are many points, and dots show where there are few.
export const symbols = (count: number) => ({ showSymbol: count <= 30, symbol: 'circle', symbolSize: count <= 30 ? 6 : 4 });

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

// Whole powers around the values: of two where few, so that an axis has more than two ticks, else of ten.
export function logAxis(values: number[]): { logBase: number; min: number; max: number } {
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [1, 10];
  const base = high / low > 1000 ? 10 : 2;
  const power = (v: number, round: (v: number) => number) => base ** round(Math.log(v) / Math.log(base));
  const [min, max] = [power(low * 0.99, Math.floor), power(high * 1.01, Math.ceil)];
  return { logBase: base, min, max: max > min ? max : min * base };
}
