import assert from 'node:assert/strict';
import test from 'node:test';

import {nearest, smooth, thin} from '../../src/draw/series';
import {padded, placeOf, rangeOf, ticksOf, valueAt} from '../../src/draw/scale';

test('smoothing is the mean of all values so far, weighted down by w per step', () => {
  assert.deepEqual(smooth([4, 8, 0], 0.5).map((value) => Number(value.toFixed(6))), [4, Number((20 / 3).toFixed(6)), Number((20 / 7).toFixed(6))]);
  assert.deepEqual(smooth([1, 2], 0), [1, 2]);
  const gap = smooth([2, NaN, 2], 0.9);
  assert.ok(Number.isNaN(gap[1]));
  assert.ok(Math.abs(gap[2]! - 2) < 1e-12);
});

test('thinning keeps the first, last, lowest and highest of every column', () => {
  const x = Array.from({length: 10_000}, (_, index) => index);
  const y = x.map((value) => Math.sin(value / 50));
  y[5003] = 100;
  y[5004] = -100;
  const few = thin({x, y}, 100);
  assert.ok(few.x.length <= 404, `${few.x.length} points`);
  assert.equal(few.x[0], 0);
  assert.equal(few.x.at(-1), 9999);
  assert.ok(few.y.includes(100) && few.y.includes(-100));
  assert.deepEqual([...few.x].sort((a, b) => a - b), few.x);
  const short = {x: [1, 2], y: [3, 4]};
  assert.equal(thin(short, 100), short);
});

test('the nearest value of a sorted list, ties to the lower one', () => {
  assert.deepEqual([-5, 0, 4, 5, 6, 99].map((value) => nearest([0, 10, 20], value)), [0, 0, 0, 0, 1, 2]);
  assert.equal(nearest([], 1), -1);
});

test('ranges leave out what cannot be drawn', () => {
  assert.deepEqual(rangeOf([NaN, 3, -1, Infinity], false), {least: -1, most: 3});
  assert.deepEqual(rangeOf([0, -2, 5], true), {least: 5, most: 5});
  assert.equal(rangeOf([NaN], false), undefined);
  assert.deepEqual(padded({least: 0, most: 0}, false), {least: 0, most: 1});
  const one = padded({least: 5, most: 5}, true);
  assert.ok(one.least < 5 && one.most > 5);
});

test('places and values are each the other way round', () => {
  for (const isLog of [false, true]) {
    const scale = {range: {least: 2, most: 2000}, isLog, from: 100, to: 300};
    assert.equal(placeOf(scale, 2), 100);
    assert.equal(placeOf(scale, 2000), 300);
    for (const value of [2, 17, 900]) assert.ok(Math.abs(valueAt(scale, placeOf(scale, value)) - value) < 1e-9);
  }
});

test('ticks are round, inside, and about as many as asked for', () => {
  assert.deepEqual(ticksOf({least: 0, most: 1}, false, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticksOf({least: 1.53, most: 1.68}, false, 3), [1.55, 1.6, 1.65]);
  assert.deepEqual(ticksOf({least: 1, most: 1000}, true, 4), [1, 3, 10, 30, 100, 300, 1000]);
  assert.deepEqual(ticksOf({least: 1, most: 1e9}, true, 5), [1, 100, 10_000, 1_000_000, 100_000_000]);
  for (const [least, most] of [[0, 7e-9], [-3, 12345], [1e6, 1e6 + 1]] as const) {
    const ticks = ticksOf({least, most}, false, 6);
    assert.ok(ticks.length >= 2 && ticks.length <= 9, `${ticks}`);
    assert.ok(ticks.every((tick) => tick >= least - 1e-12 && tick <= most + 1e-12));
  }
});
