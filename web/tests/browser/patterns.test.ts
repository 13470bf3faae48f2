import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import type {Page} from 'playwright-core';

import {setText} from '../../src/views/patterns/pattern_facts';
import {patternList, patternRows} from '../mock/patterns';
import {eventually, eventuallyEqual, eventuallyMatch, hashOf, isDrawn, useBrowser, withPage} from './support';

useBrowser();

const rowsOf = (pattern: string, n: number, causal = true, more = {}) => patternRows({pattern, n, causal, ...more}).rows;
const set = (page: Page) => page.locator('.set').innerText();
const textOf = (keys: number[]) => setText([...new Set(keys)].sort((a, b) => a - b));

test('all patterns are there to choose from, each with its picture', () => withPage('#/patterns', async ({page, mock}) => {
  await eventuallyEqual(() => page.locator('.gallery button').allInnerTexts(), patternList.map((each) => each.name), 'all patterns');
  await eventuallyEqual(() => mock.requests.filter((each) => each.body['n'] === 32).length, patternList.length, 'thumbnails');
  await page.getByRole('radio', {name: 'strided'}).click();
  await page.getByRole('heading', {name: 'strided'}).waitFor();
  await eventuallyMatch(() => hashOf(page), /pattern=strided/, 'the address');
}));

test('the row under the pointer is listed as a set', () => withPage('#/patterns?pattern=local&n=40&window=5', async ({page}) => {
  const canvas = page.locator('.matrix canvas');
  await eventually(() => isDrawn(canvas), 'the matrix');
  const box = (await canvas.boundingBox())!;
  const margin = Math.round(16 * 1.6);
  const cell = Math.floor((Math.min(box.width, box.height) - margin - 2) / 40);
  for (const row of [0, 17, 39]) {
    await canvas.hover({position: {x: margin + cell * 3.5, y: margin + cell * (row + 0.5)}});
    await eventuallyEqual(() => set(page), textOf(rowsOf('local', 40, true, {window: 5})[row]!.keys), `row ${row}`);
    await page.getByText(`Output ${row} reads`).waitFor();
  }
}));

test('keys choose rows and columns, and the address keeps the row', () => withPage('#/patterns?pattern=routing,%20nearest&row=30', async ({page}) => {
  const rows = rowsOf('routing, nearest', 64);
  await eventuallyEqual(() => set(page), textOf(rows[30]!.keys), 'row 30');
  await page.locator('.matrix canvas').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await eventuallyEqual(() => set(page), textOf(rows[32]!.keys), 'row 32');
  await page.keyboard.press('ArrowLeft');
  await page.getByText(/Input 31 is (not )?read/).waitFor();
  await page.reload();
  await page.getByText('Output 32 reads').waitFor();
}));

test('numbers and directions change the pattern and what it costs', () => withPage('#/patterns?pattern=local&n=40&window=5', async ({page}) => {
  const pairs = (causal: boolean, window: number) =>
    String(rowsOf('local', 40, causal, {window}).reduce((sum, row) => sum + new Set(row.keys).size, 0));
  await page.getByText(`${pairs(true, 5)} of 820`).waitFor();
  await page.getByRole('radio', {name: 'Bidirectional'}).click();
  await page.getByText(`${pairs(false, 5)} of 1,600`).waitFor();
  const field = page.locator('#field-window');
  await field.fill('12');
  // Half typed, it outlasts what else is rendered.
  await page.locator('.matrix canvas').hover({position: {x: 100, y: 100}});
  await page.getByText(/Input \d+ is (not )?read/).waitFor();
  await field.press('Tab');
  await page.getByText(`${pairs(false, 12)} of 1,600`).waitFor();
  await field.fill('99999');
  await field.press('Tab');
  await eventuallyEqual(() => field.inputValue(), '256', 'the largest window');
  await eventuallyMatch(() => hashOf(page), /direction=both&window=256|window=256&direction=both/, 'the address');
}));

test('the pattern is saved as a list of pairs and as a picture', () => withPage('#/patterns?pattern=fixed&n=16', async ({page}) => {
  await page.locator('.set').waitFor();
  const save = async (kind: string) => {
    await page.getByLabel('Save the pattern').click();
    const [file] = await Promise.all([page.waitForEvent('download'), page.locator('details[open] button', {hasText: kind}).click()]);
    return readFileSync((await file.path())!, 'utf8');
  };
  const csv = (await save('CSV')).trim().split('\r\n');
  const pairs = rowsOf('fixed', 16).flatMap((row, output) => row.keys.map((key) => `${output},${key},0`));
  assert.deepEqual(csv, ['output,input,groups', ...pairs]);
  const svg = await save('SVG');
  assert.ok(svg.includes('<title>fixed</title>'));
}));

test('an error of the server is said in words', () => withPage('#/patterns?pattern=local&n=20', async ({page}) => {
  await page.getByText('Window is 300, but may be 1 to 256.').waitFor();
}, {allows: /400/, prepare: (mock) => mock.failures.push({path: '/api/patterns', status: 400, message: 'window is 300, but may be 1 to 256'})}));
