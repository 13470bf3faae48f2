import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import type {Locator, Page} from 'playwright-core';

import {clusterHistoryOf, linesOf, manyRuns, runs} from '../mock/runs';
import type {MockServer} from '../mock/server';
import {colourAt, eventually, eventuallyEqual, eventuallyMatch, hashOf, isDrawn, useBrowser, withPage} from './support';

useBrowser();

const readout = (page: Page, chart: number) => page.locator('.chart').nth(chart).locator('.readout li').allInnerTexts();
const curves = async (page: Page) => (await readout(page, 0)).length;
const charts = (page: Page) => page.locator('.chart').count();
const labelOf = async (plot: Locator) => await plot.getAttribute('aria-label') ?? '';
const listed = (page: Page) => page.locator('.runs tbody tr').count();
// The row of a run; its texts as one line.
const row = (page: Page, id: string) => page.locator('.runs tbody tr', {has: page.getByRole('rowheader', {name: id, exact: true})});

// The page is told of what this run does from now on. That it says "live" is not enough: it listens to the folder before it
// knows which run to listen to as well.
const isFollowed = (mock: MockServer, id: string) => eventually(() => mock.isFollowed(id), `somebody who follows ${id}`);

// The newest value of a run, as charts write it.
function newest(mock: MockServer, id: string, name: string): string {
  const line = linesOf(mock.runs.find((each) => each.id === id)!).filter((each) => name in each).at(-1)!;
  return String(Number(Number(line[name]).toPrecision(4)));
}

const shows = (page: Page, curve: number, value: string, what: string) =>
  eventually(async () => (await readout(page, 0))[curve]?.includes(value) === true, `${what}: ${value}`);

async function saved(page: Page, label: string, kind: string): Promise<string> {
  await page.getByLabel(`Save ${label}`).first().click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('details[open] button', {hasText: kind}).click()]);
  return readFileSync((await file.path())!, kind === 'PNG' ? 'latin1' : 'utf8');
}

test('all runs are listed with state, best value, label and problem, and what trains is shown first', () => withPage('#/training', async ({page}) => {
  await page.locator('.readout li').first().waitFor();
  await eventuallyEqual(() => listed(page), runs.length, 'all runs');
  await eventuallyMatch(() => row(page, 'island/published').innerText(), /finished.*41\.\d+ perplexity\s*selection reads the future/s, 'a finished run');
  await eventuallyMatch(() => row(page, 'pictures').innerText(), /bits per dim\s*causal\s*partial data/, 'a run of images');
  await eventuallyMatch(() => row(page, 'exp/torn').innerText(), /key train.setps does not exist/, 'a run that cannot be read');
  await eventually(() => page.getByLabel('Show island/words', {exact: true}).isChecked(), 'that what trains is shown');
  await eventually(() => page.getByLabel('Show exp/torn').isDisabled(), 'that what cannot be read cannot be shown');
}));

test('a running training moves: the list, the curves and the clusters', () => withPage('#/training?runs=island/words&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await isFollowed(mock, 'island/words');
  await shows(page, 0, newest(mock, 'island/words', 'train_perplexity'), 'its curve');
  await eventuallyMatch(() => row(page, 'island/words').innerText(), /12,400/, 'its row');
  const clusters = page.locator('.heat-plot').first();
  await eventuallyMatch(() => labelOf(clusters), /24 clusters/, 'its clusters');
  // The arrow goes to the newest step, and stays there.
  const newestStep = async () => {
    await clusters.press('ArrowRight');
    return /step ([\d,]+),/.exec(await labelOf(clusters))?.[1] ?? '';
  };
  await eventuallyEqual(newestStep, '12,400', 'the newest step of its clusters');
  mock.train('island/words', 500);
  await eventuallyMatch(() => row(page, 'island/words').innerText(), /12,900/, 'its row');
  await shows(page, 0, newest(mock, 'island/words', 'train_perplexity'), 'its last value');
  await eventuallyEqual(newestStep, '12,900', 'the newest step of its clusters');
}));

test('runs that are compared but not followed closely move as well', () => withPage('#/training?runs=quickstart,island/words&focus=quickstart&nats=1&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await isFollowed(mock, 'quickstart');
  await eventuallyEqual(() => curves(page), 2, 'two curves');
  await shows(page, 1, newest(mock, 'island/words', 'train_loss_nats'), 'the other curve');
  mock.train('island/words', 300);
  await shows(page, 1, newest(mock, 'island/words', 'train_loss_nats'), 'the other curve');
}));

