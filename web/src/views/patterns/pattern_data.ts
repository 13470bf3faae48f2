// The patterns that the server knows, and the rows of the one that is shown.
import {signal} from '@preact/signals';

import {isAbort} from '../../api/error';
import {getJson, postJson} from '../../api/http';
import type {PatternAnswer, PatternInfo} from '../../api/types';
import {patternBody} from './pattern_facts';

export const patterns = signal<readonly PatternInfo[] | undefined>(undefined);
export const thumbnails = signal<Readonly<Record<string, PatternAnswer>>>({});
export const shown = signal<PatternAnswer | undefined>(undefined);
export const patternProblem = signal<unknown>(undefined);

export const thumbnailTokens = 32;
let asking: AbortController | undefined;

export async function readPatterns(): Promise<void> {
  try {
    const answer = await getJson<{patterns: PatternInfo[]}>('api/patterns');
    patterns.value = answer.patterns;
    patternProblem.value = undefined;
    await readThumbnails(answer.patterns);
  } catch (error) {
    patternProblem.value = error;
  }
}

// One after the other: they are small, and the picture that the reader waits for comes between them.
async function readThumbnails(all: readonly PatternInfo[]): Promise<void> {
  for (const pattern of all) {
    try {
      const answer = await postJson<PatternAnswer>('api/patterns', patternBody(pattern, thumbnailTokens, true, {}));
      thumbnails.value = {...thumbnails.value, [pattern.name]: answer};
    } catch {
      // A thumbnail that cannot be had stays empty; choosing the pattern says why.
    }
  }
}

export async function showPattern(body: Record<string, unknown>): Promise<void> {
  asking?.abort();
  const own = new AbortController();
  asking = own;
  try {
    const answer = await postJson<PatternAnswer>('api/patterns', body, own.signal);
    if (asking !== own) return;
    shown.value = answer;
    patternProblem.value = undefined;
  } catch (error) {
    if (!isAbort(error) && asking === own) {
      shown.value = undefined;
      patternProblem.value = error;
    }
  }
}
