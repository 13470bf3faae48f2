import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import type {Page} from 'playwright-core';

import {clusterHistoryOf, linesOf, manyRuns, runs} from '../mock/runs';
import {eventually, useBrowser, withPage} from './support';

useBrowser();

const readout = (page: Page, chart: number) => page.locator('.chart').nth(chart).locator('.readout li').allInnerTexts();
const charts = (page: Page) => page.locator('.chart').count();
// The row of a run; its texts as one line.
const row = (page: Page, id: string) => page.locator('.runs tbody tr', {has: page.getByRole('rowheader', {name: id, exact: true})});

async function saved(page: Page, label: string, kind: string): Promise<string> {
  await page.getByLabel(`Save ${label}`).first().click();
  const [file] = await Promise.all([page.waitForEvent('download'), page.locator('details[open] button', {hasText: kind}).click()]);
  return readFileSync((await file.path())!, kind === 'PNG' ? 'latin1' : 'utf8');
}

test('all runs are listed with state, best value, label and problem, and what trains is shown first', () => withPage('#/training', async ({page}) => {
  await page.locator('.readout li').first().waitFor();
  assert.equal(await page.locator('.runs tbody tr').count(), runs.length);
  assert.match(await row(page, 'island/published').innerText(), /finished.*41\.\d+ perplexity\s*selection reads the future/s);
  assert.match(await row(page, 'pictures').innerText(), /bits per dim\s*causal\s*partial data/);
  assert.match(await row(page, 'exp/torn').innerText(), /key train.setps does not exist/);
  assert.ok(await page.getByLabel('Show island/words', {exact: true}).isChecked());
  assert.ok(await page.getByLabel('Show exp/torn').isDisabled());
}));

test('a running training moves: the list, the curves and the clusters', () => withPage('#/training?runs=island/words&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await eventually(async () => (await readout(page, 0)).length === 1, 'its curve');
  const before = await row(page, 'island/words').innerText();
  mock.train('island/words', 500);
  const run = mock.runs.find((each) => each.id === 'island/words')!;
  await eventually(async () => (await row(page, 'island/words').innerText()) !== before, 'its row');
  assert.match(await row(page, 'island/words').innerText(), /12,900/);
  const last = linesOf(run).filter((line) => 'train_perplexity' in line).at(-1)!;
  await eventually(async () => (await readout(page, 0))[0]!.includes(String(Number(Number(last['train_perplexity']).toPrecision(4)))), 'its last value');
  await eventually(async () => (await page.locator('.heat-plot').first().getAttribute('aria-label'))!.includes('24 clusters'), 'its clusters');
}));

test('runs that are compared but not followed closely move as well', () => withPage('#/training?runs=quickstart,island/words&focus=quickstart&nats=1&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await eventually(async () => (await readout(page, 0)).length === 2, 'two curves');
  const before = (await readout(page, 0))[1];
  mock.train('island/words', 300);
  await eventually(async () => (await readout(page, 0))[1] !== before, 'the other curve');
}));

test('the stream of events comes back by itself, and goes on where it was', () => withPage('#/training?runs=island/words&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await eventually(async () => (await readout(page, 0)).length === 1, 'its curve');
  mock.dropStreams();
  await page.getByText('trying again in').waitFor();
  await page.getByText('live', {exact: true}).waitFor();
  const before = await readout(page, 0);
  mock.train('island/words', 200);
  await eventually(async () => (await readout(page, 0))[0] !== before[0], 'what came after');
}, {allows: /ERR_|Failed to load/}));

test('a log that was cut back is read anew', () => withPage('#/training?runs=exp/local&smooth=0', async ({page, mock}) => {
  await page.getByText('live', {exact: true}).waitFor();
  await eventually(async () => (await readout(page, 0)).length === 1, 'its curve');
  mock.train('exp/local', -2000);
  const run = mock.runs.find((each) => each.id === 'exp/local')!;
  const last = linesOf(run).filter((line) => 'train_bits_per_byte' in line).at(-1)!;
  await eventually(async () => (await readout(page, 0))[0]!.includes(String(Number(Number(last['train_bits_per_byte']).toPrecision(4)))), 'the value before');
  run.done += 2000;
}));

test('runs are chosen, found and sorted, and the address keeps what was chosen', () => withPage('#/training?runs=quickstart', async ({page}) => {
  await page.getByLabel('Show exp/routed', {exact: true}).check();
  await eventually(async () => (await readout(page, 0)).length === 2, 'two curves');
  assert.match(await page.evaluate(() => location.hash), /runs=quickstart,exp\/routed/);
  await page.reload();
  await eventually(async () => (await readout(page, 0)).length === 2, 'two curves after a reload');
  await page.getByLabel('Find runs').fill('perplexity');
  assert.equal(await page.locator('.runs tbody tr').count(), 0);
  await page.getByLabel('Find runs').fill('exp rout');
  assert.equal(await page.locator('.runs tbody tr').count(), 2);
  await page.getByLabel('Find runs').fill('');
  await page.getByRole('columnheader', {name: 'Run'}).getByRole('button').click();
  const names = await page.locator('.runs tbody th').allInnerTexts();
  assert.deepEqual(names, [...names].sort());
  await page.getByRole('columnheader', {name: 'Run'}).getByRole('button').click();
  assert.deepEqual(await page.locator('.runs tbody th').allInnerTexts(), names.reverse());
  await page.getByRole('button', {name: 'exp/local'}).click();
  await eventually(async () => (await readout(page, 0)).length === 1, 'only that one');
}));

