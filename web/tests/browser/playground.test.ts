import assert from 'node:assert/strict';
import test from 'node:test';

import type {Page} from 'playwright-core';

import {drawTokens, pictureRow} from '../mock/completions';
import {models, piecesOf, type MockModel} from '../mock/models';
import {pngOf} from '../mock/png';
import type {MockServer} from '../mock/server';
import {colourAt, enterNumber, eventually, eventuallyEqual, eventuallyMatch, listenTo, useBrowser, withPage, type Opened, type View} from './support';

useBrowser();

const words = '#/playground?model=island/words';
const bodies = (requests: {path: string; body: Record<string, unknown>}[], path: string) =>
    requests.filter((each) => each.path === path).map((each) => each.body);

// The playground of a model that is known. Before, it is one for texts without a model, and it renders its fields once more
// when the model comes: what was typed until then would be gone.
const withModel = (hash: string, use: (opened: Opened) => Promise<void>, view: View = {}) => withPage(hash, async (opened) => {
  await opened.page.locator('.actions .main:enabled').waitFor();
  await use(opened);
}, view);

// What the made-up server writes after a prompt.
function written(prompt: string, tokens: number, seed = 1, model: MockModel = models[0]!): string {
  const draws = drawTokens(model, prompt, seed);
  let text = '';
  for (let drawn = 0; drawn < tokens;) {
    const next = draws.next().value!;
    text += next.text;
    drawn += next.tokens.length;
  }
  return text;
}

async function generate(page: Page, prompt: string): Promise<void> {
  await page.getByLabel('Text', {exact: true}).fill(prompt);
  await page.getByRole('button', {name: 'Generate', exact: false}).first().click();
}

const isDone = (page: Page) => page.getByRole('button', {name: 'Continue'}).waitFor();

// Draws once more, where "Continue" stands already: the server waits until the page shows that it draws, so that isDone()
// is about this drawing and not about the one before.
async function drawAnew(page: Page, mock: MockServer, act: () => Promise<void>): Promise<void> {
  mock.holdStreamsAt = 0;
  await act();
  await page.getByRole('button', {name: 'Stop'}).waitFor();
  mock.letGo();
  await isDone(page);
}

// The whole text is there, and its beginning is on the screen. Lines beyond the screen, and new ones before their first
// frame, are no part of innerText (content-visibility).
async function showsText(page: Page, text: string, what: string): Promise<void> {
  const shown = page.locator('.token-text').first();
  await eventuallyEqual(() => shown.textContent(), text, what);
  const [line = ''] = text.split('\n', 1);
  await eventuallyEqual(async () => (await shown.innerText()).slice(0, line.length), line, `${what}, on the screen`);
}

test('text streams, each token coloured by its bits, with speed and usage', () => withModel(words, async ({page, mock}) => {
  // Some of it is there while the server still writes.
  mock.holdStreamsAt = 12;
  await generate(page, 'The ferry');
  await showsText(page, `The ferry${written('The ferry', 12)}`, 'the first tokens');
  await eventuallyEqual(() => page.locator('.drawn').count(), 12, 'the first tokens, each by itself');
  mock.letGo();
  await isDone(page);
  await showsText(page, `The ferry${written('The ferry', 256)}`, 'all tokens');
  await eventuallyEqual(() => page.locator('.token-text [data-index]').count(), 257, 'all tokens, each by itself');
  await eventually(async () => await page.locator('.word[class*="heat-"]').count() > 200, 'colours');
  await page.getByText(/tokens\/s · first after .* · 2 tokens read, 1 of them remembered · 256 tokens drawn/).waitFor();
  const [body] = bodies(mock.requests, '/v1/completions');
  assert.deepEqual({...body, logprobs: 0},
                   {model: 'island/words', prompt: 'The ferry', max_tokens: 256, seed: 1, logprobs: 0, stream: true, stream_options: {include_usage: true}});
}));

test('pointing at a token shows its probability and what else was likely, and another one goes on from there', () => withModel(words, async ({page, mock}) => {
  await generate(page, 'The ferry');
  await isDone(page);
  await page.locator('[data-index="5"]').hover();
  const token = page.getByRole('region', {name: 'Token'});
  await token.getByText('Probability').waitFor();
  await eventuallyEqual(() => token.locator('.alternatives button').count(), 8, 'what else was likely');
  // With keys: the text, three tokens on, and the choice is spoken.
  await page.locator('.token-text').focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowRight');
  await page.locator('[data-index="2"].on').waitFor();
  await drawAnew(page, mock, () => page.locator('.alternatives button:not(:disabled)').first().click());
  const [, second] = bodies(mock.requests, '/v1/completions');
  assert.match(String(second!['prompt']), /^The ferry \S+/);
  assert.equal(String(second!['prompt']).trim().split(' ').length, 4);
}));

