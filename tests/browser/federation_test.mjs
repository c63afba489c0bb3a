// node federation_test.mjs SOTTO BUILD/web SCREENSHOTS: a federation of three, on its server's page and on a client's, in
// headless Chromium.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as t from './harness.mjs';

if (!t.findChromium()) {
  console.log('there is no Chromium here');
  process.exit(77);
}

const folder = mkdtempSync(join(tmpdir(), 'sotto-federation-page-'));
const homes = ['north', 'west', 'south'];
const started = [];

function begin(...args) {
  const process = t.start(folder, ...args);
  started.push(process);
  return process;
}

// The first match of the pattern in what a process says.
const said = (stream, pattern) => new Promise((resolve, reject) => {
  let text = '';
  const give_up = setTimeout(() => reject(new Error(`no ${pattern} in: ${text}`)), t.kPatience);
  stream.on('data', (more) => {
    const found = (text += more).match(pattern);
    if (!found) return;
    clearTimeout(give_up);
    resolve(found);
  });
});

const ended = (process) => new Promise((resolve) => process.once('exit', (code) => resolve(code)));

function writeFederation() {
  t.writeTable(folder, 300);
  writeFileSync(join(folder, 'federation.toml'),
    'rounds = 3\n[data]\nclients = 3\ntest_fraction = 0.25\nschema = "table.schema.json"\n[model]\nname = "logistic"\n[federation]\nbatch = 50\nlr = 0.5\n' +
    '[method]\nname = "ldp-fedavg"\n[privacy]\nepsilon = 4.0\ndelta = 1e-5\nadjacency = "zero-out"\nnoise = "secure"\n' +
    '[declared]\nrecords = 200\nleast_records = 100\ntest_records = 60\n[serve]\nquorum = 3\ndeadline = 100\nevaluation = "released"\n');
}

function writePolicy(home, port) {
  mkdirSync(join(folder, home), { recursive: true });
  writeFileSync(join(folder, home, 'policy.toml'),
    `[data]\nname = "custom"\npath = "../table.csv"\n[budget]\nepsilon = 5.0\ndelta = 1e-5\nadjacency = "zero-out"\n` +
    `[allow]\nmethods = ["ldp-fedavg"]\ndeclare = ["records"]\nevaluation = "released"\n[server]\naddress = "127.0.0.1:${port}"\nname = "${home}"\n`);
}

