// Draws the page: a report of the runs it holds, or the live page of `sotto ui`.
import { chartKeys, drawnChart, mount } from './charts';
import { compareSections } from './compare_view';
import { PageDocument } from './document';
import { chooser, h } from './dom';
import { describeFederation, Federation, federationList, federationSections, isLive, openFederation, stateOf, titleOf } from './federation_view';
import { askDocument, askFederation, askRuns, boardSection, Entry, listSection, openRuns } from './live_view';
import { describeRun, resumeNote, runSections, tiles } from './run_view';
import { startTheme, themeButton } from './theme';

const top_ = document.getElementById('top')!;
const main = document.getElementById('main')!;
const end = document.getElementById('end')!;
const data = JSON.parse(document.getElementById('data')!.textContent!);

let shownRun = 0;

// Replaces what is shown; focus and place on the page stay, since a live page does this while somebody reads.
function show(title: string, header: (Node | string)[], build: () => HTMLElement[]) {
  const focused = document.activeElement?.id ?? '';
  const caret = document.activeElement instanceof HTMLInputElement && document.activeElement.type === 'search' ? document.activeElement.selectionStart : null;
  const place = scrollY;
  const sections = build();
  document.title = title;
  top_.replaceChildren(h('div', { class: 'bar' }, h('div', { class: 'headline' }, ...header), themeButton()), contents(sections));
  main.replaceChildren(...sections);
  mount();
  if (!focused || focused === 'main') return;
  const again = document.getElementById(focused);
  again?.focus({ preventScroll: true });
  if (caret !== null && again instanceof HTMLInputElement) again.setSelectionRange(caret, caret);
  scrollTo({ top: place });
}

function contents(sections: HTMLElement[]): HTMLElement {
  const links = sections.flatMap((part) => {
    const title = part.querySelector('h2')?.textContent;
    return title && part.id ? [h('a', { href: `#${part.id}`, onclick: (event: Event) => jump(event, part.id) }, title)] : [];
  });
  return h('nav', { 'aria-label': 'Contents', hidden: links.length < 2 }, ...links);
}

// The hash of the live page says which runs are open, so that jumping must not change it.
function jump(event: Event, id: string) {
  event.preventDefault();
  const part = document.getElementById(id);
  part?.scrollIntoView();
  part?.querySelector('h2')?.setAttribute('tabindex', '-1');
  (part?.querySelector('h2') as HTMLElement | null)?.focus({ preventScroll: true });
}

function showDocument(doc: PageDocument, extra: (doc: PageDocument) => HTMLElement[], back: HTMLElement | null) {
  const again = () => showDocument(doc, extra, back);
  const several = doc.runs.length > 1;
  shownRun = Math.min(shownRun, doc.runs.length - 1);
  const run = doc.runs[shownRun];
  const overview = h('section', { id: 'overview', 'aria-label': 'Overview' }, tiles(run), resumeNote(run));
  const picker = several
    ? h('div', { class: 'run-picker' },
        h('h2', { id: 'one-run-title' }, 'One run'),
        chooser('one-run', 'Run', doc.runs.map((r, i) => ({ value: String(i), label: `${r.id}: ${describeRun(r)}` })), String(shownRun), (v) => {
          shownRun = Number(v);
          again();
        }))
    : null;
  if (picker) overview.prepend(picker);
  const state = (s: string) => h('span', { class: `state ${s}` }, s);
  const header = several
    ? [...(back ? [back] : []), h('h1', {}, `${doc.runs.length} runs`), h('p', {}, `${doc.comparison?.groups.length ?? 1} settings, compared`)]
    : [...(back ? [back] : []), h('h1', {}, run.name, ' ', state(run.state)), h('p', {}, describeRun(run))];
  show(several ? `Sotto: ${doc.runs.length} runs` : `Sotto: ${run.name}`, header, () => [
    ...compareSections(doc, again),
    overview,
    ...extra(doc),
    ...runSections(run, `run-${shownRun}`, again),
  ]);
  end.replaceChildren(`Made by Sotto ${doc.version}. ε is rounded up; ∞ means that nothing can be proven.`);
}

function showFederation(federation: Federation, back: HTMLElement | null) {
  const state = stateOf(federation);
  show(`Sotto: ${titleOf(federation)}`, [...(back ? [back] : []), h('h1', {}, titleOf(federation), ' ', h('span', { class: `state ${state}` }, state)), h('p', {}, describeFederation(federation))],
    () => federationSections(federation));
}

// What `sotto ui` shows first: the one federation that its folder is, or a list.
function showAll(root: string, entries: Entry[], federations: Federation[], redo: () => void) {
  if (federations.length === 1 && federations[0].id === '.') return showFederation(federations[0], null);
  show('Sotto: runs', [h('h1', {}, 'Runs'), h('p', {}, root)], () => [...(federations.length ? [federationList(federations)] : []), listSection(entries, redo)]);
}

// The live page asks again: often while something is running, seldom otherwise.
const kOften = 1000;
const kSeldom = 5000;
let asked = 0;

async function live() {
  const mine = ++asked;
  let stamp = '';
  let entries: Entry[] = [];
  let wait = kSeldom;
  const back = h('a', { href: '#', class: 'back', id: 'back' }, '← All runs');
  const step = async () => {
    const open = openRuns();
    const federation = openFederation();
    try {
      if (federation !== null) {
        const answer = await askFederation(federation);
        if (mine !== asked) return;
        if (JSON.stringify(answer) !== stamp) showFederation(answer, back);
        stamp = JSON.stringify(answer);
        wait = isLive(answer) ? kOften : kSeldom;
      } else if (open.length === 0) {
        const answer = await askRuns();
        if (mine !== asked) return;
        entries = answer.runs;
        const redo = () => {
          if (mine === asked) showAll(answer.root, entries, answer.federations, redo);
        };
        const now = JSON.stringify([entries, answer.federations]);
        if (now !== stamp) redo();
        stamp = now;
        wait = entries.some((e) => e.state === 'running') || answer.federations.some(isLive) ? kOften : kSeldom;
      } else {
        if (entries.length === 0) entries = (await askRuns()).runs;
        const answer = await askDocument(open, stamp);
        if (mine !== asked) return;
        if (!answer.same) {
          stamp = answer.stamp;
          wait = answer.runs.some((r: any) => r.state === 'running') ? kOften : kSeldom;
          showDocument(answer, (doc) => (doc.runs.length === 1 ? [boardSection(doc, entries)] : []), back);
        }
      }
      main.querySelector('#trouble')?.remove();
    } catch (error) {
      if (mine !== asked) return;
      main.querySelector('#trouble')?.remove();
      main.prepend(h('p', { id: 'trouble', class: 'verdict', role: 'alert' }, `No answer from sotto ui: ${(error as Error).message}`));
      wait = kSeldom;
    }
    setTimeout(() => mine === asked && void step(), wait);
  };
  await step();
}

startTheme();
if (data.ui) {
  addEventListener('hashchange', () => {
    shownRun = 0;
    void live();
    scrollTo({ top: 0 });
  });
  void live();
} else {
  showDocument(data, () => [], null);
}

// For tests and the curious: what each chart has drawn, by the library's own account.
(window as any).sotto = {
  charts: chartKeys,
  option: (key: string) => drawnChart(key)?.getOption(),
  points: (key: string, series: string): number => {
    const model = (drawnChart(key) as any)?.getModel();
    const found = model?.getSeriesByName(series)?.[0];
    return found ? found.getData().count() : -1;
  },
  pixel: (key: string, value: number[]) => drawnChart(key)?.convertToPixel({ gridIndex: 0 }, value),
};
