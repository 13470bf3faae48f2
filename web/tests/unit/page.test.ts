import assert from 'node:assert/strict';
import test from 'node:test';

import {advice, ApiError, errorOf} from '../../src/api/error';
import {follow, waitAfter} from '../../src/api/follow';
import {pathOfRun} from '../../src/api/http';
import type {SseItem} from '../../src/api/sse';
import {compact, digits, duration, percent, plural, scaled, visible, whole} from '../../src/ui/format';
import {hashOf, numberAt, parsePlace} from '../../src/ui/place';
import {moved} from '../../src/ui/roving';
import {recall} from '../../src/ui/storage';
import {completionBody, curlOf, standard, stopsOf} from '../../src/views/playground/settings';
import {costOfRows, keysOf, patternBody, ruleOf, setText} from '../../src/views/patterns/pattern_facts';
import {cellAt} from '../../src/views/patterns/pattern_picture';

const plainSpaces = (text: string) => text.replace(/\s/g, ' ');

test('an address is read as it was written', () => {
  const place = {view: 'training' as const, values: {runs: 'exp/a,b', x: 'tokens', name: 'ü &=#'}};
  assert.deepEqual(parsePlace(hashOf(place)), place);
  assert.ok(hashOf(place).startsWith('#/training?runs=exp/a,b&x=tokens'));
  assert.equal(hashOf({view: 'patterns', values: {n: ''}}), '#/patterns');
  assert.deepEqual(parsePlace('#/nonsense?a=1'), {view: 'playground', values: {a: '1'}});
  assert.equal(numberAt({a: '12', b: '1e9x'}, 'a'), 12);
  assert.equal(numberAt({b: '1e9x'}, 'b'), undefined);
});

test('numbers read as people write them', () => {
  assert.equal(whole(1234567), '1,234,567');
  assert.deepEqual([471_552, 12_345, 999, 1.5].map((value) => plainSpaces(compact(value))), ['0.472 M', '12.3 k', '999', '1.50']);
  assert.equal(plainSpaces(scaled(231_000)), '231 k');
  assert.deepEqual([0, 1.23456, 0.00123456, 1234567, 1e-7, NaN].map((value) => digits(value, 3)), ['0', '1.23', '0.00123', '1234567', '1.00e−7', 'no number']);
  assert.deepEqual([1, 0.5, 0.0123, 0.00001].map((value) => plainSpaces(percent(value))), ['100 %', '50.0 %', '1.23 %', '< 0.01 %']);
  assert.deepEqual([0.0234, 4.2, 61, 3660, 7199].map((value) => plainSpaces(duration(value))), ['23 ms', '4.2 s', '1 min 01 s', '1 h 01 min', '2 h 00 min']);
  assert.equal(plural(1, 'token'), '1 token');
  assert.equal(visible(' a\n\u0001'), '␣a↵\\x01');
});

test('arrows stay inside a grid whose last row is short', () => {
  const grid = {rows: 2, columns: 3};
  assert.equal(moved('ArrowRight', 4, grid, 5), 4);
  assert.equal(moved('ArrowDown', 2, grid, 5), 2);
  assert.equal(moved('ArrowDown', 1, grid, 5), 4);
  assert.equal(moved('ArrowUp', 1, grid, 5), 1);
  assert.equal(moved('End', 0, grid, 5), 2);
  assert.equal(moved('Home', 4, grid, 5), 3);
  assert.equal(moved('x', 1, grid), undefined);
});

test('without storage the default is what there is', () => {
  assert.equal(recall('x', 'usual', (value): value is string => typeof value === 'string'), 'usual');
});

test('a request leaves out what has its neutral value', () => {
  assert.deepEqual(completionBody('m', 'p', standard), {model: 'm', prompt: 'p', max_tokens: 256, seed: 1});
  assert.deepEqual(completionBody('m', 'p', {...standard, n: 2, top_k: 5, stop: 'END\n\\n\n', ignore_end: true}),
                   {model: 'm', prompt: 'p', max_tokens: 256, seed: 1, n: 2, top_k: 5, stop: ['END', '\n'], ignore_end: true});
  assert.deepEqual(stopsOf(''), []);
  assert.equal(curlOf('http://h/v1', {prompt: "it's \\ \"x\""}), `curl http://h/v1 -d '{"prompt":"it'\\''s \\\\ \\"x\\""}'`);
});

