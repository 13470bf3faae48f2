// A browser for the tests of one file, and a page in it that must not complain.
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before} from 'node:test';
import {isDeepStrictEqual} from 'node:util';

import {chromium, type BrowserContext, type Locator, type Page} from 'playwright-core';

import {MockServer} from '../mock/server';
import {patience, slowDown, slowDownAnswers} from './slowness';

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
               '--disable-component-update', '--disable-sync'];

export interface Opened { page: Page; mock: MockServer; address: string; complaints: string[] }
export interface View { width?: number; height?: number; isDark?: boolean; prepare?: (mock: MockServer) => void; text?: string;
                        init?: () => void; allows?: RegExp }

let context: BrowserContext | undefined;
let folder = '';

// One browser for each file, with a folder of its own that nobody used before.
export function useBrowser(): void {
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'routing-page-'));
    context = await chromium.launchPersistentContext(folder, {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: flags, acceptDownloads: true, timeout: patience});
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  });
  after(async () => {
    await context?.close();
    rmSync(folder, {recursive: true, force: true, maxRetries: 10, retryDelay: 200});
  });
}

export function browserContext(): BrowserContext {
  assert.ok(context, 'useBrowser() first');
  return context;
}

// What the console says, what breaks the policy, and requests to anywhere else are complaints; `allows` are those that a
// test provokes.
export async function openPage(address: string, hash: string, view: View = {}): Promise<{page: Page; complaints: string[]}> {
  const page = await browserContext().newPage();
  const complaints: string[] = [];
  const complain = (text: string) => {
    if (!view.allows?.test(text)) complaints.push(text);
  };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complain(message.text());
  });
  page.on('pageerror', (error) => complain(String(error)));
  page.on('request', (request) => {
    if (!request.url().startsWith(address) && !/^(blob|data):/.test(request.url())) complain(`request to ${request.url()}`);
  });
  page.setDefaultTimeout(patience);
  await page.setViewportSize({width: view.width ?? 1280, height: view.height ?? 800});
  await page.emulateMedia({colorScheme: view.isDark ? 'dark' : 'light', reducedMotion: 'reduce'});
  const {text} = view;
  if (text !== undefined) await page.addInitScript((own) => localStorage.setItem('routing.text', JSON.stringify(own)), text);
  if (view.init) await page.addInitScript(view.init);
  await slowDown(page);
  await page.goto(address + hash);
  return {page, complaints};
}

// Opens a page over made-up answers, lets `use` look at it, and closes both.
export async function withPage(hash: string, use: (opened: Opened) => Promise<void>, view: View = {}): Promise<void> {
  const mock = new MockServer(path.resolve('dist'));
  mock.millisecondsPerToken = 1;
  slowDownAnswers(mock);
  view.prepare?.(mock);
  const address = await mock.start();
  let page: Page | undefined;
  // A server that went on after a failure would keep the whole run from ending.
  try {
    const opened = await openPage(address, hash, view);
    page = opened.page;
    await use({page, mock, address, complaints: opened.complaints});
    assert.deepEqual(opened.complaints, []);
  } finally {
    await page?.evaluate(() => localStorage.clear()).catch(() => undefined);
    await page?.close();
    await mock.stop();
  }
}

// The page shows what an action changed when it has rendered it, and that takes as long as the machine needs: a test never
// looks once, but until it sees what it expects, or has seen something else for too long.
async function lastLook<T>(look: () => Promise<T> | T, isExpected: (seen: T) => boolean): Promise<T> {
  const end = Date.now() + patience;
  for (;;) {
    const seen = await look();
    if (isExpected(seen) || Date.now() > end) return seen;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

export async function eventually(check: () => Promise<boolean> | boolean, what: string): Promise<void> {
  if (!await lastLook(check, (holds) => holds)) assert.fail(`never: ${what}`);
}

export async function eventuallyEqual<T>(look: () => Promise<T> | T, expected: T, what: string): Promise<void> {
  const actual = await lastLook(look, (seen) => isDeepStrictEqual(seen, expected));
  if (isDeepStrictEqual(actual, expected)) return;
  const difference = new assert.AssertionError({actual, expected, operator: 'deepStrictEqual'});
  difference.message = `never: ${what}\n${difference.message}`;
  throw difference;
}

export async function eventuallyMatch(look: () => Promise<string> | string, expected: RegExp, what: string): Promise<void> {
  const actual = await lastLook(look, (seen) => expected.test(seen));
  assert.ok(expected.test(actual), `never: ${what}\n${JSON.stringify(actual)} does not match ${expected}`);
}

export const hashOf = (page: Page): Promise<string> => page.evaluate(() => location.hash);

// A colour of a canvas, and whether anything is drawn on it. Both look at a copy: to read a canvas again and again is slow,
// and the browser complains.
export function colourAt(canvas: Locator, x: number, y: number): Promise<number[]> {
  return canvas.evaluate((element: HTMLCanvasElement, place) => {
    const context = new OffscreenCanvas(1, 1).getContext('2d')!;
    context.drawImage(element, place.x, place.y, 1, 1, 0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  }, {x, y});
}

export function isDrawn(canvas: Locator): Promise<boolean> {
  return canvas.evaluate((element: HTMLCanvasElement) => {
    const {width, height} = element;
    const context = new OffscreenCanvas(width, height).getContext('2d')!;
    context.drawImage(element, 0, 0);
    return context.getImageData(0, 0, width, height).data.some((value) => value > 0);
  });
}

// Everything that an element says from now on, for words that stand there only for a moment.
export async function listenTo(element: Locator): Promise<() => Promise<string[]>> {
  const heard = await element.evaluateHandle((node) => {
    const texts: string[] = [];
    new MutationObserver(() => texts.push(node.textContent ?? '')).observe(node, {childList: true, characterData: true, subtree: true});
    return texts;
  });
  return () => heard.jsonValue();
}

// Types a number into a field of the page, as its reader does: it counts when the field is left.
export async function enterNumber(page: Page, field: string, value: number): Promise<void> {
  await page.locator(field).fill(String(value));
  await page.locator(field).press('Tab');
  await eventuallyEqual(() => page.locator(field).inputValue(), String(value), `${value} in ${field}`);
}