test('stop ends the request and keeps the text; continue and regenerate go on from it', () => withModel(words, async ({page, mock}) => {
  mock.holdStreamsAt = 8;
  await generate(page, 'The ferry');
  await eventuallyEqual(() => page.locator('.drawn').count(), 8, 'some tokens');
  await page.keyboard.press('Escape');
  await isDone(page);
  await eventuallyEqual(() => mock.aborted, 1, 'the server sees that the client went');
  const stopped = `The ferry${written('The ferry', 8)}`;
  await showsText(page, stopped, 'what was drawn until then');
  await drawAnew(page, mock, () => page.keyboard.press('Control+Enter'));
  const continued = stopped + written(stopped, 256);
  await showsText(page, continued, 'more tokens');
  await drawAnew(page, mock, () => page.getByRole('button', {name: 'Regenerate'}).click());
  const all = bodies(mock.requests, '/v1/completions');
  assert.deepEqual(all.map((body) => body['seed']), [1, 1, 2]);
  assert.equal(all[2]!['prompt'], 'The ferry');
  await showsText(page, `The ferry${written('The ferry', 256, 2)}`, 'another text');
  await page.getByRole('button', {name: 'Undo'}).click();
  await showsText(page, continued, 'the text before');
}));

test('undo takes away what is being drawn', () => withModel(words, async ({page, mock}) => {
  mock.holdStreamsAt = 8;
  await generate(page, 'The ferry');
  await eventuallyEqual(() => page.locator('.drawn').count(), 8, 'some tokens');
  await page.getByRole('button', {name: 'Undo'}).click();
  await eventuallyEqual(() => page.getByLabel('Text', {exact: true}).inputValue(), 'The ferry', 'what was typed');
  await eventuallyEqual(() => mock.aborted, 1, 'the server sees that nobody waits any more');
  mock.letGo();
  await page.keyboard.press('Control+Enter');
  await isDone(page);
  await showsText(page, `The ferry${written('The ferry', 256)}`, 'the text drawn anew');
}));

test('an edit keeps the tokens before it', () => withModel(words, async ({page}) => {
  await generate(page, 'The ferry');
  await isDone(page);
  await page.locator('[data-index="9"]').dblclick();
  const field = page.getByLabel('Text', {exact: true});
  const before = `The ferry${written('The ferry', 9)}`;
  await eventuallyEqual(() => field.inputValue(), `The ferry${written('The ferry', 256)}`, 'the text in a field');
  await eventuallyEqual(() => field.evaluate((element: HTMLTextAreaElement) => element.selectionStart), before.length, 'the place to edit');
  await field.fill(`${before} and so`);
  await page.getByRole('button', {name: 'Done'}).click();
  await showsText(page, `${before} and so`, 'the edited text');
  await eventuallyEqual(() => page.locator('.drawn').count(), 9, 'the tokens before it');
  await eventuallyEqual(() => page.locator('.typed').last().innerText(), ' and so', 'what was typed');
}));

test('samples stand side by side, and one is kept', () => withModel(words, async ({page}) => {
  await enterNumber(page, '#set-n', 3);
  await enterNumber(page, '#set-max_tokens', 20);
  await generate(page, 'The ferry');
  await isDone(page);
  await eventuallyEqual(() => page.locator('.samples section').count(), 3, 'three samples');
  const second = written('The ferry', 20, 1001);
  await eventuallyEqual(() => page.locator('.samples .token-text').nth(1).textContent(), second, 'the second one');
  await page.getByRole('button', {name: 'Keep this one'}).nth(1).click();
  await showsText(page, `The ferry${second}`, 'the text with it');
  await eventuallyEqual(() => page.locator('.samples').count(), 0, 'no samples any more');
}));

test('characters of several bytes are whole', () => withModel('#/playground?model=quickstart', async ({page}) => {
  await enterNumber(page, '#set-max_tokens', 2000);
  await generate(page, 'x');
  await isDone(page);
  const text = `x${written('x', 2000, 1, models[1])}`;
  assert.match(text, / — café/);
  assert.doesNotMatch(text, /\uFFFD|bytes:/);
  await showsText(page, text, 'all characters');
  const dash = page.locator('.drawn', {hasText: '—'}).first();
  await dash.hover();
  await page.getByText('3 tokens,').waitFor();
}));

test('a prompt that is read for long says how far', () => withModel(words, async ({page, mock}) => {
  mock.holdStreamsAt = 0;
  const prompt = 'word '.repeat(1600);
  await generate(page, prompt);
  await page.getByText(`Prompt: reading 512 of ${piecesOf(models[0]!, prompt).length} tokens`, {exact: true}).waitFor();
  await page.keyboard.press('Escape');
  await eventuallyEqual(() => mock.aborted, 1, 'the server sees that nobody waits any more');
}));

