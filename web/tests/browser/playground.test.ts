import assert from 'node:assert/strict';
import test from 'node:test';

import type {Page} from 'playwright-core';

import {pictureRow} from '../mock/completions';
import {pngOf} from '../mock/png';
import {eventually, useBrowser, withPage} from './support';

useBrowser();

const words = '#/playground?model=island/words';
const drawnText = (page: Page) => page.locator('.token-text').first().innerText();
const bodies = (requests: {path: string; body: Record<string, unknown>}[], path: string) =>
    requests.filter((each) => each.path === path).map((each) => each.body);

async function generate(page: Page, prompt: string): Promise<void> {
  await page.getByLabel('Text', {exact: true}).fill(prompt);
  await page.getByRole('button', {name: 'Generate', exact: false}).first().click();
}

const isDone = (page: Page) => page.getByRole('button', {name: 'Continue'}).waitFor();

test('text streams, each token coloured by its bits, with speed and usage', () => withPage(words, async ({page, mock}) => {
  await generate(page, 'The ferry');
  await page.locator('.drawn').first().waitFor();
  await isDone(page);
  const spans = await page.locator('.token-text [data-index]').count();
  assert.equal(spans, 257);
  const text = await drawnText(page);
  assert.ok(text.startsWith('The ferry'));
  assert.ok(await page.locator('.word[class*="heat-"]').count() > 200);
  await page.getByText(/tokens\/s · first after .* · 2 tokens read, 1 of them remembered · 256 tokens drawn/).waitFor();
  const [body] = bodies(mock.requests, '/v1/completions');
  assert.deepEqual({...body, logprobs: 0},
                   {model: 'island/words', prompt: 'The ferry', max_tokens: 256, seed: 1, logprobs: 0, stream: true, stream_options: {include_usage: true}});
}));

test('pointing at a token shows its probability and what else was likely, and another one goes on from there', () => withPage(words, async ({page, mock}) => {
  await generate(page, 'The ferry');
  await isDone(page);
  await page.locator('[data-index="5"]').hover();
  const token = page.getByRole('region', {name: 'Token'});
  await token.getByText('Probability').waitFor();
  assert.equal(await token.locator('.alternatives button').count(), 8);
  // With keys: the text, three tokens on, and the choice is spoken.
  await page.locator('.token-text').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.locator('[data-index="2"].on').waitFor();
  await page.locator('.alternatives button:not(:disabled)').first().click();
  await isDone(page);
  const [, second] = bodies(mock.requests, '/v1/completions');
  assert.match(String(second!['prompt']), /^The ferry \S+/);
  assert.equal(String(second!['prompt']).trim().split(' ').length, 4);
}));

test('stop ends the request and keeps the text; continue and regenerate go on from it', () => withPage(words, async ({page, mock}) => {
  mock.millisecondsPerToken = 10;
  await generate(page, 'The ferry');
  await eventually(async () => await page.locator('.drawn').count() > 5, 'some tokens');
  await page.keyboard.press('Escape');
  await isDone(page);
  await eventually(() => mock.aborted === 1, 'the server sees that the client went');
  const stopped = await drawnText(page);
  mock.millisecondsPerToken = 0;
  await page.keyboard.press('Control+Enter');
  await eventually(async () => (await page.locator('.drawn').count()) > 256, 'more tokens');
  await isDone(page);
  assert.ok((await drawnText(page)).startsWith(stopped));
  await page.getByRole('button', {name: 'Regenerate'}).click();
  await isDone(page);
  const all = bodies(mock.requests, '/v1/completions');
  assert.deepEqual(all.map((body) => body['seed']), [1, 1, 2]);
  assert.equal(all[2]!['prompt'], 'The ferry');
  await page.getByRole('button', {name: 'Undo'}).click();
  assert.ok((await drawnText(page)).startsWith(stopped));
}));

test('an edit keeps the tokens before it', () => withPage(words, async ({page}) => {
  await generate(page, 'The ferry');
  await isDone(page);
  await page.locator('[data-index="9"]').dblclick();
  const field = page.getByLabel('Text', {exact: true});
  const whole = await field.inputValue();
  const place = await field.evaluate((element: HTMLTextAreaElement) => element.selectionStart);
  await field.fill(`${whole.slice(0, place)} and so`);
  await page.getByRole('button', {name: 'Done'}).click();
  await page.locator('.token-text').waitFor();
  assert.equal(await page.locator('.drawn').count(), 9);
  assert.equal(await page.locator('.typed').last().innerText(), ' and so');
}));

test('samples stand side by side, and one is kept', () => withPage(words, async ({page}) => {
  await page.locator('#set-n').fill('3');
  await page.locator('#set-max_tokens').fill('20');
  await page.locator('#set-max_tokens').press('Tab');
  await generate(page, 'The ferry');
  await isDone(page);
  assert.equal(await page.locator('.samples section').count(), 3);
  const second = await page.locator('.samples .token-text').nth(1).innerText();
  await page.getByRole('button', {name: 'Keep this one'}).nth(1).click();
  assert.equal(await drawnText(page), `The ferry${second.startsWith(' ') ? '' : ' '}${second}`.replace(/ {2,}/g, ' '));
  assert.equal(await page.locator('.samples').count(), 0);
}));

