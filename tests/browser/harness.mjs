// What the browser tests share: checks that are counted, runs to look at, and a browser that is watched.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

export const [program, web, screenshots] = process.argv.slice(2);

// A machine that is busy with other things is slow, not wrong.
export const kPatience = 120000;

let failures = 0;
let passed = 0;

export function check(condition, what) {
  if (condition) {
    ++passed;
  } else {
    ++failures;
    console.error(`FAILED: ${what}`);
  }
}

export function equal(actual, expected, what) {
  check(JSON.stringify(actual) === JSON.stringify(expected), `${what}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`);
}

export function finish() {
  console.log(`${passed} checks passed, ${failures} failed`);
  process.exitCode = failures ? 1 : 0;
}

export const readJson = (...path) => JSON.parse(readFileSync(join(...path), 'utf8'));
export const rounds = (run) => readFileSync(join(run, 'metrics.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));

export function sotto(folder, ...args) {
  const result = spawnSync(program, args, { cwd: folder, encoding: 'utf8', env: { ...process.env, SOTTO_DATA: '', SOTTO_HOME: join(folder, 'home') } });
  if (result.status !== 0) throw new Error(`sotto ${args.join(' ')} ended with ${result.signal ?? result.status}: ${result.stderr}`);
  return result.stdout;
}

export function start(folder, ...args) {
  return spawn(program, args, { cwd: folder, env: { ...process.env, SOTTO_DATA: '', SOTTO_HOME: join(folder, 'home') } });
}

// Three classes that a line can tell apart, with some noise.
export function writeTable(folder, records) {
  let state = 12345;
  const uniform = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  const normal = () => uniform() + uniform() + uniform() + uniform() - 2;
  let text = 'a,b,c,label\n';
  for (let i = 0; i < records; ++i) {
    const label = i % 3;
    text += `${(normal() + (label === 0 ? 1.5 : 0)).toFixed(4)},${(normal() + (label === 1 ? 1.5 : 0)).toFixed(4)},${normal().toFixed(4)},${label}\n`;
  }
  writeFileSync(join(folder, 'table.csv'), text);
  const number = (name, range) => ({ name, kind: 'number', range });
  const columns = [number('a', [-0.4, 1.4]), number('b', [-0.4, 1.4]), number('c', [-0.6, 0.6]), { name: 'label', kind: 'label', values: ['0', '1', '2'] }];
  writeFileSync(join(folder, 'table.schema.json'), JSON.stringify({ columns }));
}

export function writeConfig(folder, name, { root = '', data = '', federation = '', method = 'name = "ldp-fedavg"\nclip = 1.0', privacy = true, budgets = '', clients = 6 } = {}) {
  writeFileSync(
    join(folder, name),
    `${root}\n[data]\nname = "custom"\npath = "${join(folder, 'table.csv')}"\nclients = ${clients}\n${data}\n[model]\nname = "logistic"\n` +
      `[federation]\nlr = 0.5\n${federation}\n[method]\n${method}\n` +
      (privacy ? '[privacy]\nepsilon = 8.0\ndelta = 1e-5\nadjacency = "zero-out"\n' + budgets : ''),
  );
}

// Every file below a folder with its size and time: what a reader must leave as it was.
export function listing(folder) {
  return readdirSync(folder, { recursive: true }).sort().map((name) => {
    const status = statSync(join(folder, name));
    return `${name} ${status.isDirectory() ? '' : status.size} ${status.mtimeMs}`;
  });
}

export function findChromium() {
  return ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) => existsSync(path));
}

export async function openBrowser() {
  const { chromium } = createRequire(join(web, 'package.json'))('playwright-core');
  mkdirSync(screenshots, { recursive: true });
  return chromium.launch({ executablePath: findChromium(), args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

// A page on which an error in the console or a request to anywhere else is a failure.
export async function openPage(browser, address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(kPatience);
  const own = address.startsWith('http') ? new URL(address).origin : address;
  page.on('console', (message) => check(!['error', 'warning'].includes(message.type()), `console: ${message.text()}`));
  page.on('pageerror', (error) => check(false, `error on the page: ${error.message}`));
  page.on('request', (request) => check(request.url().startsWith('data:') || request.url().startsWith(own), `request to ${request.url()}`));
  await page.goto(address);
  return page;
}

export const points = (page, chart, series) => page.evaluate(([c, s]) => window.sotto.points(c, s), [chart, series]);
export const seriesOf = (page, chart) => page.evaluate((c) => window.sotto.option(c).series.map((s) => ({ name: s.name, type: s.type, data: s.data })), chart);
export const shot = (page, name, fullPage = true) => page.screenshot({ path: join(screenshots, `${name}.png`), fullPage });

// Where a value of a chart is on the screen.
export async function place(page, chart, value) {
  await page.locator(`#chart-${chart} .plot`).scrollIntoViewIfNeeded();
  return page.evaluate(([key, v]) => {
    const [x, y] = window.sotto.pixel(key, v);
    const box = document.querySelector(`#chart-${CSS.escape(key)} .plot`).getBoundingClientRect();
    return { x: box.left + x, y: box.top + y };
  }, [chart, value]);
}

export async function tooltip(page, chart, expected) {
  const shown = () => page.evaluate((key) => {
    const tips = [...document.querySelectorAll(`#chart-${CSS.escape(key)} .plot > div`)].filter((d) => d.querySelector('.tip, .tip-head'));
    return tips.filter((d) => getComputedStyle(d).visibility !== 'hidden' && getComputedStyle(d).opacity !== '0').map((d) => d.innerText).join('\n');
  }, chart);
  const patience = Date.now() + 10000;
  let text = await shown();
  while (!text.includes(expected) && Date.now() < patience) {
    await page.waitForTimeout(50);
    text = await shown();
  }
  return text;
}

// All text that is too pale for its background: below 4.5 to 1.
export function paleText(page) {
  return page.evaluate(() => {
    const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const luminance = ([r, g, b]) => {
      const part = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
      for (let e = element; e; e = e.parentElement) {
        const colour = parse(getComputedStyle(e).backgroundColor);
        if (colour.length === 3 || colour[3] === 1) return colour;
      }
      return [255, 255, 255];
    };
    const pale = [];
    let seen = 0;
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const element = walker.currentNode.parentElement;
      if (!walker.currentNode.textContent.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(element.tagName)) continue;
      if (element.closest(':disabled') || !element.getClientRects().length) continue;
      const style = getComputedStyle(element);
      const front = parse(element instanceof SVGElement ? style.fill : style.color);
      const [a, b] = [luminance(front), luminance(behind(element))].sort((x, y) => y - x);
      ++seen;
      if ((a + 0.05) / (b + 0.05) < 4.5) pale.push(`${walker.currentNode.textContent.trim().slice(0, 30)} (${((a + 0.05) / (b + 0.05)).toFixed(2)})`);
    }
    return { pale, seen };
  });
}

// Everything that can be used by a mouse must be reached by the Tab key.
export async function unreached(page) {
  const wanted = await page.evaluate(() => {
    const list = [...document.querySelectorAll('a[href], button:not(:disabled), select, input, summary, .plot, .scroll')].filter(
      (e) => e.getClientRects().length && !e.closest('details:not([open]) > :not(summary)'));
    list.forEach((e, i) => (e.dataset.stop = String(i)));
    document.activeElement?.blur();
    scrollTo(0, 0);
    return list.length;
  });
  const reached = new Set();
  for (let i = 0; i < wanted + 5; ++i) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(() => document.activeElement?.dataset?.stop);
    if (stop !== undefined) reached.add(stop);
  }
  return { wanted, missing: wanted - reached.size };
}
