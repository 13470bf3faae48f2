import assert from 'node:assert/strict';
import test from 'node:test';

import {column, emptyLog, halved, lastOf, merged, pointsOf, type RunLog} from '../../src/views/training/metrics';
import {mergeHistory} from '../../src/views/training/run_data';
import {matching, sorted, usualChoice} from '../../src/views/training/run_order';
import {differing} from '../../src/views/training/config_rows';
import {colourIndices} from '../../src/views/training/run_colours';
import {curvesOf, mainCharts, xText} from '../../src/views/training/charts';
import {isDead, strengthOf} from '../../src/views/training/heat_scale';

const train = (step: number, loss = 1 / step) => ({step, tokens: step * 10, train_loss_nats: loss, validity: 'causal'});
const held = (step: number) => ({step, eval_loss_nats: 2, eval_bits_per_byte: 3});
const steps = (log: RunLog) => column(log.train, 'step');

test('lines become columns, held-out ones apart, and further lines go on from there', () => {
  let log = merged(emptyLog('a'), {from: 0, next: 3, lines: [train(10), held(10), train(20)]})!;
  log = merged(log, {from: 3, next: 4, lines: [train(30)]})!;
  assert.deepEqual(steps(log), [10, 20, 30]);
  assert.deepEqual(column(log.held, 'eval_bits_per_byte'), [3]);
  assert.equal(log.next, 4);
  assert.equal(lastOf(log.train, 'tokens'), 300);
  assert.equal(lastOf(log.train, 'nothing'), undefined);
});

test('a resumed run writes its last steps again, and they count once', () => {
  let log = merged(emptyLog('a'), {from: 0, next: 3, lines: [train(10), train(20), train(30)]})!;
  log = merged(log, {from: 3, next: 5, lines: [train(20, 7), train(30, 8)]})!;
  assert.deepEqual(steps(log), [10, 20, 30]);
  assert.deepEqual(column(log.train, 'train_loss_nats'), [0.1, 7, 8]);
});

test('an answer that does not go on from what is there is refused, and one from 0 replaces all', () => {
  const log = merged(emptyLog('a'), {from: 0, next: 2, lines: [train(10), train(20)]})!;
  assert.equal(merged(log, {from: 5, next: 6, lines: [train(60)]}), undefined);
  assert.deepEqual(steps(merged(log, {from: 0, next: 1, lines: [train(5)]})!), [5]);
});

test('columns that come later or end are gaps, not shifts', () => {
  let log = merged(emptyLog('a'), {from: 0, next: 1, lines: [{...train(10), early: 1}]})!;
  log = merged(log, {from: 1, next: 2, lines: [{...train(20), late: 2}]})!;
  assert.deepEqual(column(log.train, 'early'), [1, NaN]);
  assert.deepEqual(column(log.train, 'late'), [NaN, 2]);
  assert.deepEqual(pointsOf(log.train, 'step', 'late'), {x: [10, 20], y: [NaN, 2]});
});

test('a long log loses every second old row and no new one', () => {
  const lines = Array.from({length: 1000}, (_, index) => train(index + 1));
  const short = halved(merged(emptyLog('a'), {from: 0, next: 1000, lines})!.train, 400);
  const left = short.columns.get('step')!;
  assert.equal(short.rows, left.length);
  assert.deepEqual(left.slice(0, 3), [1, 3, 5]);
  assert.deepEqual(left.slice(-3), [998, 999, 1000]);
});

test('cluster histories grow, and what is written again replaces what was there', () => {
  const heads = [{attention: 'layer 1', head: 2, clusters: 2}];
  const part = (own: number[]) => ({heads, steps: own, shares: own.map((step) => [[step, 0]]), dead: own.map(() => 0)});
  assert.deepEqual(mergeHistory(part([100, 200]), part([200, 300])).steps, [100, 200, 300]);
  assert.deepEqual(mergeHistory(undefined, part([100])).steps, [100]);
  assert.deepEqual(mergeHistory(part([100]), part([])).steps, [100]);
  assert.deepEqual(mergeHistory(part([100]), {...part([50]), heads: []}).steps, [50]);
});

