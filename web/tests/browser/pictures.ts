// npm run screenshots [ADDRESS]: pictures of every view, in both themes and three sizes, in web/build/pictures; over made-up
// answers, or over a server that runs.
import {mkdirSync} from 'node:fs';
import path from 'node:path';

import {chromium, type Page} from 'playwright-core';

import {passage} from '../mock/made_up_text';
import {MockServer} from '../mock/server';

const sizes = [{name: '360', width: 360, height: 800}, {name: '1440', width: 1440, height: 900}, {name: '4k', width: 3840, height: 2160}];
const out = path.resolve('build/pictures');

async function draw(page: Page, prompt: string): Promise<void> {
  await page.getByLabel('Text', {exact: true}).fill(prompt);
  await page.getByRole('button', {name: 'Generate'}).first().click();
  await page.getByRole('button', {name: 'Continue'}).waitFor();
  await page.locator('.drawn').nth(40).click();
}

const views: {name: string; hash: string; ready: string; act?: (page: Page) => Promise<void>}[] = [
  {name: 'playground', hash: '#/playground', ready: '.prompt', act: (page) => draw(page, 'A word is ')},
  {name: 'attention', hash: '#/attention?at=300', ready: '.reads'},
  {name: 'clusters', hash: '#/attention?at=300&by=clusters', ready: '.cluster-list'},
  {name: 'training', hash: '#/training', ready: '.heat-plot'},
  {name: 'patterns', hash: '#/patterns', ready: '.set'},
];

mkdirSync(out, {recursive: true});
const mock = new MockServer(path.resolve('dist'));
const address = process.argv[2] ?? await mock.start();
const browser = await chromium.launch({executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
                                       args: ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run']});
for (const {name, hash, ready, act} of views) {
  for (const size of sizes) {
    for (const theme of ['light', 'dark'] as const) {
      const page = await browser.newPage({viewport: size, colorScheme: theme, reducedMotion: 'reduce'});
      await page.addInitScript((text) => localStorage.setItem('routing.text', JSON.stringify(text)), passage);
      await page.goto(address + hash);
      await page.locator(ready).first().waitFor();
      await act?.(page);
      await page.waitForTimeout(800);
      await page.screenshot({path: path.join(out, `${name}-${size.name}-${theme}.png`)});
      await page.close();
    }
  }
}
await browser.close();
if (!process.argv[2]) await mock.stop();
console.log(`pictures: ${out}`);
