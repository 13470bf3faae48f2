// The page as the program serves it, over a model that it trained: ROUTING says which program.
import assert from 'node:assert/strict';
import {execFileSync, spawn, type ChildProcess} from 'node:child_process';
import {mkdirSync, mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import path from 'node:path';
import test, {after, before} from 'node:test';

import type {AttentionAnswer} from '../../src/api/types';
import {setText} from '../../src/views/patterns/pattern_facts';
import {longText, passage} from '../mock/made_up_text';
import {enterNumber, eventually, eventuallyEqual, openPage, useBrowser} from './support';

const program = process.env['ROUTING'] ?? '';
const skip = program === '' ? 'ROUTING names no program' : false;
let folder = '';
let address = '';
const children: ChildProcess[] = [];

const trainingOptions = (name: string, steps: number): string[] => [
  'train', '--preset', 'quickstart-small', '--data', path.join(folder, 'text.txt'), '--out', path.join(folder, 'runs', name),
  '--steps', String(steps), '--set', 'data.split=rest/4000/4000', '--batch-size', '2', '--sequence-length', '256', '--set', 'train.log_every=1', '--set', 'train.eval_every=5',
  '--set', 'train.checkpoint_every=5', '--set', 'train.eval_tokens=512', '--set', 'train.clusters_every=1', '--set', 'train.sample_every=10',
  '--set', 'train.sample_tokens=64', '--threads', '1', '--quiet'];

function start(options: string[]): ChildProcess {
  const child = spawn(program, options, {stdio: ['ignore', 'pipe', 'inherit']});
  children.push(child);
  return child;
}

// Each by its own id, and waited for.
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}

if (!skip) useBrowser();

before(async () => {
  if (skip) return;
  folder = mkdtempSync(path.join(tmpdir(), 'routing-served-'));
  mkdirSync(path.join(folder, 'runs'));
  writeFileSync(path.join(folder, 'text.txt'), longText(20_000, 5).join(''));
  execFileSync(program, trainingOptions('first', 20), {stdio: 'inherit'});
  const server = start(['serve', path.join(folder, 'runs'), '--port', '0', '--threads', '1', '--quiet']);
  address = await new Promise<string>((resolve, reject) => {
    let said = '';
    server.stdout!.on('data', (piece: Buffer) => {
      said += piece.toString();
      const found = /http:\/\/\S+/.exec(said);
      if (found) resolve(found[0].replace(/\/?$/, '/'));
    });
    server.once('exit', (code) => reject(new Error(`serve ended with ${code} before it said where it is`)));
  });
});

after(async () => {
  await Promise.all(children.map(end));
  if (folder !== '') rmSync(folder, {recursive: true, force: true});
});

test('the playground streams the text that generate writes, and nothing complains', {skip}, async () => {
  const {page, complaints} = await openPage(address, '#/playground?model=first');
  // What is typed before the model is known would be gone when it comes.
  await page.locator('.actions .main:enabled').waitFor();
  await enterNumber(page, '#set-max_tokens', 60);
  await page.getByLabel('Text', {exact: true}).fill('The ferry');
  await page.getByRole('button', {name: 'Generate'}).first().click();
  await page.getByRole('button', {name: 'Continue'}).waitFor();
  const run = path.join(folder, 'runs', 'first');
  const written = execFileSync(program, ['generate', run, '--prompt', 'The ferry', '-n', '60', '--quiet', '--threads', '1'], {encoding: 'utf8'});
  const units = () => page.locator('.token-text [data-index]').evaluateAll((all) => all.map((each) => each.textContent).join('').trimEnd());
  await eventuallyEqual(units, `The ferry${written}`.trimEnd(), 'the same text');
  await page.getByText('60 tokens drawn').waitFor();
  await page.locator('.word').nth(3).hover();
  await eventually(async () => await page.locator('.alternatives button').count() >= 8, 'what else was likely');
  assert.deepEqual(complaints, []);
  await page.close();
});

