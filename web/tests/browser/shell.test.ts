// What holds for every view.
import assert from 'node:assert/strict';
import {readdirSync, statSync} from 'node:fs';
import test from 'node:test';

import {passage} from '../mock/made_up_text';
import {eventually, eventuallyEqual, openPage, useBrowser, withPage} from './support';

useBrowser();

// Each with what is there when everything is.
const places = [
  {name: 'playground', hash: '#/playground?model=island/words', ready: ['.playground', '.actions .main:enabled']},
  {name: 'images', hash: '#/playground?model=pictures', ready: ['.drop', '.actions .main:enabled']},
  {name: 'attention', hash: '#/attention?model=island/words&at=90', ready: ['.reads', '.text-line']},
  {name: 'clusters', hash: '#/attention?model=island/words&at=90&by=clusters', ready: ['.cluster-list', '.text-line']},
  {name: 'training', hash: '#/training?runs=quickstart,exp/collapsed', ready: ['.live', '.readout li', '.heat-plot', '.sample-text']},
  {name: 'patterns', hash: '#/patterns', ready: ['.gallery', '.set']},
];

test('all that is sent is small', () => {
  const files = readdirSync('dist').filter((name) => name.endsWith('.gz'));
  const bytes = files.reduce((sum, name) => sum + statSync(`dist/${name}`).size, 0);
  assert.ok(files.includes('index.html.gz') && files.includes('page.js.gz') && files.includes('page.css.gz'));
  assert.ok(bytes < 300_000, `${bytes} bytes`);
  console.log(`# ${bytes} bytes compressed`);
});

test('the page is painted without waiting for answers', () => withPage('', async ({page}) => {
  await page.locator('.brand').waitFor();
  await page.getByRole('link', {name: 'Patterns'}).waitFor();
  const paint = () => page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? -1);
  await eventually(async () => await paint() > 0, 'the first paint');
  console.log(`# first paint after ${(await paint()).toFixed(0)} ms`);
}, {prepare: (mock) => (mock.holdAnswersOf = '/')}));

