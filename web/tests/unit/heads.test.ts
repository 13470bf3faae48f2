import assert from 'node:assert/strict';
import test from 'node:test';

import {allAtOnce, distanceBins, firstHead, heaviestFirst, meanDistance, neighbours, sizesOf, summaryPath, surroundings, weightByDistance} from '../../src/views/attention/head_facts';
import {stepHead} from '../../src/views/attention/head_matrix';
import {selectionOf} from '../../src/views/attention/use_selection';

const read = (position: number, weight: number) => ({position, weight, token: 't'});
const head = (index: number, routed: boolean, pattern = routed ? 'routing' : 'local') => ({head: index, pattern, routed, clusters: routed ? 8 : 0});
const layers = [{layer: 0, heads: [head(0, false), head(1, false)]}, {layer: 1, heads: [head(0, false), head(1, true), head(2, true)]},
                {layer: 2, heads: [head(0, false)]}];

test('weight is binned by powers of two of its distance', () => {
  const bins = weightByDistance(100, [read(99, 0.5), read(98, 0.25), read(97, 0.125), read(-1, 0.125)]);
  assert.equal(bins.length, distanceBins);
  assert.deepEqual([...bins].slice(0, 7), [0.5, 0.375, 0, 0, 0, 0, 0.125]);
});

test('the mean distance weighs by weight', () => {
  assert.equal(meanDistance(10, [read(9, 0.75), read(5, 0.25)]), 2);
  assert.equal(meanDistance(10, []), 0);
});

test('reads are ordered by weight, equal ones from near to far', () => {
  assert.deepEqual(heaviestFirst([read(1, 0.2), read(5, 0.6), read(3, 0.2)]).map((each) => each.position), [5, 3, 1]);
});

test('a summary is drawn up to the root of each share', () => {
  assert.ok(summaryPath(Float64Array.of(1, 0.25)).startsWith('M0 8L0 0H1L1 4H2V8'));
});

test('the first head is a routed one of the topmost layer that has one', () => {
  assert.deepEqual(firstHead(layers), {layer: 1, head: 1});
  assert.deepEqual(firstHead([layers[0]!]), {layer: 0, head: 0});
});

test('heads that read everything are asked one by one in long texts', () => {
  const full = [{layer: 0, heads: [head(0, false, 'full')]}];
  assert.ok(allAtOnce(full, 1000));
  assert.ok(!allAtOnce(full, 1_000_000));
  assert.ok(allAtOnce(layers, 1_000_000));
});

test('neighbours in a cluster are the nearest members on either side', () => {
  const clusters = [[1], [0, 1], [], [1], [0]];
  assert.deepEqual(neighbours(clusters, 1, 1), {previous: 0, next: 3});
  assert.deepEqual(neighbours(clusters, 0, 4), {previous: 1, next: undefined});
  // From the place after the last token, too.
  assert.deepEqual(neighbours(clusters, 1, 5), {previous: 3, next: undefined});
  assert.deepEqual(sizesOf(clusters, 3), [{cluster: 1, members: 3}, {cluster: 0, members: 2}, {cluster: 2, members: 0}]);
});

test('surroundings are the letters next to a token, on either side', () => {
  const pieces = ['The', ' quick', '', ' brown', ' fox'];
  assert.deepEqual(surroundings(pieces, 3, 4), {before: 'uick', after: ' fox'});
  assert.deepEqual(surroundings(pieces, 0, 99), {before: '', after: ' quick brown fox'});
});

test('steps between heads stay inside, also where layers have different numbers of heads', () => {
  assert.deepEqual(stepHead(layers, {layer: 1, head: 2}, 1, 0), {layer: 2, head: 0});
  assert.deepEqual(stepHead(layers, {layer: 1, head: 2}, 0, 1), {layer: 1, head: 2});
  assert.deepEqual(stepHead(layers, {layer: 0, head: 0}, -1, 0), {layer: 0, head: 0});
});

test('an address that names no such head or token chooses ones that are there', () => {
  const chosen = selectionOf({layer: '9', head: '1', at: '500', by: 'clusters', cluster: '99'}, layers, 20);
  assert.deepEqual({...chosen}, {layer: 1, head: 1, position: 20, isRouted: true, pattern: 'routing', clusters: 8, mode: 'clusters', only: undefined, showsAll: true});
  assert.equal(selectionOf({layer: '0', head: '0', by: 'clusters'}, layers, 20).mode, 'reads');
});
