import assert from 'node:assert/strict';
import test from 'node:test';

import type {Page} from 'playwright-core';

import {attentionOf, clustersOf} from '../mock/attention';
import {longText, passage} from '../mock/made_up_text';
import {models, piecesOf} from '../mock/models';
import {eventually, eventuallyEqual, eventuallyMatch, hashOf, useBrowser, withPage} from './support';

useBrowser();

const model = models[0]!;
const pieces = piecesOf(model, passage);
const at = (hash: string) => `#/attention?model=${model.id}&${hash}`;
const text = () => ({text: passage});

async function listed(page: Page): Promise<{position: number; weight: number}[]> {
  return page.locator('.reads tbody tr').evaluateAll((rows) => rows.map((row) => ({
    position: row.children[2]!.textContent === '' ? -1 : Number(row.children[2]!.textContent!.replaceAll(',', '')),
    weight: Number(row.querySelector('.weight span:last-child')!.textContent)})));
}

function expected(position: number, layer: number, head: number) {
  const [own] = attentionOf({model, pieces, position, layer, head}).heads;
  return own!.reads.slice(0, 60).map((read) => ({position: read.position, weight: Number(read.weight.toFixed(4))}));
}

const settled = (page: Page, title: string) => page.getByRole('heading', {name: title}).waitFor();

// Where the chosen token is, far from the beginning, lines fill the box from edge to edge.
const isFilled = (page: Page) => page.locator('.text-scroller').evaluate((box) => {
  const [edges, lines] = [box.getBoundingClientRect(), [...box.querySelectorAll('.text-line')].map((line) => line.getBoundingClientRect())];
  return box.scrollTop > 0 && lines.some((line) => line.top <= edges.top) && lines.some((line) => line.bottom >= edges.bottom);
});

test('the list has the exact weights of the token, layer and head of the address', () => withPage(at('at=200&layer=4&head=6'), async ({page}) => {
  await settled(page, 'Layer 4, head 6 routing');
  await eventuallyEqual(() => listed(page), expected(200, 4, 6), 'its weights');
  await page.getByText(`Predicting ␣${pieces[200]!.trim()} at 200`).waitFor();
}, text()));

test('a click on a token asks about it, and the address and a reload keep it', () => withPage(at('layer=4&head=6'), async ({page}) => {
  await page.locator('.reads').waitFor();
  await page.locator('.text-scroller').evaluate((box) => (box.scrollTop = 0));
  const word = page.locator('.text-line span', {hasText: 'winter only the postman'});
  const box = (await word.boundingBox())!;
  const before = await word.evaluate((element) => element.textContent!.indexOf('winter'));
  const cell = box.width / (await word.evaluate((element) => element.textContent!.length));
  await page.mouse.click(box.x + cell * (before + 2), box.y + box.height / 2);
  await page.getByText('Predicting ␣winter').waitFor();
  const position = pieces.indexOf(' winter');
  await eventually(async () => (await hashOf(page)).includes(`at=${position}`), 'the address');
  await eventuallyEqual(() => listed(page), expected(position, 4, 6), 'its weights');
  await page.reload();
  await page.getByText('Predicting ␣winter').waitFor();
  await eventuallyEqual(() => listed(page), expected(position, 4, 6), 'its weights again');
}, text()));

test('keys go over tokens, heads and layers', () => withPage(at('at=200&layer=4&head=6'), async ({page}) => {
  await page.locator('.reads').waitFor();
  await page.locator('.text-scroller').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowLeft');
  await page.getByText('at 201', {exact: true}).waitFor();
  await page.keyboard.press('Shift+ArrowRight');
  await settled(page, 'Layer 4, head 7');
  await page.keyboard.press('Shift+ArrowUp');
  await settled(page, 'Layer 3, head 7');
  // The matrix is one stop of the Tab key, with arrows inside.
  await page.getByRole('radio', {name: 'layer 3 head 7'}).focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowDown');
  await settled(page, 'Layer 4, head 6');
  await eventuallyEqual(() => listed(page), expected(201, 4, 6), 'the weights of where the keys led');
  await eventuallyEqual(() => page.locator('.heads [tabindex="0"]').count(), 1, 'one stop of the Tab key');
}, text()));

test('after the last token comes what the model would write next', () => withPage(at('layer=4&head=6'), async ({page}) => {
  await page.getByText('Predicting what comes next').waitFor();
  await eventuallyEqual(() => listed(page), expected(pieces.length, 4, 6), 'its weights');
}, text()));

test('tokens are coloured by cluster, and brackets go from member to member', () => withPage(at('at=20&layer=5&head=7&by=clusters'), async ({page}) => {
  const clusters = clustersOf(pieces, 5, 7, 24);
  const own = clusters[20]![0]!;
  await page.getByText(`member of cluster ${own}`).waitFor();
  const members = clusters.map((each, index) => each.includes(own) ? index : -1).filter((index) => index >= 0);
  const next = members.find((index) => index > 20)!;
  await page.locator('.text-scroller').focus();
  await page.keyboard.press(']');
  await page.getByText(`at ${next}`, {exact: true}).waitFor();
  await page.keyboard.press('[');
  await page.getByText('at 20', {exact: true}).waitFor();
  // Only this cluster: as many coloured places on the canvas as it has members on the screen.
  await page.locator('.cluster-list button', {hasText: new RegExp(`^${own}\\d*`)}).filter({hasText: String(members.length)}).first().click();
  await eventually(async () => (await hashOf(page)).includes(`cluster=${own}`), 'the address');
  const sizes = Array.from({length: 24}, (_, cluster) => clusters.filter((each) => each.includes(cluster)).length);
  await eventuallyEqual(() => page.locator('.cluster-list button').evaluateAll((all) => all.map((each) => Number(each.lastElementChild!.textContent))),
                        sizes.sort((a, b) => b - a), 'all members of all clusters, the largest first');
}, text()));