// Text on what lies behind it, and names of what can be used.
function faults(): string[] {
  const found: string[] = [];
  const channels = (text: string) => (text.match(/[\d.]+/g) ?? []).map(Number);
  const linear = (value: number) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const toRgb = (text: string): number[] => {
    const [a = 0, b = 0, c = 0, alpha = 1] = channels(text);
    return text.startsWith('color(') ? [a * 255, b * 255, c * 255, alpha] : [a, b, c, alpha];
  };
  const luminance = ([r = 0, g = 0, b = 0]: number[]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (element: Element): number[] => {
    for (let each: Element | null = element; each; each = each.parentElement) {
      const colour = toRgb(getComputedStyle(each).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement!;
    if (!node.textContent?.trim() || element.closest('.hidden-text, .end, noscript, script, option, :disabled') || !element.checkVisibility()) continue;
    const [one, other] = [luminance(toRgb(getComputedStyle(element).color)), luminance(ground(element))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) found.push(`"${node.textContent.trim().slice(0, 30)}" has a contrast of ${contrast.toFixed(2)}`);
  }
  for (const element of document.querySelectorAll<HTMLElement>('button, a, input, select, textarea, summary, [tabindex="0"]')) {
    const own = element.getAttribute('aria-label') || element.textContent?.trim() || (element as HTMLInputElement).labels?.[0]?.textContent ||
        element.getAttribute('placeholder');
    if (!own && element.checkVisibility()) found.push(`no name: ${element.outerHTML.slice(0, 90)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`id ${id} twice`);
  for (const element of document.querySelectorAll('[aria-describedby]')) {
    for (const id of element.getAttribute('aria-describedby')!.split(' ')) if (!document.getElementById(id)) found.push(`no ${id}`);
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) {
    found.push(`wider than the screen: ${document.documentElement.scrollWidth} of ${document.documentElement.clientWidth}`);
  }
  return found;
}

for (const [width, height] of [[360, 800], [1440, 900], [3840, 2160]] as const) {
  for (const isDark of [false, true]) {
    test(`${width} x ${height}, ${isDark ? 'dark' : 'light'}: text can be read, things have names, nothing sticks out`, async () => {
      for (const place of places) {
        await withPage(place.hash, async ({page}) => {
          for (const part of place.ready) await page.locator(part).first().waitFor();
          await eventuallyEqual(() => page.evaluate(faults), [], `${place.name} without faults`);
        }, {width, height, isDark, text: passage});
      }
    });
  }
}

test('the Tab key reaches everything that can be used, with a visible focus', () => withPage('#/attention?model=island/words&at=90', async ({page}) => {
  await page.locator('.reads').waitFor();
  const reached = new Set<string>();
  for (let presses = 0; presses < 40; ++presses) {
    const last = await page.evaluateHandle(() => document.activeElement);
    await page.keyboard.press('Tab');
    await eventually(() => page.evaluate((old) => document.activeElement !== old, last), 'the focus goes on');
    const {name, outline} = await page.evaluate(() => {
      const element = document.activeElement!;
      return {name: element.getAttribute('aria-label') ?? element.textContent ?? '', outline: getComputedStyle(element).outlineStyle};
    });
    if (await page.evaluate(() => document.activeElement === document.body)) break;
    reached.add(name.trim().slice(0, 24));
    assert.notEqual(outline, 'none', `no focus is seen on ${name}`);
  }
  for (const name of ['Skip to the content', 'Playground', 'Patterns', 'Change the text', 'What it reads']) {
    assert.ok(reached.has(name), `${name} is not among ${[...reached].join(' | ')}`);
  }
}, {text: passage}));

test('the skip link leads to the content', () => withPage('', async ({page}) => {
  await page.locator('.playground').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await eventuallyEqual(() => page.evaluate(() => document.activeElement!.id), 'main', 'the focus on the content');
}));

test('the theme follows the system until one is chosen, and stays chosen', () => withPage('', async ({page}) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const isChosen = (name: string) => page.getByRole('radio', {name, checked: true}).waitFor();
  const [light, dark] = ['rgb(252, 252, 250)', 'rgb(19, 21, 23)'];
  await isChosen('Auto');
  await eventuallyEqual(paper, dark, "the system's theme");
  await page.getByRole('radio', {name: 'Light'}).click();
  await eventuallyEqual(paper, light, 'the chosen theme');
  await isChosen('Light');
  await page.reload();
  await isChosen('Light');
  await eventuallyEqual(paper, light, 'the chosen theme after a reload');
  await page.getByRole('radio', {name: 'Auto'}).click();
  await eventuallyEqual(paper, dark, "the system's theme again");
}, {isDark: true}));

test('Back and Forward go through the views, and each view remembers its place', () => withPage('#/patterns?pattern=strided', async ({page}) => {
  await page.getByRole('heading', {name: 'strided'}).waitFor();
  await page.getByRole('link', {name: 'Training'}).click();
  await page.locator('.run-scroller').waitFor();
  await page.getByRole('link', {name: 'Patterns'}).click();
  await page.getByRole('heading', {name: 'strided'}).waitFor();
  await page.goBack();
  await page.locator('.run-scroller').waitFor();
}));

test('without storage everything works, and nothing is kept', () => withPage('#/playground?model=island/words', async ({page}) => {
  await page.locator('.actions .main:enabled').waitFor();
  await page.getByLabel('Text', {exact: true}).fill('The ferry');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', {name: 'Continue'}).waitFor();
  await page.getByRole('radio', {name: 'Dark'}).click();
  await page.getByRole('radio', {name: 'Dark', checked: true}).waitFor();
}, {init: () => {
  for (const name of ['localStorage', 'sessionStorage']) {
    Object.defineProperty(window, name, {get: () => { throw new DOMException('forbidden', 'SecurityError'); }});
  }
}}));

test('a server that wants a token is given one, once', () => withPage('#/training', async ({page, mock}) => {
  const dialog = page.getByRole('dialog', {name: 'This server wants a token'});
  await dialog.waitFor();
  await page.getByLabel('It is the content of').fill('secret');
  await page.keyboard.press('Enter');
  await page.locator('.run-scroller').waitFor();
  await eventuallyEqual(() => dialog.count(), 0, 'no question any more');
  // What was asked without the token is refused only now: that is no reason to ask for it again.
  const tokens = () => mock.requests.filter((request) => request.path === '/api/runs').map((request) => request.token);
  await eventuallyEqual(tokens, [undefined], 'one question without a token');
  mock.letGo();
  await eventuallyEqual(tokens, [undefined, 'secret'], 'the same once more, with the token');
  await page.getByText('live', {exact: true}).waitFor();
  assert.equal(await dialog.count(), 0);
  const before = mock.requests.length;
  await page.reload();
  await page.locator('.run-scroller').waitFor();
  await page.getByText('live', {exact: true}).waitFor();
  const asked = mock.requests.slice(before);
  assert.ok(asked.length > 0);
  assert.ok(asked.every((request) => request.token === 'secret'), JSON.stringify(asked));
  assert.equal(await dialog.count(), 0);
}, {prepare: (mock) => Object.assign(mock, {token: 'secret', holdAnswersOf: '/api/runs'}), allows: /401/}));

test('a server that is not there is said to be not there, and found when it comes back', () => withPage('', async ({page, mock, address}) => {
  // The models are known: they are asked for once.
  await page.locator('.actions .main:enabled').waitFor();
  mock.failures.push({path: '/', status: 0, drop: true});
  await page.getByLabel('Text', {exact: true}).fill('x');
  await page.getByRole('button', {name: 'Generate'}).first().click();
  await page.getByText('The server does not answer.').waitFor();
  await page.getByText('Is routing serve still running?').waitFor();
  mock.failures = [];
  await page.getByRole('button', {name: 'Try again'}).click();
  await page.getByRole('button', {name: 'Continue'}).waitFor();
  const second = await openPage(address, '#/patterns');
  await second.page.locator('.set').waitFor();
  await second.page.close();
}, {allows: /ERR_|Failed to load/}));

test('a folder without models says what to do', () => withPage('', async ({page}) => {
  await page.getByText('There is no model in this folder yet').waitFor();
  await page.getByRole('link', {name: 'Training'}).first().waitFor();
}, {prepare: (mock) => (mock.models = [])}));