test('the command for a shell asks the same', () => withModel(words, async ({page, address}) => {
  await page.getByLabel('Text', {exact: true}).fill("it's");
  await enterNumber(page, '#set-top_k', 40);
  const button = page.locator('.actions button').last();
  await eventuallyEqual(() => button.innerText(), 'Copy as curl', 'its name');
  const said = await listenTo(button);
  await button.click();
  // It says so for a moment only.
  await eventually(async () => (await said()).includes('Copied'), 'that it was copied');
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `curl ${address}v1/completions -d '{"model":"island/words","prompt":"it'\\''s","max_tokens":256,"seed":1,"top_k":40}'`);
}));

test('errors are said in words, with what to do, and trying again works', () => withModel(words, async ({page, mock}) => {
  mock.failures.push({path: '/v1/completions', status: 429, message: 'all 256 places of the queue are taken', retryAfter: 3, times: 1});
  await generate(page, 'The ferry');
  await page.getByText('All 256 places of the queue are taken.').waitFor();
  await page.getByText('Try again in 3 s').waitFor();
  await page.getByRole('button', {name: 'Try again'}).click();
  await isDone(page);
  await eventuallyEqual(() => page.getByRole('alert').count(), 0, 'no error any more');
}, {allows: /429/}));

test('a stream that breaks keeps what came, and says so', () => withModel(words, async ({page, mock}) => {
  mock.breakStreamAfter = 30;
  // It breaks when the page has taken what came: what a browser has not handed over by then is lost with the connection.
  mock.holdStreamsAt = 31;
  await generate(page, 'The ferry');
  await eventuallyEqual(() => page.locator('.drawn').count(), 31, 'what comes');
  mock.letGo();
  await page.getByText('The answer broke off.').waitFor();
  await showsText(page, `The ferry${written('The ferry', 31)}`, 'what came');
  await eventuallyEqual(() => page.locator('.drawn').count(), 31, 'what came, each token by itself');
}, {allows: /ERR_|Failed to load/}));

test('a model that cannot be read says why, and asks for nothing', () => withPage('#/playground?model=exp/torn', async ({page}) => {
  await page.getByText('the checkpoint of step 4000 is damaged').waitFor();
  await eventually(() => page.getByRole('button', {name: 'Generate', exact: false}).first().isDisabled(), 'nothing to press');
}));

test('the text, the settings and the model are there after a reload', () => withModel(words, async ({page}) => {
  await enterNumber(page, '#set-temperature', 0.5);
  await generate(page, 'The ferry');
  await isDone(page);
  await page.reload();
  const text = `The ferry${written('The ferry', 256)}`;
  await eventuallyEqual(() => page.getByLabel('Text', {exact: true}).inputValue(), text, 'the text');
  await eventuallyEqual(() => page.locator('#set-temperature').inputValue(), '0.5', 'the setting');
  await eventuallyEqual(() => page.locator('#model').inputValue(), 'island/words', 'the model');
}));

test('images appear row by row, and the lower part of a dropped one is completed', () => withModel('#/playground?model=pictures', async ({page, mock}) => {
  await enterNumber(page, '#set-n', 2);
  mock.holdStreamsAt = 10;
  await page.getByRole('button', {name: 'Draw'}).click();
  await eventuallyEqual(() => page.getByText('row 10 of 32').count(), 2, 'the first rows of both');
  const canvas = page.locator('canvas.pixels').nth(1);
  const expected = (row: number) => [...pictureRow(1, 1, row, 32, 32).slice(9, 12), 255];
  await eventuallyEqual(() => colourAt(canvas, 3, 9), expected(9), 'the last of these rows');
  await eventuallyEqual(() => colourAt(canvas, 3, 31), [0, 0, 0, 0], 'nothing in the last row yet');
  mock.letGo();
  await page.getByText('3.46 bits per dim').first().waitFor();
  await eventuallyEqual(() => colourAt(canvas, 3, 31), expected(31), 'the last row');

  const picture = pngOf(32, 32, (row) => pictureRow(77, 0, row, 32, 32));
  await page.locator('#picture').setInputFiles({name: 'a.png', mimeType: 'image/png', buffer: picture});
  await page.getByText('Keep 16 of 32 rows').waitFor();
  await page.locator('#rows').fill('10');
  await page.getByText('Keep 10 of 32 rows').waitFor();
  mock.holdStreamsAt = 0;
  await page.getByRole('button', {name: 'Complete'}).click();
  await page.getByRole('button', {name: 'Stop'}).waitFor();
  await page.getByText('row 10 of 32').first().waitFor();
  mock.letGo();
  await page.getByText('Drawn in').waitFor();
  const all = bodies(mock.requests, '/v1/images/completions');
  assert.equal(all.length, 2);
  assert.equal(all[1]!['rows'], 10);
  assert.equal(all[1]!['image'], picture.toString('base64'));
}));

test('symbols of an encoder-decoder are text as well', () => withModel('#/playground?model=reverse', async ({page}) => {
  await enterNumber(page, '#set-max_tokens', 5);
  await generate(page, '12 7 30');
  await isDone(page);
  await eventuallyMatch(() => page.locator('.token-text').first().innerText(), /^12 7 30( \d+){5}$/, 'symbols');
}));
