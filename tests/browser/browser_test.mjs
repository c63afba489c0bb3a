// node browser_test.mjs SOTTO BUILD/web SCREENSHOTS: the report of finished runs and the live page, in headless Chromium.
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as t from './harness.mjs';

if (!t.findChromium()) {
  console.log('skipped: there is no Chromium here (apt-get install chromium)');
  process.exit(77);
}

const percent = (value) => (100 * value).toFixed(2);
const folder = mkdtempSync(join(tmpdir(), 'sotto-browser-'));
const runs = join(folder, 'runs');
const file = (name) => `file://${join(folder, name)}`;

function makeRuns() {
  t.writeTable(folder, 600);
  t.writeConfig(folder, 'one.toml', { root: 'name = "one </script><b>run</b>"\nrounds = 6', federation: 'batch = 50', budgets: 'budgets = [4.0, 8.0]' });
  t.sotto(folder, 'run', 'one.toml', '--out', 'runs/one', '--quiet');
  t.writeConfig(folder, 'sweep.toml', { root: 'rounds = 3', federation: 'batch = 50' });
  t.sotto(folder, 'sweep', 'sweep.toml', '--grid', 'privacy.epsilon=1,4', '--seeds', '4', '--out', 'runs/sweep', '--quiet');
  t.writeConfig(folder, 'clear.toml', { root: 'rounds = 3', federation: 'batch = 50', method: 'name = "fedavg"', privacy: false });
  t.sotto(folder, 'sweep', 'clear.toml', '--seeds', '4', '--out', 'runs/clear', '--quiet');
}