test('a head without clusters offers none', () => withPage(at('at=20&layer=0&head=1&by=clusters'), async ({page, mock}) => {
  await settled(page, 'Layer 0, head 1 local');
  await page.locator('.reads').waitFor();
  assert.equal(await page.getByRole('radio', {name: 'Clusters'}).count(), 0);
  assert.ok(mock.requests.every((request) => request.path !== '/api/clusters'));
}, text()));

test('of 32,000 tokens only what is near the screen is made and drawn', () => {
  const long = longText(32_000, 3).join('');
  return withPage(at('at=20000&layer=4&head=6'), async ({page}) => {
    await page.locator('.reads').waitFor();
    await eventually(() => isFilled(page), 'the chosen token in sight');
    const counts = () => page.evaluate(() => ({
      lines: document.querySelectorAll('.text-line').length,
      drawn: Number(document.querySelector<HTMLElement>('.text-scroller')!.dataset['drawn']),
      nodes: document.querySelectorAll('*').length,
      canvases: [...document.querySelectorAll('canvas')].reduce((sum, canvas) => sum + canvas.width * canvas.height, 0)}));
    const first = await counts();
    assert.ok(first.lines < 150 && first.lines > 20, `${first.lines} lines`);
    assert.ok(first.drawn < 5000, `${first.drawn} fragments drawn`);
    assert.ok(first.nodes < 2500, `${first.nodes} elements`);
    assert.ok(first.canvases < 8e6, `${first.canvases} pixels`);
    // There, and back, and nothing is left behind.
    const shown = () => page.locator('.text-lines').innerText();
    const there = await shown();
    const times = await page.evaluate(async () => {
      const box = document.querySelector('.text-scroller')!;
      const place = box.scrollTop;
      const frames: number[] = [];
      let last = performance.now();
      for (let step = 0; step < 120; ++step) {
        box.scrollTop = step < 60 ? place + step * 500 : place + (119 - step) * 500;
        await new Promise(requestAnimationFrame);
        frames.push(performance.now() - last);
        last = performance.now();
      }
      return frames.sort((a, b) => a - b);
    });
    console.log(`# frames while scrolling: median ${times[60]!.toFixed(1)} ms, slowest ${times[119]!.toFixed(1)} ms`);
    await eventually(async () => await shown() === there, 'the same lines after scrolling there and back');
    await eventually(() => isFilled(page), 'a full screen of lines');
    const second = await counts();
    assert.ok(second.lines < 150 && second.nodes < 2500, JSON.stringify(second));
    await page.locator('.text-scroller').evaluate((box) => (box.scrollTop = box.scrollHeight));
    await page.locator('.text-line', {hasText: '…'}).waitFor();
  }, {text: long});
});

test('a text can be pasted, changed, and taken over from the playground', () => withPage(at(''), async ({page, mock}) => {
  await page.getByLabel('Paste a text').fill('The captain reads the harbour at night.');
  await page.getByRole('button', {name: 'Read it'}).click();
  await page.getByText('8 tokens', {exact: true}).waitFor();
  await page.getByRole('button', {name: 'Change the text'}).click();
  await page.getByLabel('Paste a text').fill('The captain');
  await page.getByRole('button', {name: 'Read it'}).click();
  await page.getByText('2 tokens', {exact: true}).waitFor();
  await page.getByRole('link', {name: 'Playground'}).click();
  await page.getByLabel('Text', {exact: true}).fill('Letters wait in a tin.');
  await page.getByRole('button', {name: 'See attention'}).click();
  await page.getByText('6 tokens', {exact: true}).waitFor();
  const asked = mock.requests.filter((request) => request.path === '/api/tokens').map((request) => request.body['text']);
  assert.equal(asked.at(-1), 'Letters wait in a tin.');
}));

test('bytes of one character, ends of lines and hostile text lie where they should', () => withPage('#/attention?model=quickstart&at=3', async ({page}) => {
  await page.locator('.reads').waitFor();
  await eventuallyMatch(() => page.locator('.text-lines').innerText(), /<b>x<\/b>&amp;/, 'the text as it is');
  assert.equal(await page.locator('.text-lines b').count(), 0);
  await page.locator('.text-scroller').focus();
  await page.keyboard.press('End');
  await page.keyboard.press('ArrowLeft');
  await page.getByText('Predicting ∅').waitFor();
}, {text: 'a\n<b>x</b>&amp; é\r\n漢字 x é'}));

test('images and encoder-decoders say why there is nothing to see', () => withPage('#/attention?model=pictures', async ({page}) => {
  await page.getByText('Images have no text to show here').waitFor();
  await page.locator('#model').selectOption('reverse');
  await page.getByText('Encoder-decoders have no such view').waitFor();
}, text()));

test('an error is said, and the next answer takes it away', () => withPage(at('at=20&layer=4&head=6'), async ({page, mock}) => {
  await page.locator('.reads').waitFor();
  mock.failures.push({path: '/api/attention', status: 503, message: 'the model is being replaced', times: 1});
  await page.locator('.text-scroller').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText('The model is being replaced.').waitFor();
  await page.getByRole('button', {name: 'Try again'}).click();
  await eventuallyEqual(() => listed(page), expected(21, 4, 6), 'the weights');
  await eventuallyEqual(() => page.getByRole('alert').count(), 0, 'no error any more');
}, {...text(), allows: /503/}));