const runs = [
  {id: 'b2', state: 'finished', best: 1.5, changed: '2026-01-02T00:00:00Z', data: 'x'},
  {id: 'b10', state: 'running', best: null, changed: '2026-01-03T00:00:00Z', data: 'y'},
  {id: 'a', state: 'stopped', best: 1.7, changed: '2026-01-01T00:00:00Z', data: 'x', data_label: 'partial data'},
  {id: 'torn', problem: 'cannot be read', changed: '2026-01-04T00:00:00Z'},
];
const ids = (all: {id: string}[]) => all.map((run) => run.id);

test('runs are sorted as people count, and what has no value stands last either way', () => {
  assert.deepEqual(ids(sorted(runs, {by: 'id', isDown: false})), ['a', 'b2', 'b10', 'torn']);
  assert.deepEqual(ids(sorted(runs, {by: 'best', isDown: false})), ['b2', 'a', 'b10', 'torn']);
  assert.deepEqual(ids(sorted(runs, {by: 'best', isDown: true})), ['a', 'b2', 'b10', 'torn']);
  assert.deepEqual(ids(sorted(runs, {by: 'changed', isDown: false})), ['torn', 'b10', 'b2', 'a']);
  assert.deepEqual(ids(sorted(runs, {by: 'state', isDown: false})), ['b10', 'b2', 'a', 'torn']);
});

test('runs are found by every word, in names, states and labels', () => {
  assert.deepEqual(ids(matching(runs, 'X finished')), ['b2']);
  assert.deepEqual(ids(matching(runs, 'partial')), ['a']);
  assert.equal(matching(runs, '').length, 4);
});

test('what trains is shown first, or else what changed last', () => {
  assert.deepEqual(usualChoice(runs), ['b10']);
  assert.deepEqual(usualChoice(runs.filter((run) => run.state !== 'running')), ['b2']);
  assert.deepEqual(usualChoice([]), []);
});

test('runs keep their colours while others come and go', () => {
  colourIndices([]);
  assert.deepEqual([...colourIndices(['a', 'b', 'c'])], [['a', 0], ['b', 1], ['c', 2]]);
  assert.deepEqual([...colourIndices(['b', 'c', 'd'])], [['b', 1], ['c', 2], ['d', 0]]);
});

test('runs of different units have charts of their own, but for nats', () => {
  const several = [{id: 'a', unit: 'bits_per_byte'}, {id: 'b', unit: 'perplexity'}, {id: 'c', unit: 'bits_per_byte'}, {id: 'd', unit: null}];
  assert.deepEqual(mainCharts(several, false).map((chart) => [chart.kind.key, chart.ids]), [['bits_per_byte', ['a', 'c']], ['perplexity', ['b']]]);
  assert.deepEqual(mainCharts(several, true)[0]!.ids, ['a', 'b', 'c', 'd']);
});

test('a curve has the points of its column, and a run without it none', () => {
  const log = merged(emptyLog('a'), {from: 0, next: 2, lines: [train(10), held(10)]})!;
  const colours = {hues: Array(8).fill('#112233'), ink: '#000000', paper: '#ffffff'} as never;
  const kind = mainCharts([{id: 'a', unit: 'x'}], true)[0]!.kind;
  const [curve] = curvesOf(kind, ['a', 'none'], 'tokens', new Map([['a', log]]), new Map([['a', 0]]), colours);
  assert.deepEqual([curve!.line, curve!.dots], [{x: [100], y: [0.1]}, {x: [], y: []}]);
});

test('times on an axis have no needless seconds', () => {
  assert.equal(xText('seconds', 0), '0');
  assert.equal(xText('seconds', 120).replace(/\s/g, ' '), '2 min');
  assert.equal(xText('tokens', 5_200_000).replace(/\s/g, ' '), '5.2 M');
});

test('of several configurations only what differs is shown', () => {
  assert.deepEqual(differing([{a: '1', b: '2'}, {a: '1', b: '3', c: 'x'}]), [{key: 'b', values: ['2', '3']}, {key: 'c', values: ['', 'x']}]);
  assert.equal(differing([{a: '1', b: '2'}]).length, 2);
});

test('a share is half strong when it is fair, and dead below the limit', () => {
  assert.deepEqual([0, 0.25, 1, 4, 64].map(strengthOf), [0, 0.06, 0.5, 1, 1]);
  assert.ok(isDead(0, 0) && isDead(0.05, 0.1) && !isDead(0.2, 0.1));
});