async function oneRun(browser) {
  const run = join(runs, 'one');
  const before = t.listing(run);
  t.sotto(folder, 'report', 'runs/one', '-o', 'one.html');
  t.equal(t.listing(run), before, 'a report leaves the run directory as it was');
  const summary = t.readJson(run, 'summary.json');
  const evaluated = t.rounds(run).filter((r) => r.evaluation);

  const page = await t.openPage(browser, file('one.html'));
  t.equal(await page.locator('h1').innerText(), 'one </script><b>run</b> finished', 'a name is text, not markup');
  for (const [id, expected] of [
    ['value-accuracy', `${percent(summary.accuracy.mean)} %`],
    ['value-worst', `${percent(summary.accuracy.worst)} %`],
    ['value-global', `${percent(summary.accuracy_global)} %`],
    ['value-proven', String(Number(summary.privacy.proven_epsilon.max.toPrecision(4)))],
    ['value-claimed', String(Number(summary.privacy.claimed_epsilon.max.toPrecision(4)))],
  ]) {
    t.equal(await page.locator(`#${id}`).innerText(), expected, id);
  }

  const name = (id) => page.locator(`.tile:has(#${id}) dt`).textContent();
  t.equal(await name('value-proven'), 'Simulated ε', 'what the ε of replayed noise is called');
  t.equal(await page.locator('#run-0-basis').textContent(), 'ε is simulated: noise can be recomputed from the seed.', 'and why');

  // As many points as there are rounds and clients, and the values that were written.
  t.equal(await t.points(page, 'run-0-accuracy', 'mean over clients'), evaluated.length, 'points of the mean');
  t.equal(await t.points(page, 'run-0-loss', 'loss'), t.rounds(run).length, 'points of the loss');
  t.equal(await t.points(page, 'run-0-clients', 'accuracy'), 6, 'bars of clients');
  t.equal(await t.points(page, 'run-0-partition', 'records'), 6 * 3, 'cells of the partition');
  const accuracy = await t.seriesOf(page, 'run-0-accuracy');
  t.equal(accuracy.find((s) => s.name === 'mean over clients').data.at(-1), [6, summary.accuracy.mean], 'the last point of the mean');
  t.equal(accuracy.filter((s) => s.name.startsWith('client ')).length, 6, 'a line for every client');
  const spent = (await t.seriesOf(page, 'run-0-spent')).filter((s) => s.name.startsWith('simulated'));
  t.equal(spent.length, 2, 'two groups of clients, one for each budget');
  t.equal(Math.max(...spent.map((s) => s.data.at(-1)[1])), summary.privacy.proven_epsilon.max, 'the last point of the largest ε');
  t.check(spent.every((s) => s.data.length === 6 && s.data.every((d, i) => i === 0 || d[1] > s.data[i - 1][1])), 'ε rises with every round');
  const bars = await t.seriesOf(page, 'run-0-clients');
  t.equal(bars[0].data.map((v) => v.toFixed(4)), Object.values(summary.accuracy.per_client).map((v) => v.toFixed(4)), 'bars equal summary.json');

  // Hovering, by mouse and by keyboard.
  const last = evaluated.at(-1).evaluation;
  const at = await t.place(page, 'run-0-accuracy', [6, last.accuracy.mean]);
  await page.mouse.move(at.x - 3, at.y);
  await page.mouse.move(at.x - 2, at.y);
  const tip = await t.tooltip(page, 'run-0-accuracy', 'round 6');
  t.check(tip.includes('round 6') && tip.includes(`${percent(last.accuracy.mean)} %`), `a tooltip with the value: ${tip}`);
  for (const [client, value] of Object.entries(last.accuracy.per_client)) {
    t.check(tip.includes(`client ${client}`) && tip.includes(percent(value)), `client ${client} in the tooltip: ${tip}`);
  }
  await t.shot(page, 'one-hover', false);
  await page.mouse.move(2, 2);
  await page.locator('#chart-run-0-loss .plot').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  t.check((await t.tooltip(page, 'run-0-loss', 'round 2')).includes('round 2'), 'arrow keys walk through the points');

  // Controls.
  await page.locator('#run-0-every').uncheck();
  t.equal((await t.seriesOf(page, 'run-0-accuracy')).filter((s) => s.name.startsWith('client ')).length, 0, 'lines of clients can be put away');
  await page.locator('#run-0-measure').selectOption('balanced_accuracy');
  t.equal((await t.seriesOf(page, 'run-0-accuracy'))[0].data.at(-1)[1], summary.balanced_accuracy.mean, 'another measure');
  await page.locator('#run-0-order').selectOption('value');
  const sorted = (await t.seriesOf(page, 'run-0-clients'))[0].data;
  t.check(sorted.every((v, i) => i === 0 || v >= sorted[i - 1]), 'worst first');
  await page.locator('#chart-run-0-clients summary').click();
  await page.locator('#chart-run-0-clients tbody tr').first().waitFor();  // the browser tells of the opening a moment later
  t.equal(await page.locator('#chart-run-0-clients tbody tr').count(), 6, 'the chart as a table');
  t.equal(await page.locator('#chart-run-0-clients td.number').first().evaluate((e) => getComputedStyle(e).textAlign), 'right', 'numbers are aligned to the right');
  t.check((await page.locator('#reproduce pre').first().innerText()).includes('sotto run config.toml'), 'how to reproduce');
  t.check((await page.locator('.settings pre').textContent()).includes(readFileSync(join(run, 'config.toml'), 'utf8').trim()), 'the settings are there');

  const keys = await t.unreached(page);
  t.check(keys.wanted > 15, `there are controls to reach: ${keys.wanted}`);
  t.equal(keys.missing, 0, 'controls that Tab does not reach');
  await page.close();
}

