// Images as they are drawn, row by row.
import {signal} from '@preact/signals';

import {ApiError, isAbort} from '../../api/error';
import {streamEvents} from '../../api/http';
import type {ImageAnswer, ImageRow, Model} from '../../api/types';
import {putRow} from '../../draw/pixels';
import {announce} from '../../ui/announce';
import {imageBody, settings} from './settings';

export interface Picture { pixels: ImageData; rows: number; nats: number | null; png: string | null }
export interface Upper { png: string; rows: number; canvas: HTMLCanvasElement; wasScaled: boolean }

export const pictures = signal<readonly Picture[]>([]);
export const upper = signal<Upper | undefined>(undefined);
export const isDrawing = signal(false);
export const imageProblem = signal<unknown>(undefined);
export const imageSeconds = signal<number | undefined>(undefined);

let running: AbortController | undefined;

export function stopImages(): void {
  running?.abort();
}

function startPicture(width: number, height: number): Picture {
  const pixels = new ImageData(width, height);
  const kept = upper.value;
  if (kept) {
    const context = kept.canvas.getContext('2d');
    const part = context?.getImageData(0, 0, width, kept.rows);
    if (part) pixels.data.set(part.data);
  }
  return {pixels, rows: kept?.rows ?? 0, nats: null, png: null};
}

export async function drawImages(model: Model): Promise<void> {
  stopImages();
  const own = new AbortController();
  running = own;
  const [width, height] = [model.width ?? 32, model.height ?? 32];
  const drawn = Array.from({length: settings.value.n}, () => startPicture(width, height));
  const begun = performance.now();
  let frame = 0;
  const show = () => {
    frame = 0;
    if (running === own) pictures.value = drawn.map((picture) => ({...picture}));
  };
  imageProblem.value = undefined;
  imageSeconds.value = undefined;
  isDrawing.value = true;
  show();
  const body: Record<string, unknown> = {...imageBody(model.id, settings.value), stream: true};
  if (upper.value) Object.assign(body, {image: upper.value.png, rows: upper.value.rows});
  try {
    for await (const item of streamEvents('v1/images/completions', {body, signal: own.signal})) {
      if (item.kind === 'comment') continue;
      if (item.data === '[DONE]') break;
      take(JSON.parse(item.data) as ImageEvent, drawn, width);
      frame ||= requestAnimationFrame(show);
    }
    announce('The images are drawn.');
  } catch (error) {
    if (!isAbort(error) && running === own) imageProblem.value = error;
  } finally {
    cancelAnimationFrame(frame);
    if (running === own) {
      show();
      isDrawing.value = false;
      imageSeconds.value = (performance.now() - begun) / 1000;
      running = undefined;
    }
  }
}

type ImageEvent = ImageRow | ImageAnswer | {error: {message: string}};

function take(event: ImageEvent, drawn: Picture[], width: number): void {
  if ('error' in event) throw new ApiError(event.error.message, 500);
  if ('row' in event) {
    const picture = drawn[event.index];
    if (!picture) return;
    putRow(picture.pixels.data, width, event.row, event.values);
    picture.rows = Math.max(picture.rows, event.row + 1);
    return;
  }
  for (const each of event.data) {
    const picture = drawn[each.index];
    if (picture) Object.assign(picture, {nats: each.nats ?? null, png: each.b64_json, rows: event.height});
  }
}
