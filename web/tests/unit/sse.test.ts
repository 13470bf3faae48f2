import assert from 'node:assert/strict';
import test from 'node:test';

import {SseParser, type SseItem} from '../../src/api/sse';

const event = (data: string, name = 'message'): SseItem => ({kind: 'event', event: name, data});

function parsed(...pieces: string[]): SseItem[] {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece));
}

test('events, names, several lines of data and comments are told apart', () => {
  const stream = ': reading 512 of 4096\n\nevent: runs\ndata: {"a":1}\ndata: 2\n\ndata:x\n\nid: 7\nretry: 5\ndata\n\n';
  assert.deepEqual(parsed(stream), [{kind: 'comment', text: 'reading 512 of 4096'}, event('{"a":1}\n2', 'runs'), event('x'), event('')]);
});

test('every cut of a stream into two gives the same events', () => {
  const stream = '\uFEFFdata: é — 1\r\n\r\nevent: a\rdata: b\r\r: c\ndata: d\n\n';
  const whole = parsed(stream);
  assert.deepEqual(whole, [event('é — 1'), event('b', 'a'), {kind: 'comment', text: 'c'}, event('d')]);
  for (let at = 0; at <= stream.length; ++at) assert.deepEqual(parsed(stream.slice(0, at), stream.slice(at)), whole, `cut at ${at}`);
});

test('an event that has not ended is not told, and its name does not stay for the next', () => {
  assert.deepEqual(parsed('data: half\n'), []);
  assert.deepEqual(parsed('event: a\n\ndata: b\n\n'), [event('b')]);
});