test('the stream of events comes back by itself, and goes on where it was', () => withPage('#/training?runs=island/words&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await isFollowed(mock, 'island/words');
  await shows(page, 0, newest(mock, 'island/words', 'train_perplexity'), 'its curve');
  // The server stays away until the page has said so.
  mock.failures.push({path: '/api/events', status: 0, drop: true});
  mock.dropStreams();
  await page.getByText('trying again in').waitFor();
  mock.failures = [];
  await page.getByText('live', {exact: true}).waitFor();
  await isFollowed(mock, 'island/words');
  mock.train('island/words', 200);
  await shows(page, 0, newest(mock, 'island/words', 'train_perplexity'), 'what came after');
}, {allows: /ERR_|Failed to load/}));

test('a log that was cut back is read anew', () => withPage('#/training?runs=exp/local&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await isFollowed(mock, 'exp/local');
  await shows(page, 0, newest(mock, 'exp/local', 'train_bits_per_byte'), 'its curve');
  mock.train('exp/local', -2000);
  await shows(page, 0, newest(mock, 'exp/local', 'train_bits_per_byte'), 'the value before');
}));

test('runs are chosen, found and sorted, and the address keeps what was chosen', () => withPage('#/training?runs=quickstart', async ({page}) => {
  await page.getByLabel('Show exp/routed', {exact: true}).check();
  await eventuallyEqual(() => curves(page), 2, 'two curves');
  await eventuallyMatch(() => hashOf(page), /runs=quickstart,exp\/routed/, 'the address');
  await page.reload();
  await eventuallyEqual(() => curves(page), 2, 'two curves after a reload');
  await page.getByLabel('Find runs').fill('perplexity');
  await eventuallyEqual(() => listed(page), 0, 'no run with this word');
  await page.getByLabel('Find runs').fill('exp rout');
  await eventuallyEqual(() => listed(page), 2, 'two runs with these words');
  await page.getByLabel('Find runs').fill('');
  await eventuallyEqual(() => listed(page), runs.length, 'all runs');
  const names = () => page.locator('.runs tbody th').allInnerTexts();
  const inOrder = runs.map((run) => run.id).sort();
  await page.getByRole('columnheader', {name: 'Run'}).getByRole('button').click();
  await eventuallyEqual(names, inOrder, 'runs by name');
  await page.getByRole('columnheader', {name: 'Run'}).getByRole('button').click();
  await eventuallyEqual(names, [...inOrder].reverse(), 'runs by name, the last first');
  await page.getByRole('button', {name: 'exp/local'}).click();
  await eventuallyEqual(() => curves(page), 1, 'only that one');
}));

test('runs of different units have a chart each; nats put them into one', () => withPage('#/training?runs=quickstart,island/words', async ({page}) => {
  await eventuallyEqual(() => page.locator('.main-chart').count(), 2, 'two charts');
  await page.getByLabel('Nats').check();
  await eventuallyEqual(() => page.locator('.main-chart').count(), 1, 'one chart');
  const plot = page.locator('.main-chart .plot');
  await eventuallyMatch(() => labelOf(plot), /loss, nats per token by steps/, 'what it shows');
  await page.getByRole('radio', {name: 'Tokens'}).click();
  await eventuallyMatch(() => labelOf(plot), /by tokens/, 'what it shows then');
}));

test('keys and the pointer read values, zoom and come back', () => withPage('#/training?runs=quickstart&smooth=0', async ({page}) => {
  await page.locator('.readout li').first().waitFor();
  const plot = page.locator('.main-chart .plot');
  const last = await readout(page, 0);
  // Keys go over what is drawn: before, there is nothing to go over.
  await eventually(() => isDrawn(plot.locator('canvas').first()), 'the chart');
  await plot.focus();
  await page.keyboard.press('ArrowLeft');
  await eventually(async () => (await readout(page, 0))[0] !== last[0], 'a value further left');
  await eventuallyMatch(() => labelOf(plot), / at 2,\d\d0$/, 'where that is');
  await page.keyboard.press('+');
  await page.getByRole('button', {name: 'Whole axis'}).waitFor();
  await page.keyboard.press('0');
  await page.getByRole('button', {name: 'Whole axis'}).waitFor({state: 'detached'});
  const box = (await plot.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.3, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 50, {steps: 4});
  await page.mouse.up();
  await page.getByRole('button', {name: 'Whole axis'}).click();
  await page.getByRole('button', {name: 'Whole axis'}).waitFor({state: 'detached'});
  await page.mouse.move(5, 5);
  await eventuallyEqual(() => readout(page, 0), last, 'the last value');
}));