test('errors keep the words of the server, and say what to do', () => {
  const error = errorOf(429, '{"error":{"message":"the queue is full","param":"n"}}', '7');
  assert.deepEqual([error.message, error.status, error.param, error.retryAfter], ['the queue is full', 429, 'n', 7]);
  assert.match(advice(error), /in 7 s/);
  assert.equal(errorOf(502, '<html>', null).message, 'the server answered with status 502');
  assert.match(advice(new ApiError('x', 0)), /routing serve/);
  for (const status of [0, 401, 403, 404, 408, 413, 429, 500, 503]) assert.notEqual(advice(new ApiError('x', status)), '');
});

test('names of runs keep their slashes in a path, and nothing else of theirs does harm', () => {
  assert.equal(pathOfRun('exp/a b?#%'), 'exp/a%20b%3F%23%25');
});

test('waits double up to half a minute, with a third by chance', () => {
  assert.deepEqual([1, 2, 3, 20].map((failures) => waitAfter(failures, 1000, 1)), [1000, 2000, 4000, 30_000]);
  assert.equal(waitAfter(1, 900, 0), 600);
});

test('a stream that breaks is opened again, from where it now is, until it is ended', async () => {
  const opened: string[] = [];
  const got: string[] = [];
  const states: string[] = [];
  let after = 0;
  async function* open(path: string): AsyncGenerator<SseItem> {
    opened.push(path);
    if (opened.length === 2) throw new ApiError('gone', 0);
    yield {kind: 'comment', text: ''};
    yield {kind: 'event', event: 'metrics', data: String(++after)};
  }
  await new Promise<void>((resolve) => {
    const stop = follow({
      path: () => `e?after=${after}`, open, firstWait: 1, random: () => 0, onState: (state) => states.push(state.kind),
      onEvent: (_, data) => {
        got.push(data);
        if (got.length < 3) return;
        stop();
        resolve();
      },
    });
  });
  assert.deepEqual(got, ['1', '2', '3']);
  assert.deepEqual(opened, ['e?after=0', 'e?after=1', 'e?after=1', 'e?after=2']);
  assert.deepEqual(states.slice(0, 6), ['connecting', 'live', 'waiting', 'connecting', 'waiting', 'connecting']);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(opened.length, 4);
});

const answer = {n: 3, rows: [{keys: [0], groups: [0]}, {keys: [0, 1, 1], groups: [2, 0, 2]}, {keys: [], groups: []}]};

test('rows of a pattern are sets of keys, each with its groups, and what they cost', () => {
  assert.deepEqual(keysOf(answer, 1), [{key: 0, groups: [2]}, {key: 1, groups: [0, 2]}]);
  assert.deepEqual(costOfRows(answer, true), {pairs: 3, all: 6, longest: 2, mean: 1, unread: 1});
  assert.equal(costOfRows(answer, false).all, 9);
  assert.equal(setText([0, 1, 2, 5, 7, 8]), '{0–2, 5, 7, 8}');
  assert.equal(setText([]), '{}');
});

test('fields of a pattern are brought into their ranges', () => {
  const pattern = {name: 'local', fields: [{name: 'window', default: 8, least: 1, most: 64}]};
  assert.deepEqual(patternBody(pattern, 10, true, {}), {pattern: 'local', n: 10, causal: true, window: 8});
  assert.equal(patternBody(pattern, 10, false, {window: '999'})['window'], 64);
  assert.equal(patternBody(pattern, 10, true, {window: 'x'})['window'], 8);
});

test('a pattern has a sentence: the page\'s own, or else the server\'s', () => {
  assert.match(ruleOf({name: 'local', fields: [], about: 'the last inputs'}), /blind beyond its window\.$/);
  assert.equal(ruleOf({name: 'new', fields: [], about: 'what nobody knows yet'}), 'What nobody knows yet.');
  assert.equal(ruleOf({name: 'new', fields: []}), '');
});

test('the cell under the pointer, and none outside', () => {
  const matrix = {left: 10, top: 20, cell: 5, n: 4};
  assert.deepEqual(cellAt(matrix, 10, 20), {row: 0, column: 0});
  assert.deepEqual(cellAt(matrix, 29.9, 26), {row: 1, column: 3});
  assert.equal(cellAt(matrix, 30, 20), undefined);
  assert.equal(cellAt(matrix, 9, 20), undefined);
});