const address = async (what) => (await said(begin('ui', what).stdout, /(http\S+)/))[1];
const cells = (page, part) => page.locator(`#${part} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
const text = (page, id) => page.locator(`#${id}`).innerText();
const until = (page, id, expected) => page.waitForFunction(([i, e]) => document.getElementById(i)?.innerText === e, [id, expected], { timeout: t.kPatience });

async function federationPages(browser) {
  writeFederation();
  const server = begin('serve', 'federation.toml', '--folder', 'server', '--insecure', '--listen', '127.0.0.1:0', '--linger', '5');
  const [, port] = await said(server.stderr, /listening on port (\d+)/);
  for (const home of homes) writePolicy(home, port);

  // Nobody is there yet; then clients come while the page is open.
  const page = await t.openPage(browser, await address('server'));
  await until(page, 'value-clients', '0 of 3');
  t.equal(await page.locator('h1 .state').innerText(), 'running', 'the server is running');
  await t.shot(page, 'federation-empty');
  const members = [];
  for (const home of homes.slice(0, 2)) {
    const member = begin('join', home, '--insecure', '--yes');
    members.push(ended(member));
    await said(member.stderr, /budget/);
  }
  await until(page, 'value-clients', '2 of 3');
  t.equal((await cells(page, 'clients')).map((row) => row[0]).sort(), ['north', 'west'], 'who is there');
  members.push(ended(begin('join', homes[2], '--insecure', '--yes')));
  await until(page, 'value-rounds', '3 of 3');
  t.equal(await Promise.all(members), [0, 0, 0], 'clients end well');
  await page.waitForFunction(() => document.querySelector('h1 .state')?.innerText === 'finished', null, { timeout: t.kPatience });

  const status = JSON.parse(t.sotto(folder, 'status', 'server', '--json'));
  t.equal(await text(page, 'value-bytes'), `${Number((status.upload_bytes / 1e3).toPrecision(3))} kB`, 'bytes');
  t.equal(Number(await text(page, 'value-spent')), Number(status.epsilon.spent.toPrecision(4)), 'ε spent');
  t.equal(await text(page, 'value-model'), `${(100 * status.evaluation.accuracy).toFixed(1)} %`, 'how good the model is');
  const rows = await cells(page, 'clients');
  t.equal(rows.map((row) => row[2]), ['3 of 3', '3 of 3', '3 of 3'], 'uploads of each');
  t.check(rows.every((row) => /of 4 \((99|100) %\)$/.test(row[4])), `spent and left of each: ${JSON.stringify(rows.map((row) => row[4]))}`);
  const widths = await page.locator('#clients .fill').evaluateAll((all) => all.map((bar) => bar.style.width));
  t.check(widths.length === 6 && widths.every((width) => /^(99|100)%$/.test(width)), `bars are as long as they say: ${widths}`);
  t.equal((await t.paleText(page)).pale, [], 'text too pale');
  t.equal((await t.unreached(page)).missing, 0, 'controls that Tab does not reach');
  await t.shot(page, 'federation-server');
  await page.locator('#theme').click();
  t.equal((await t.paleText(page)).pale, [], 'text too pale, in the other theme');
  await t.shot(page, 'federation-server-dark');
  await page.locator('#as-run').click();
  await page.locator('#chart-run-0-spending, #privacy').first().waitFor();
  await t.shot(page, 'federation-run');
  await page.close();

  await homePage(browser);
  await listPage(browser);
}

async function homePage(browser) {
  const page = await t.openPage(browser, await address('north'), { viewport: { width: 420, height: 900 } });
  await page.locator('#joined tbody tr').first().waitFor();
  const status = JSON.parse(t.sotto(folder, 'status', 'north', '--json'));
  t.equal(await page.locator('h1').innerText(), 'north finished', 'the name of the home');
  t.equal(Number(await text(page, 'value-spent')), Number(status.budget.spent.toPrecision(4)), 'spent');
  t.equal(Number(await text(page, 'value-left')), Number(status.budget.left.toPrecision(3)), 'left');
  const plan = status.federations[0].plan.slice(0, 16);
  t.equal(await t.points(page, `home-${plan}-accuracy`, 'accuracy %'), 3, 'a point for every round');
  t.equal(await t.points(page, `home-${plan}-epsilon`, 'ε'), 3, 'what was spent after every round');
  t.equal((await cells(page, 'joined'))[0].slice(2), ['ldp-fedavg', '3 of 3', '3 of 3', '–'], 'what was joined');
  t.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, 'nothing sticks out on a narrow screen');
  await t.shot(page, 'federation-home-420');
  await page.setViewportSize({ width: 1280, height: 900 });
  await t.shot(page, 'federation-home');
  await page.close();
}

// A folder of all of them, one of which cannot be read.
async function listPage(browser) {
  mkdirSync(join(folder, 'broken'));
  writeFileSync(join(folder, 'broken', 'policy.toml'), '[budget]\nepsilon = "much"\n');
  const page = await t.openPage(browser, await address('.'));
  await page.locator('#federations tbody tr').first().waitFor();
  const rows = await cells(page, 'federations');
  t.equal(rows.map((row) => [row[0], row[1]]), [['broken', 'unreadable'], ['north', 'finished'], ['server', 'finished'], ['south', 'finished'], ['west', 'finished']], 'all federations are listed');
  t.check(rows[0][2].includes('budget.epsilon'), `why one cannot be read: ${rows[0][2]}`);
  await t.shot(page, 'federation-list');
  await page.locator('[id="federation-west"]').click();
  await page.locator('#joined tbody tr').first().waitFor();
  await page.locator('#back').click();
  await page.locator('#federations').waitFor();
  await page.close();
}

const browser = await t.openBrowser();
try {
  await federationPages(browser);
} catch (error) {
  t.check(false, error.stack);
} finally {
  await browser.close();
  for (const process of started) process.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
}
t.finish();
process.exit(process.exitCode);
