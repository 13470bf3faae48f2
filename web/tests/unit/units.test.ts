import assert from 'node:assert/strict';
import test from 'node:test';

import {beforeLastDraw, bitsOf, bytesOf, costOf, edited, levelOf, textOf, typed, unitBits, unitsOf, type Unit} from '../../src/views/playground/units';

const logprobs = (tokens: string[], each = -Math.LN2) =>
    ({tokens, token_logprobs: tokens.map(() => each), top_logprobs: tokens.map((token) => ({[token]: each, other: -2, x: -1}))});
const texts = (units: Unit[]) => units.map((unit) => unit.text);

test('a token is a unit with its bits and its alternatives, the likeliest first', () => {
  const [unit] = unitsOf('cat', logprobs(['cat']));
  assert.equal(unit!.text, 'cat');
  assert.equal(unitBits(unit!), 1);
  assert.deepEqual(unit!.tokens[0]!.others.map((other) => other.text), ['cat', 'x', 'other']);
});

test('bytes of one character are one unit, whatever else stands beside them', () => {
  const units = unitsOf('a—b€', logprobs(['a', 'bytes:\\xe2', 'bytes:\\x80', 'bytes:\\x94', 'b', 'bytes:\\xe2\\x82', 'bytes:\\xac']));
  assert.deepEqual(texts(units), ['a', '—', 'b', '€']);
  assert.deepEqual(units.map((unit) => unit.tokens.length), [1, 3, 1, 2]);
  assert.equal(unitBits(units[1]!), 3);
});

test('bytes that never become a character keep the text that stands for them', () => {
  const units = unitsOf('a\uFFFDb', logprobs(['a', 'bytes:\\xff', 'b']));
  assert.deepEqual(texts(units), ['a', '\uFFFD', 'b']);
});

test('a text that ends before its tokens do, at a stop text, shows no more than the text', () => {
  assert.equal(textOf(unitsOf('one tw', logprobs(['one', ' two', ' three']))), 'one tw');
});

test('text without probabilities is one unit without tokens, and no text none', () => {
  assert.deepEqual(unitsOf('abc', null), [{text: 'abc', tokens: [], isDrawn: true}]);
  assert.deepEqual(unitsOf('', null), []);
});

test('only whole escapes are bytes', () => {
  assert.deepEqual(bytesOf('bytes:\\xe2\\x80'), [0xe2, 0x80]);
  assert.equal(bytesOf('bytes:'), undefined);
  assert.equal(bytesOf('bytes:\\xe'), undefined);
  assert.equal(bytesOf('byte'), undefined);
});

test('levels are whole bits, and the last holds all above', () => {
  assert.equal(bitsOf(0), 0);
  assert.deepEqual([0, 0.99, 1, 8.99, 9, 400, -1].map(levelOf), [0, 0, 1, 8, 9, 9, 0]);
});

test('an edit keeps the tokens before it and types the rest', () => {
  const units = [typed('The '), ...unitsOf('cat sat', logprobs(['cat', ' sat']))];
  const changed = edited(units, 'The cat ran');
  assert.deepEqual(changed.map((unit) => [unit.text, unit.isDrawn]), [['The ', false], ['cat', true], [' ran', false]]);
  assert.deepEqual(edited(units, 'The cat sat'), units);
  assert.deepEqual(edited(units, ''), []);
  assert.deepEqual(texts(edited(units, 'The cat sat on')), ['The ', 'cat', ' sat', ' on']);
});

test('regenerating takes away what was drawn last and nothing else', () => {
  const [a, b, c] = unitsOf('abc', logprobs(['a', 'b', 'c']));
  assert.deepEqual(beforeLastDraw([a!, typed('t'), b!, c!]), [a, typed('t')]);
  assert.deepEqual(beforeLastDraw([typed('t')]), [typed('t')]);
});

test('a cost counts tokens that have a probability', () => {
  const drawn = unitsOf('ab', {tokens: ['a', 'b'], token_logprobs: [null, -2 * Math.LN2], top_logprobs: null});
  assert.deepEqual(costOf([typed('x'), ...drawn]), {tokens: 1, bits: 2});
});