test('characters of several bytes are whole', () => withPage('#/playground?model=quickstart', async ({page}) => {
  await page.locator('#set-max_tokens').fill('2000');
  await page.locator('#set-max_tokens').press('Tab');
  await generate(page, 'x');
  await isDone(page);
  const text = await drawnText(page);
  assert.match(text, / — café/);
  assert.doesNotMatch(text, /\uFFFD|bytes:/);
  const dash = page.locator('.drawn', {hasText: '—'}).first();
  await dash.hover();
  await page.getByText('3 tokens,').waitFor();
}));

test('a prompt that is read for long says how far', () => withPage(words, async ({page, mock}) => {
  mock.millisecondsPerToken = 20;
  await generate(page, 'word '.repeat(1600));
  await page.getByText(/Prompt: reading \d+ of \d+ tokens/).waitFor();
  await page.keyboard.press('Escape');
}));

test('the command for a shell asks the same', () => withPage(words, async ({page, address}) => {
  await page.getByLabel('Text', {exact: true}).fill("it's");
  await page.locator('#set-top_k').fill('40');
  await page.locator('#set-top_k').press('Tab');
  await page.getByRole('button', {name: 'Copy as curl'}).click();
  await page.getByText('Copied').waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `curl ${address}v1/completions -d '{"model":"island/words","prompt":"it'\\''s","max_tokens":256,"seed":1,"top_k":40}'`);
}));

test('errors are said in words, with what to do, and trying again works', () => withPage(words, async ({page, mock}) => {
  mock.failures.push({path: '/v1/completions', status: 429, message: 'all 256 places of the queue are taken', retryAfter: 3, times: 1});
  await generate(page, 'The ferry');
  await page.getByText('All 256 places of the queue are taken.').waitFor();
  await page.getByText('Try again in 3 s').waitFor();
  await page.getByRole('button', {name: 'Try again'}).click();
  await isDone(page);
  assert.equal(await page.getByRole('alert').count(), 0);
}, {allows: /429/}));

test('a stream that breaks keeps what came, and says so', () => withPage(words, async ({page, mock}) => {
  mock.breakStreamAfter = 30;
  await generate(page, 'The ferry');
  await page.getByText('The answer broke off.').waitFor();
  assert.ok(await page.locator('.drawn').count() > 10);
}, {allows: /ERR_|Failed to load/}));

test('a model that cannot be read says why, and asks for nothing', () => withPage('#/playground?model=exp/torn', async ({page}) => {
  await page.getByText('the checkpoint of step 4000 is damaged').waitFor();
  assert.ok(await page.getByRole('button', {name: 'Generate', exact: false}).first().isDisabled());
}));

test('the text, the settings and the model are there after a reload', () => withPage(words, async ({page}) => {
  await page.locator('#set-temperature').fill('0.5');
  await page.locator('#set-temperature').press('Tab');
  await generate(page, 'The ferry');
  await isDone(page);
  const text = await drawnText(page);
  await page.reload();
  await page.getByLabel('Text', {exact: true}).waitFor();
  assert.equal(await page.getByLabel('Text', {exact: true}).inputValue(), text);
  assert.equal(await page.locator('#set-temperature').inputValue(), '0.5');
  assert.equal(await page.locator('#model').inputValue(), 'island/words');
}));

test('images appear row by row, and the lower part of a dropped one is completed', () => withPage('#/playground?model=pictures', async ({page, mock}) => {
  mock.millisecondsPerToken = 3;
  await page.locator('#set-n').fill('2');
  await page.locator('#set-n').press('Tab');
  await page.getByRole('button', {name: 'Draw'}).click();
  await page.getByText(/row (1?\d|2\d) of 32/).first().waitFor();
  await page.getByText('3.46 bits per dim').first().waitFor();
  const pixel = await page.locator('canvas.pixels').nth(1).evaluate((canvas: HTMLCanvasElement) =>
    [...canvas.getContext('2d')!.getImageData(3, 31, 1, 1).data]);
  assert.deepEqual(pixel, [...pictureRow(1, 1, 31, 32, 32).slice(9, 12), 255]);

  const picture = pngOf(32, 32, (row) => pictureRow(77, 0, row, 32, 32));
  await page.locator('#picture').setInputFiles({name: 'a.png', mimeType: 'image/png', buffer: picture});
  await page.getByText('Keep 16 of 32 rows').waitFor();
  await page.locator('#rows').fill('10');
  await page.getByRole('button', {name: 'Complete'}).click();
  await page.getByText('Drawn in').waitFor();
  await eventually(() => bodies(mock.requests, '/v1/images/completions').length === 2, 'the second request');
  const body = bodies(mock.requests, '/v1/images/completions')[1]!;
  assert.equal(body['rows'], 10);
  assert.equal(body['image'], picture.toString('base64'));
}));

test('symbols of an encoder-decoder are text as well', () => withPage('#/playground?model=reverse', async ({page}) => {
  await page.locator('#set-max_tokens').fill('5');
  await page.locator('#set-max_tokens').press('Tab');
  await generate(page, '12 7 30');
  await isDone(page);
  assert.match(await drawnText(page), /^12 7 30( \d+){5}$/);
}));