test('runs of different units have a chart each; nats put them into one', () => withPage('#/training?runs=quickstart,island/words', async ({page}) => {
  await eventually(async () => await page.locator('.main-chart').count() === 2, 'two charts');
  await page.getByLabel('Nats').check();
  await eventually(async () => await page.locator('.main-chart').count() === 1, 'one chart');
  assert.match((await page.locator('.main-chart .plot').getAttribute('aria-label'))!, /loss, nats per token by steps/);
  await page.getByRole('radio', {name: 'Tokens'}).click();
  assert.match((await page.locator('.main-chart .plot').getAttribute('aria-label'))!, /by tokens/);
}));

test('keys and the pointer read values, zoom and come back', () => withPage('#/training?runs=quickstart&smooth=0', async ({page}) => {
  await page.locator('.readout li').first().waitFor();
  const plot = page.locator('.main-chart .plot');
  const last = await readout(page, 0);
  await plot.focus();
  await page.keyboard.press('ArrowLeft');
  await eventually(async () => (await readout(page, 0))[0] !== last[0], 'a value further left');
  assert.match((await plot.getAttribute('aria-label'))!, / at 2,\d\d0$/);
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
  await eventually(async () => (await readout(page, 0))[0] === last[0], 'the last value');
}));

test('charts are saved as PNG, SVG and CSV with what they show', () => withPage('#/training?runs=quickstart,exp/local', async ({page}) => {
  await eventually(async () => (await readout(page, 0)).length === 2, 'two curves');
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
  assert.match((await plot.getAttribute('aria-label'))!, /Clusters of layer 3, head 2. 10 of 16 dead now/);
  await plot.focus();
  await page.keyboard.press('ArrowDown');
  const history = clusterHistoryOf(run, 0);
  // The first key goes from the newest step's first cluster to the second.
  const share = history.shares.at(-1)![0]![1]!;
  await page.getByText(`cluster 1: ${(share * 100).toFixed(share >= 0.1 ? 1 : 2)}`).waitFor();
  const red = await plot.locator('canvas').evaluate((canvas: HTMLCanvasElement) =>
    [...canvas.getContext('2d')!.getImageData(canvas.width - 8, canvas.height * 0.8, 1, 1).data]);
  assert.ok(red[0]! > 150 && red[1]! < 100, `a dead cluster is ${red}`);
  const csv = (await saved(page, 'clusters of layer 3, head 2', 'CSV')).split('\r\n');
  assert.equal(csv.length, history.steps.length + 2);
  assert.equal(csv[1], [history.steps[0], ...history.shares[0]![0]!].join(','));
}));

test('samples are shown as they were drawn, text and images', () => withPage('#/training?runs=quickstart', async ({page}) => {
  await page.locator('.sample-text').first().waitFor();
  assert.equal(await page.locator('.drawn-samples li').count(), 4);
  assert.equal(await page.locator('.drawn-samples h3').first().innerText(), 'step 5,040');
  await page.getByRole('button', {name: 'All 10 samples'}).click();
  assert.equal(await page.locator('.drawn-samples li').count(), 10);
  await page.getByRole('button', {name: 'pictures'}).click();
  const canvas = page.locator('.drawn-samples canvas').first();
  await canvas.waitFor();
  await eventually(() => canvas.evaluate((element: HTMLCanvasElement) => element.width === 96), 'the picture');
}));

test('configurations show what differs', () => withPage('#/training?runs=quickstart,island/words', async ({page}) => {
  await page.getByText('What differs in the configurations').click();
  await page.getByRole('rowheader', {name: 'train.steps'}).waitFor();
  assert.equal(await page.locator('.config tbody tr').count(), 1);
}));

test('hundreds of runs stay usable', () => withPage('#/training?runs=none', async ({page}) => {
  await page.locator('.runs tbody tr').first().waitFor();
  assert.equal(await page.locator('.runs tbody tr').count(), 400);
  await page.getByText('700 runs').waitFor();
  await page.getByLabel('Find runs').fill('seed-31');
  await page.getByText('10 of 700 runs').waitFor();
}, {prepare: (mock) => (mock.runs = manyRuns(700))}));

test('an empty folder says how to fill it, and a run without curves draws none', () => withPage('#/training', async ({page}) => {
  await page.getByText('No run is in this folder yet').waitFor();
  assert.equal(await charts(page), 0);
}, {prepare: (mock) => (mock.runs = [])}));