async function looks(browser) {
  for (const [width, scheme] of [[1280, 'light'], [1280, 'dark'], [400, 'light'], [400, 'dark']]) {
    for (const name of ['one', 'compare']) {
      const page = await t.openPage(browser, file(`${name}.html`), { viewport: { width, height: 900 }, colorScheme: scheme });
      const { pale, seen } = await t.paleText(page);
      t.check(seen > 100, `text to measure in ${name}: ${seen}`);
      t.equal(pale, [], `text too pale in ${name}, ${scheme}`);
      t.check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} at ${width} does not scroll sideways`);
      await t.shot(page, `${name}-${width}-${scheme}`);
      if (name === 'one' && width === 1280 && scheme === 'light') {
        await page.locator('#theme').click();
        t.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'the button changes the theme');
        await page.pdf({ path: join(t.screenshots, 'one.pdf'), format: 'A4', margin: { top: '1.5cm', bottom: '1.5cm', left: '1.5cm', right: '1.5cm' } });
        t.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'printing leaves the theme as it was');
      }
      await page.close();
    }
  }
}

async function severalRuns(browser) {
  const folders = ['runs/sweep', 'runs/clear'].flatMap((group) => readdirSync(join(folder, group), { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => `${group}/${e.name}`));
  t.equal(folders.length, 12, 'runs of the sweeps');
  t.sotto(folder, 'report', ...folders, '-o', 'compare.html');
  const page = await t.openPage(browser, file('compare.html'));
  const overlay = (await t.seriesOf(page, 'compare-overlay')).filter((s) => !/\((from|seeds)\)$/.test(s.name));
  t.equal(overlay.map((s) => s.name), ['fedavg', 'ldp-fedavg, ε 1.0', 'ldp-fedavg, ε 4.0'], 'a line for every setting');
  t.check(overlay.every((s) => s.data.length === 3), 'three rounds each');
  t.equal(await t.points(page, 'compare-frontier', 'ldp-fedavg'), 2, 'two points on the frontier');

  const heads = await page.locator('#differences thead th').evaluateAll((all) => all.map((cell) => cell.textContent));
  t.check(heads.includes('simulated ε') && !heads.includes('proven ε'), `what the column of ε is called: ${heads}`);

  // The table against its own sweep.json.
  const sweep = t.readJson(runs, 'sweep', 'sweep.json');
  const rows = await page.locator('#differences tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  for (const cell of sweep.cells) {
    const row = rows.find((r) => r[0] === `ldp-fedavg, ε ${Number(cell.settings['privacy.epsilon']).toFixed(1)}`);
    t.equal(row?.[3], percent(cell.mean), `mean of ${JSON.stringify(cell.settings)}`);
    t.equal(row?.[4], percent(cell.std), `standard deviation of ${JSON.stringify(cell.settings)}`);
  }
  await page.locator('#compare-reference').selectOption('2');
  const again = await page.locator('#differences tbody tr').evaluateAll((all) => all.map((row) => row.cells[1].innerText));
  t.equal(again[2], 'reference', 'another reference');
  await page.locator('#one-run').selectOption('3');
  t.check((await t.points(page, 'run-3-accuracy', 'mean over clients')) === 3, 'another run');
  await page.close();
}

// What tools that attack and audit leave behind.
async function extras(browser) {
  const run = join(runs, 'one');
  const copy = join(folder, 'extras');
  cpSync(run, copy, { recursive: true });
  writeFileSync(join(copy, 'audit.json'), JSON.stringify({ method: 'canaries', confidence: 0.95, entries: [{ client: 0, observer: 'server', audited_epsilon: 0.7, trials: 1000 }] }));
  mkdirSync(join(copy, 'attacks'));
  cpSync(join(run, 'partition.png'), join(copy, 'attacks', 'a.png'));
  writeFileSync(join(copy, 'attacks', 'membership.json'), JSON.stringify({
    name: 'membership', what: 'was this record trained on?', auc: 0.56, advantage: 0.1,
    roc: { false_positive_rate: [0, 0.25, 0.5, 1], true_positive_rate: [0, 0.35, 0.6, 1], low: [0, 0.3, 0.5, 1], high: [0.1, 0.4, 0.7, 1] },
    baseline: { auc: 0.9, roc: { false_positive_rate: [0, 0.25, 1], true_positive_rate: [0, 0.95, 1] }, grid: 'a.png' },
    reconstructions: [{ original: 'a.png', reconstructed: 'a.png', psnr: 12.5 }],
  }));
  const n = 60;
  writeFileSync(join(copy, 'embedding.json'), JSON.stringify({
    title: 'Features', classes: ['a', 'b', 'c'], x: [...Array(n).keys()].map((i) => Math.cos(i) + (i % 3)), y: [...Array(n).keys()].map((i) => Math.sin(i)), label: [...Array(n).keys()].map((i) => i % 3),
  }));
  t.sotto(folder, 'report', 'extras', '-o', 'extras.html');
  const page = await t.openPage(browser, file('extras.html'));
  t.equal(await t.points(page, 'run-0-roc', 'membership'), 4, 'points of the ROC');
  t.equal(await t.points(page, 'run-0-roc', 'membership, without privacy'), 3, 'points of the baseline');
  const band = (await t.seriesOf(page, 'run-0-roc')).find((s) => s.name === 'membership (limits)');
  t.equal(band?.data.map((p) => +p[1].toFixed(3)), [0.1, 0.1, 0.2, 0], 'the width of the band');
  t.equal(await t.points(page, 'run-0-embedding', 'b'), n / 3, 'points of a class');
  const audited = (await t.seriesOf(page, 'run-0-sides')).find((s) => s.name === 'audited');
  t.equal(audited?.data.filter((v) => v !== null), [0.7], 'the audited ε');
  t.equal(await page.locator('.pictures img').evaluateAll((all) => all.filter((i) => i.complete && i.naturalWidth > 0).length), 3, 'a grid and the pictures of a reconstruction');
  await t.shot(page, 'extras-1280-light');
  await page.close();
}

async function largeRun(browser) {
  t.writeConfig(folder, 'large.toml', { root: 'name = "large"\nrounds = 200', clients: 100, federation: 'batch = 50', budgets: 'budgets = [4.0, 8.0]' });
  t.sotto(folder, 'run', 'large.toml', '--out', 'large', '--quiet');
  t.sotto(folder, 'report', 'large', '-o', 'large.html');
  const size = statSync(join(folder, 'large.html')).size;
  t.check(size < 5e6, `200 rounds × 100 clients in less than 5 MB: ${size}`);
  const page = await t.openPage(browser, file('large.html'));
  let took = Infinity;
  for (let i = 0; i < 10 && took >= 2000; ++i) {
    const start = Date.now();
    await page.reload();
    await page.waitForFunction(() => window.sotto?.points('run-0-accuracy', 'mean over clients') === 200);
    took = Math.min(took, Date.now() - start);
  }
  t.check(took < 2000, `opens in less than two seconds: ${took} ms`);
  await page.locator('#run-0-every').check();
  t.equal((await t.seriesOf(page, 'run-0-accuracy')).filter((s) => /^client \d+$/.test(s.name)).length, 100, 'a line for each of 100 clients');
  t.equal((await t.seriesOf(page, 'run-0-part')).map((s) => s.type), ['line', 'line', 'line'], 'areas where bars would be thinner than a pixel');
  await t.shot(page, 'large-1280-light');
  console.log(`200 rounds × 100 clients: ${(size / 1e6).toFixed(2)} MB, opens in ${took} ms`);
  await page.close();
}

const fetchStatus = (address, headers = {}) => new Promise((resolve, reject) => {
  get(address, { headers }, (response) => { response.resume(); resolve(response.statusCode); }).on('error', reject);
});

const askStatus = async (address, question) => (await fetch(address, { method: 'POST', body: JSON.stringify(question) })).status;

async function livePage(browser) {
  symlinkSync(join(folder, 'extras'), join(runs, 'link'));
  const before = t.listing(join(runs, 'one'));
  const server = t.start(folder, 'ui', 'runs');
  const address = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).split('\n')[0])));
  const { origin, searchParams } = new URL(address);
  const token = searchParams.get('token');
  t.check(/^http:\/\/127\.0\.0\.1:\d+$/.test(origin) && token.length === 32, `a loopback address with a token: ${address}`);
  t.equal(await fetchStatus(origin), 403, 'without the token');
  t.equal(await fetchStatus(`${origin}/api/runs?token=${'0'.repeat(32)}`), 403, 'with another token');
  t.equal(await fetchStatus(`${origin}/api/runs?token=${token}`, { Host: 'example.org' }), 403, 'by another name');
  t.equal(await fetchStatus(`${origin}/api/runs?token=${token}`), 200, 'with the token');
  for (const path of ['../extras', 'one/../../extras', join(folder, 'extras'), 'link', 'no-such']) {
    t.equal(await askStatus(`${origin}/api/document?token=${token}`, { runs: [path] }), 422, `${path} is not a run of this folder`);
  }

  const page = await t.openPage(browser, address);
  await page.locator('#runs tbody tr').first().waitFor();
  t.equal(await page.locator('#runs tbody tr').count(), 13, 'all runs are listed, links are not');
  t.check((await page.locator('#runs thead').textContent()).includes('simulated ε'), 'the list says that ε is simulated');
  await page.locator('#filter').pressSequentially('fedavg clear');
  t.equal(await page.locator('#runs tbody tr').count(), 4, 'the filter leaves those that match');
  t.equal(await page.evaluate(() => document.activeElement.id), 'filter', 'typing keeps the focus');
  await page.locator('#filter').fill('');
  await page.locator('#filter-method').selectOption('ldp-fedavg');
  t.equal(await page.locator('#runs tbody tr').count(), 9, 'a method');
  await page.locator('#filter-method').selectOption('');
  await t.shot(page, 'ui-list');
  t.equal((await t.unreached(page)).missing, 0, 'controls of the list that Tab does not reach');
  t.equal((await t.paleText(page)).pale, [], 'text too pale in the list');

  // Two runs side by side.
  await page.locator('#runs tbody input').nth(0).check();
  await page.locator('#runs tbody input').nth(5).check();
  await page.locator('#compare-button').click();
  await page.locator('#chart-compare-overlay').waitFor();
  t.equal((await t.seriesOf(page, 'compare-overlay')).length, 2, 'two runs compared');
  await page.locator('#back').click();

  // A finished run: its budgets are spent.
  await page.locator('[id="open-one"]').click();
  await page.locator('#board tbody tr').first().waitFor();
  const summary = t.readJson(runs, 'one', 'summary.json');
  t.equal(await page.locator('#value-accuracy').innerText(), `${percent(summary.accuracy.mean)} %`, 'the accuracy of the opened run');
  const board = await page.locator('#board table').last().locator('tbody tr').evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
  t.check(board.length === 6 && board.every((row, i) => row[1].endsWith(`of ${i % 2 ? 8 : 4} (100 %)`)), `budgets as parts of a whole: ${JSON.stringify(board)}`);
  t.check(board.every((row) => Number(row[2]) < 0.01 && row[3] === '0'), `nothing is left of calibrated budgets: ${JSON.stringify(board)}`);
  t.check(await page.evaluate(() => document.querySelector('#budgets').compareDocumentPosition(document.querySelector('#results')) === Node.DOCUMENT_POSITION_FOLLOWING), 'budgets stand above the results');
  t.equal(await page.locator('#resume').count(), 0, 'a finished run has nothing to resume');
  await t.shot(page, 'ui-run');

  // One that is running.
  t.writeTable(folder, 6000);
  t.writeConfig(folder, 'slow.toml', { root: 'name = "slow"\nrounds = 4000', federation: 'batch = 20\nlocal_epochs = 2', budgets: 'budgets = [4.0, 8.0]' });
  const slow = t.start(folder, 'run', 'slow.toml', '--out', 'runs/slow', '--threads', '1');
  slow.stdout.resume();
  slow.stderr.resume();
  await page.locator('#back').click();
  await page.locator('[id="open-slow"]').waitFor({ timeout: t.kPatience });
  await page.locator('[id="open-slow"]').click();
  await page.waitForFunction(() => window.sotto.points('run-0-accuracy', 'mean over clients') >= 2, null, { timeout: t.kPatience });
  t.equal(await page.locator('h1 .state').innerText(), 'running', 'the run is running');
  const first = await t.points(page, 'run-0-accuracy', 'mean over clients');
  await page.locator('#run-0-every').focus();
  await page.waitForFunction((n) => window.sotto.points('run-0-accuracy', 'mean over clients') >= n + 2, first, { timeout: t.kPatience });
  t.equal(await page.evaluate(() => document.activeElement.id), 'run-0-every', 'an update leaves the focus where it was');
  await page.locator('#board table').first().waitFor({ state: 'attached' });
  const left = await page.locator('#board table').last().locator('tbody tr').evaluateAll((all) => all.map((row) => Number(row.cells[3].innerText)));
  t.check(left.length === 6 && left.every((n) => n > 3000 && n < 4000), `rounds left while it runs: ${left}`);
  t.check(/^about \d/.test(await page.locator('#value-left').innerText()), 'how long it will take');
  t.equal(await page.locator('#resume code').innerText(), `sotto run ${join(realpathSync(runs), 'slow')} --resume`, 'how to go on with it');
  await t.shot(page, 'ui-live');
  slow.kill('SIGKILL');
  await page.waitForFunction(() => document.querySelector('h1 .state')?.textContent === 'stopped', null, { timeout: t.kPatience });
  t.check(true, 'a killed run is seen to be stopped');
  await page.close();

  t.equal(t.listing(join(runs, 'one')), before, 'the live page leaves run directories as they were');
  const ended = new Promise((resolve) => server.once('exit', (code) => resolve(code)));
  server.kill('SIGINT');
  t.equal(await ended, 0, 'Ctrl-C ends it');
}

const browser = await t.openBrowser();
try {
  const started = Date.now();
  const timed = async (name, part) => {
    const start = Date.now();
    await part(browser);
    console.log(`${name}: ${((Date.now() - start) / 1000).toFixed(1)} s`);
  };
  await timed('runs', makeRuns);
  await timed('one run', oneRun);
  await timed('several runs', severalRuns);
  await timed('looks', looks);
  await timed('extras', extras);
  await timed('large run', largeRun);
  await timed('live page', livePage);
  console.log(`all: ${((Date.now() - started) / 1000).toFixed(1)} s`);
} catch (error) {
  t.check(false, error.stack);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
t.finish();
process.exit(process.exitCode);
