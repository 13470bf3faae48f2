// A stream of events that comes back by itself: after an error or an end it is opened anew, later each time, up to half
// a minute. A server that sends nothing for longer than its own comments should take is given up as well.
import {ApiError, isAbort} from './error';
import {streamEvents} from './http';
import type {SseItem} from './sse';

export type FollowState = {kind: 'connecting'} | {kind: 'live'} | {kind: 'waiting'; seconds: number; error: unknown};

export interface Follow {
  // Asked for at every opening, so that it can say where to go on.
  path: () => string;
  onEvent: (event: string, data: string) => void;
  onState?: (state: FollowState) => void;
  open?: (path: string, signal: AbortSignal) => AsyncIterable<SseItem>;
  random?: () => number;
  firstWait?: number;
}

const longestWait = 30_000;
const longestSilence = 45_000;

// Milliseconds before attempt `failures` + 1: doubling, and a third of it by chance, so that many pages do not come at once.
export function waitAfter(failures: number, firstWait: number, random: number): number {
  const whole = Math.min(longestWait, firstWait * 2 ** Math.max(0, failures - 1));
  return Math.round(whole * (2 / 3 + random / 3));
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    }, {once: true});
  });
}

async function readOnce(follow: Follow, stopped: AbortSignal, onFirst: () => void): Promise<void> {
  const attempt = new AbortController();
  const stop = () => attempt.abort();
  stopped.addEventListener('abort', stop, {once: true});
  const open = follow.open ?? ((path, signal) => streamEvents(path, {signal}));
  let silence = setTimeout(stop, longestSilence);
  try {
    for await (const item of open(follow.path(), attempt.signal)) {
      clearTimeout(silence);
      silence = setTimeout(stop, longestSilence);
      onFirst();
      if (item.kind === 'event') follow.onEvent(item.event, item.data);
    }
  } finally {
    clearTimeout(silence);
    stopped.removeEventListener('abort', stop);
    attempt.abort();
  }
}

// Returns what ends it.
export function follow(options: Follow): () => void {
  const stopped = new AbortController();
  const tell = options.onState ?? (() => undefined);
  const run = async () => {
    let failures = 0;
    while (!stopped.signal.aborted) {
      let problem: unknown = new ApiError('the server ended the connection', 0);
      let isLive = false;
      tell({kind: 'connecting'});
      try {
        await readOnce(options, stopped.signal, () => {
          if (isLive) return;
          isLive = true;
          failures = 0;
          tell({kind: 'live'});
        });
      } catch (error) {
        if (!isAbort(error)) problem = error;
      }
      if (stopped.signal.aborted) return;
      const wait = waitAfter(++failures, options.firstWait ?? 1000, (options.random ?? Math.random)());
      tell({kind: 'waiting', seconds: Math.ceil(wait / 1000), error: problem});
      await pause(wait, stopped.signal);
    }
  };
  void run();
  return () => stopped.abort();
}
