// Makes the page slower than machines are, so that a test that hopes for speed fails. Nothing is slow unless a variable
// says so (web/README.md):
//
//   ROUTING_PAGE_THROTTLE=20   the page's own work takes 20 times as long
//   ROUTING_PAGE_LATE=300      renders, frames and answers come up to 300 ms late, each by chance
import type {Page} from 'playwright-core';

import type {MockServer} from '../mock/server';

const throttle = Number(process.env['ROUTING_PAGE_THROTTLE'] ?? 1);
const latest = Number(process.env['ROUTING_PAGE_LATE'] ?? 0);

// Milliseconds that a test waits for what has to come. Machines that test are busy.
export const patience = 90_000 * Math.max(1, throttle / 10);

// Runs in the page, before its own scripts.
function beLate(most: number): void {
  const later = (what: () => void) => setTimeout(what, Math.random() * most);

  // Preact renders in microtasks.
  const renders = new Set<() => void>();
  window.queueMicrotask = (render) => {
    renders.add(render);
    later(() => {
      if (renders.delete(render)) render();
    });
  };
  // On the slowest machine as well, what an event changed is rendered before the next event: the page may count on that.
  const catchUp = () => {
    for (const render of renders) {
      renders.delete(render);
      render();
    }
  };
  for (const event of ['keydown', 'input', 'change', 'focusin', 'focusout', 'pointerdown', 'pointermove', 'pointerup',
                       'pointerover', 'pointerleave', 'mouseover', 'mouseleave', 'click', 'dblclick']) {
    addEventListener(event, catchUp, {capture: true});
  }

  const waiting = new Map<number, ReturnType<typeof setTimeout>>();
  const [request, cancel] = [requestAnimationFrame.bind(window), cancelAnimationFrame.bind(window)];
  window.requestAnimationFrame = (draw) => {
    const frame = request(() => {
      waiting.set(frame, later(() => {
        waiting.delete(frame);
        draw(performance.now());
      }));
    });
    return frame;
  };
  window.cancelAnimationFrame = (frame) => {
    cancel(frame);
    clearTimeout(waiting.get(frame));
    waiting.delete(frame);
  };
}

export async function slowDown(page: Page): Promise<void> {
  if (latest > 0) await page.addInitScript(beLate, latest);
  if (throttle <= 1) return;
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', {rate: throttle});
}

export function slowDownAnswers(mock: MockServer): void {
  if (latest > 0) mock.delay = () => Math.random() * latest;
}
