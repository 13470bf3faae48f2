// A browser for the tests of one file, and a page in it that must not complain.
import assert from 'node:assert/strict';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {after, before} from 'node:test';

import {chromium, type BrowserContext, type Page} from 'playwright-core';

import {MockServer} from '../mock/server';

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
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: flags, acceptDownloads: true});
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  });
  after(async () => {
    await context?.close();
    rmSync(folder, {recursive: true, force: true, maxRetries: 5});
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
  // Machines that test are busy.
  page.setDefaultTimeout(90_000);
  await page.setViewportSize({width: view.width ?? 1280, height: view.height ?? 800});
  await page.emulateMedia({colorScheme: view.isDark ? 'dark' : 'light', reducedMotion: 'reduce'});
  const {text} = view;
  if (text !== undefined) await page.addInitScript((own) => localStorage.setItem('routing.text', JSON.stringify(own)), text);
  if (view.init) await page.addInitScript(view.init);
  await page.goto(address + hash);
  return {page, complaints};
}

// Opens a page over made-up answers, lets `use` look at it, and closes both.
export async function withPage(hash: string, use: (opened: Opened) => Promise<void>, view: View = {}): Promise<void> {
  const mock = new MockServer(path.resolve('dist'));
  mock.millisecondsPerToken = 1;
  view.prepare?.(mock);
  const address = await mock.start();
  const {page, complaints} = await openPage(address, hash, view);
  try {
    await use({page, mock, address, complaints});
    assert.deepEqual(complaints, []);
  } finally {
    await page.evaluate(() => localStorage.clear()).catch(() => undefined);
    await page.close();
    await mock.stop();
  }
}

export async function eventually(check: () => Promise<boolean> | boolean, what: string): Promise<void> {
  const end = Date.now() + 90_000;
  while (!await check()) {
    if (Date.now() > end) assert.fail(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}