test('charts are saved as PNG, SVG and CSV with what they show', () => withPage('#/training?runs=quickstart,exp/local', async ({page}) => {
  await eventuallyEqual(() => curves(page), 2, 'two curves');
  const csv = (await saved(page, 'bits per byte', 'CSV')).split('\r\n');
  assert.equal(csv[0], 'run,kind,steps,bits per byte');
  const lines = linesOf(runs.find((run) => run.id === 'quickstart')!);
  const first = lines.find((line) => 'train_bits_per_byte' in line)!;
  assert.equal(csv[1], `quickstart,training,${first['step']},${first['train_bits_per_byte']}`);
  assert.equal(csv.filter((line) => line.startsWith('exp/local,held out,')).length, 10);
  const svg = await saved(page, 'bits per byte', 'SVG');
  assert.match(svg, /^<svg [^>]*width="960" height="540"/);
  assert.match(svg, />exp\/local<\/text>/);
  assert.ok((svg.match(/<circle/g) ?? []).length >= 20);
  await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
    if (parsed.querySelector('parsererror')) throw new Error(parsed.documentElement.textContent ?? '');
  }, svg);
  assert.equal((await saved(page, 'bits per byte', 'PNG')).slice(1, 4), 'PNG');
}));

test('clusters are drawn share by share, dead ones said and coloured', () => withPage('#/training?runs=exp/collapsed', async ({page}) => {
  const run = runs.find((each) => each.id === 'exp/collapsed')!;
  await page.getByText('20 dead centroids at the last step').waitFor();
  const plot = page.locator('.heat-plot').first();
  await eventuallyMatch(() => labelOf(plot), /Clusters of layer 3, head 2. 10 of 16 dead now/, 'what is dead');
  await plot.focus();
  await page.keyboard.press('ArrowDown');
  const history = clusterHistoryOf(run, 0);
  // The first key goes from the newest step's first cluster to the second.
  const share = history.shares.at(-1)![0]![1]!;
  await page.getByText(`cluster 1: ${(share * 100).toFixed(share >= 0.1 ? 1 : 2)}`).waitFor();
  const canvas = plot.locator('canvas');
  const deadColour = async () => {
    const [width, height] = await canvas.evaluate((element: HTMLCanvasElement) => [element.width, element.height]);
    const [red, green] = await colourAt(canvas, width! - 8, Math.floor(height! * 0.8));
    return red! > 150 && green! < 100 ? 'red' : `red ${red}, green ${green}`;
  };
  await eventuallyEqual(deadColour, 'red', 'the colour of a dead cluster');
  const csv = (await saved(page, 'clusters of layer 3, head 2', 'CSV')).split('\r\n');
  assert.equal(csv.length, history.steps.length + 2);
  assert.equal(csv[1], [history.steps[0], ...history.shares[0]![0]!].join(','));
}));

test('samples are shown as they were drawn, text and images', () => withPage('#/training?runs=quickstart', async ({page}) => {
  await page.locator('.sample-text').first().waitFor();
  const shown = () => page.locator('.drawn-samples li').count();
  await eventuallyEqual(shown, 4, 'the newest samples');
  await eventuallyEqual(() => page.locator('.drawn-samples h3').first().innerText(), 'step 5,040', 'the newest step');
  await page.getByRole('button', {name: 'All 10 samples'}).click();
  await eventuallyEqual(shown, 10, 'all samples');
  await page.getByRole('button', {name: 'pictures'}).click();
  const canvas = page.locator('.drawn-samples canvas').first();
  await eventuallyEqual(() => canvas.evaluate((element: HTMLCanvasElement) => element.width), 96, 'the picture');
}));

test('configurations show what differs', () => withPage('#/training?runs=quickstart,island/words', async ({page}) => {
  await page.getByText('What differs in the configurations').click();
  await page.getByRole('rowheader', {name: 'train.steps'}).waitFor();
  await eventuallyEqual(() => page.locator('.config tbody tr').count(), 1, 'only what differs');
}));

test('hundreds of runs stay usable', () => withPage('#/training?runs=none', async ({page}) => {
  await eventuallyEqual(() => listed(page), 400, 'the first 400');
  await page.getByText('700 runs').waitFor();
  await page.getByLabel('Find runs').fill('seed-31');
  await page.getByText('10 of 700 runs').waitFor();
}, {prepare: (mock) => (mock.runs = manyRuns(700))}));

test('an empty folder says how to fill it, and a run without curves draws none', () => withPage('#/training', async ({page}) => {
  await page.getByText('No run is in this folder yet').waitFor();
  await eventuallyEqual(() => charts(page), 0, 'no charts');
}, {prepare: (mock) => (mock.runs = [])}));
