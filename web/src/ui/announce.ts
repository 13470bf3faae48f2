// What a screen reader says of things that change by themselves. Streams would flood it, so it gets the latest state at
// most every few seconds.
import {signal} from '@preact/signals';

export const announced = signal('');
const pauseMilliseconds = 3000;

let waiting: string | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  if (timer !== undefined) {
    waiting = text;
    return;
  }
  announced.value = text;
  timer = setTimeout(() => {
    timer = undefined;
    if (waiting === undefined) return;
    const next = waiting;
    waiting = undefined;
    announce(next);
  }, pauseMilliseconds);
}