test('the attention of a token is what analyze attention says', {skip}, async () => {
  const text = passage.slice(0, 700);
  const answer = JSON.parse(execFileSync(program, ['analyze', 'attention', path.join(folder, 'runs', 'first'), '--text', text,
    '--position', '500', '--layer', '1', '--json', '--threads', '1'], {encoding: 'utf8', maxBuffer: 1 << 28})) as AttentionAnswer;
  const {page, complaints} = await openPage(address, '#/attention?model=first&at=500&layer=1&head=0', {text});
  // One of each kind: local heads first, routed ones last.
  for (const head of [answer.heads[0]!, answer.heads.at(-1)!]) {
    await page.getByRole('radio', {name: `layer 1 head ${head.head},`}).click();
    await page.getByRole('heading', {name: `Layer 1, head ${head.head} ${head.pattern}`}).waitFor();
    const expected = [...head.reads].sort((a, b) => b.weight - a.weight || b.position - a.position).slice(0, 60)
                         .map((read) => [read.weight.toFixed(4), read.position < 0 ? '' : String(read.position)]);
    const shown = () => page.locator('.reads tbody tr').evaluateAll((rows) => rows.map((row) =>
      [row.querySelector('.weight span:last-child')!.textContent!, row.children[2]!.textContent!.replaceAll(',', '')]));
    await eventuallyEqual(shown, expected, `the weights of head ${head.head}`);
  }
  assert.deepEqual(complaints, []);
  await page.close();
});

test('clusters of every token are shown of a routed head', {skip}, async () => {
  const {page, complaints} = await openPage(address, '#/attention?model=first&at=300&by=clusters', {text: passage});
  await page.getByText(/member of cluster \d+|this token is in no cluster/).waitFor();
  const members = () => page.locator('.cluster-list button').evaluateAll((all) =>
    all.map((each) => Number(each.lastElementChild!.textContent)).reduce((sum, size) => sum + size, 0));
  await eventually(async () => await members() >= passage.length * 0.9, 'nearly every token in a cluster');
  assert.deepEqual(complaints, []);
  await page.close();
});

test('a running training appears and moves', {skip}, async () => {
  const {page, complaints} = await openPage(address, '#/training');
  await eventuallyEqual(() => page.locator('.runs tbody tr').count(), 1, 'the only run');
  await page.locator('.heat-plot').first().waitFor();
  await page.locator('.sample-text').first().waitFor();
  const training = start(trainingOptions('second', 100_000));
  const row = page.locator('.runs tbody tr', {has: page.getByRole('rowheader', {name: 'second'})});
  await row.waitFor();
  await eventually(async () => (await row.innerText()).includes('running'), 'its state');
  await page.getByRole('button', {name: 'second'}).click();
  const step = async () => Number(/([\d,]+)\/100,000/.exec(await row.innerText())?.[1]?.replaceAll(',', '') ?? -1);
  await eventually(async () => await page.locator('.readout li').count() > 0, 'its curve');
  const [from, value] = [await step(), await page.locator('.main-chart .readout li').first().innerText()];
  await eventually(async () => await step() > from + 3, 'more steps');
  await eventually(async () => await page.locator('.main-chart .readout li').first().innerText() !== value, 'another value');
  await end(training);
  await eventually(async () => (await row.innerText()).includes('stopped'), 'that it stopped');
  assert.deepEqual(complaints, []);
  await page.close();
});

test('patterns are those of the library', {skip}, async () => {
  const {page, complaints} = await openPage(address, '#/patterns?pattern=local&n=40&window=6&row=20');
  const set = () => page.locator('.set').innerText();
  await eventuallyEqual(set, setText([15, 16, 17, 18, 19, 20]), 'the last six inputs');
  await page.getByRole('radio', {name: 'Bidirectional'}).click();
  await eventuallyEqual(set, '{15–25}', 'both sides');
  for (const name of await page.locator('.gallery button').allInnerTexts()) {
    await page.getByRole('radio', {name, exact: true}).click();
    await page.getByRole('heading', {name, exact: true}).waitFor();
  }
  assert.deepEqual(complaints, []);
  await page.close();
});
