// Charts: made once per key, redrawn when their data, the theme or the width changes, reachable by keyboard, each with its table.
import { BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, VisualMapComponent } from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer, SVGRenderer } from 'echarts/renderers';
import { h, table, TableData } from './dom';
import { Colours, colours, onThemeChange, setPrinting } from './theme';

echarts.use([
  BarChart, CustomChart, HeatmapChart, LineChart, ScatterChart,
  GridComponent, LegendComponent, MarkLineComponent, TooltipComponent, VisualMapComponent,
  CanvasRenderer, SVGRenderer,
]);

export interface ChartSpec {
  title: string;
  note?: string;
  describe: string; // what a reader who cannot see it should know
  height?: number;
  controls?: HTMLElement[];
  canvas?: boolean; // for thousands of marks
  option: (colours: Colours) => any;
  table: () => TableData;
  // The pointer's value on the y axis, before a tooltip is shown; true if the chart must be redrawn.
  hover?: (y: number) => boolean;
  wide?: boolean;
}

interface Chart {
  spec: ChartSpec;
  figure: HTMLElement;
  host: HTMLElement;
  drawn: echarts.ECharts | null;
  tip: number;
}

const charts = new Map<string, Chart>();
const kPrintWidth = 680;

export function drawnChart(key: string): echarts.ECharts | null {
  return charts.get(key)?.drawn ?? null;
}

export const chartKeys = () => [...charts.keys()];

// The figure for `key`; the same one again if it exists, so that a live page does not flicker.
export function chart(key: string, spec: ChartSpec): HTMLElement {
  let known = charts.get(key);
  if (!known) {
    const host = h('div', { class: 'plot', role: 'img', tabindex: 0 });
    known = { spec, figure: h('figure', { id: `chart-${key}` }), host, drawn: null, tip: -1 };
    charts.set(key, known);
    const self = known;
    host.addEventListener('mousemove', (event) => hovered(self, event), true);
    host.addEventListener('keydown', (event) => stepped(self, event));
    host.addEventListener('blur', () => self.drawn?.dispatchAction({ type: 'hideTip' }));
    new ResizeObserver(() => self.drawn?.resize()).observe(host);
  }
  known.spec = spec;
  fill(known);
  return known.figure;
}

function fill(self: Chart) {
  const { spec, figure, host } = self;
  figure.className = spec.wide === false ? 'chart' : 'chart wide';
  host.style.height = `${spec.height ?? 340}px`;
  host.setAttribute('aria-label', `${spec.title}. ${spec.describe}`);
  const details = h('details', { class: 'as-table' }, h('summary', {}, 'As a table'));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(table(spec.table(), spec.title));
  });
  const open = figure.querySelector('details')?.open;
  figure.replaceChildren(
    h('figcaption', {}, h('h3', {}, spec.title), h('div', { class: 'controls' }, ...(spec.controls ?? []))),
    ...(spec.note ? [h('p', { class: 'note' }, spec.note)] : []),
    host,
    details,
  );
  if (open) details.open = true;
}

// Draws what has been put on the page and drops what has been taken from it.
export function mount() {
  for (const [key, self] of charts) {
    if (!self.host.isConnected) {
      self.drawn?.dispose();
      charts.delete(key);
    } else {
      draw(self);
    }
  }
}

function draw(self: Chart) {
  self.drawn ??= echarts.init(self.host, null, { renderer: self.spec.canvas ? 'canvas' : 'svg' });
  const now = colours();
  self.drawn.setOption(withDefaults(self.spec.option(now), now), { notMerge: true });
}

onThemeChange(() => {
  for (const self of charts.values()) if (self.drawn) draw(self);
});

function axis(of: any, now: Colours): any {
  const one = (a: any) => ({
    nameTextStyle: { color: now.quiet, fontSize: 12 },
    ...a,
    axisLabel: { color: now.quiet, fontSize: 12, hideOverlap: true, ...a.axisLabel },
    axisLine: { lineStyle: { color: now.line }, ...a.axisLine },
    axisTick: { lineStyle: { color: now.line }, ...a.axisTick },
    splitLine: { lineStyle: { color: now.faint }, show: a.type !== 'category', ...a.splitLine },
  });
  return Array.isArray(of) ? of.map(one) : one(of);
}

function withDefaults(option: any, now: Colours): any {
  return {
    animation: false,
    color: now.palette,
    textStyle: { fontFamily: now.font, color: now.ink },
    ...option,
    grid: { left: 58, right: 24, top: option.legend ? 44 : 24, bottom: 48, containLabel: false, ...option.grid },
    xAxis: axis(option.xAxis, now),
    yAxis: axis(option.yAxis, now),
    legend: option.legend && {
      type: 'plain', left: 0, top: 0, icon: 'roundRect', itemWidth: 16, itemHeight: 4,
      textStyle: { color: now.ink, fontSize: 12, lineHeight: 18 }, inactiveColor: now.line, ...option.legend,
    },
    tooltip: option.tooltip && {
      confine: true, backgroundColor: now.card, borderColor: now.line, textStyle: { color: now.ink, fontSize: 13 },
      transitionDuration: 0, axisPointer: { lineStyle: { color: now.quiet }, label: { show: false } }, ...option.tooltip,
    },
  };
}

function hovered(self: Chart, event: MouseEvent) {
  if (!self.spec.hover || !self.drawn) return;
  const box = self.host.getBoundingClientRect();
  const at = [event.clientX - box.left, event.clientY - box.top];
  if (!self.drawn.containPixel({ gridIndex: 0 }, at)) return;
  const [, y] = self.drawn.convertFromPixel({ gridIndex: 0 }, at) as unknown as number[];
  if (self.spec.hover(y)) draw(self);
}

// Left and right walk through the points of the first series that can be pointed at; up and down leave the page alone.
function stepped(self: Chart, event: KeyboardEvent) {
  if (!self.drawn || !['ArrowLeft', 'ArrowRight', 'Home', 'End'].includes(event.key)) return;
  const series = (self.drawn.getOption() as any).series as any[];
  const index = Math.max(0, series.findIndex((s) => !s.silent && s.data?.length));
  const last = (series[index]?.data?.length ?? 0) - 1;
  if (last < 0) return;
  const to: Record<string, number> = { ArrowLeft: self.tip - 1, ArrowRight: self.tip + 1, Home: 0, End: last };
  self.tip = Math.min(last, Math.max(0, to[event.key]));
  self.drawn.dispatchAction({ type: 'showTip', seriesIndex: index, dataIndex: self.tip });
  event.preventDefault();
}

addEventListener('beforeprint', () => {
  setPrinting(true);
  for (const self of charts.values()) self.drawn?.resize({ width: kPrintWidth });
});
addEventListener('afterprint', () => {
  setPrinting(false);
  for (const self of charts.values()) self.drawn?.resize({ width: 'auto' });
});

// A vertical line with caps from low to high, for each [x, low, high].
export function errorBars(colour: string, data: number[][]): any {
  return {
    type: 'custom',
    silent: true,
    z: 1,
    data,
    encode: { x: 0, y: [1, 2] },
    tooltip: { show: false },
    renderItem: (_: any, api: any) => {
      const [x, low] = api.coord([api.value(0), api.value(1)]);
      const [, high] = api.coord([api.value(0), api.value(2)]);
      const line = (x1: number, y1: number, x2: number, y2: number) => ({
        type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: colour, lineWidth: 1.5 },
      });
      return { type: 'group', children: [line(x, low, x, high), line(x - 4, low, x + 4, low), line(x - 4, high, x + 4, high)] };
    },
  };
}
