// The text that is looked at, and what the server said about it.
import {signal} from '@preact/signals';

import {isAbort} from '../../api/error';
import {postJson} from '../../api/http';
import type {AttentionAnswer, ClustersAnswer, HeadReads, TokensAnswer} from '../../api/types';
import {allAtOnce} from './head_facts';

export interface Subject { model: string; text: string; answer: TokensAnswer }
export interface Reading { position: number; heads: HeadReads[] }

export const subject = signal<Subject | undefined>(undefined);
export const isReading = signal(false);
export const reading = signal<Reading | undefined>(undefined);
export const clusters = signal<{key: string; of: number[][]} | undefined>(undefined);
export const attentionProblem = signal<unknown>(undefined);

// Answers about this text, by question; a new text forgets them.
let answers = new Map<string, unknown>();
const mostAnswers = 200;
const pending = new Map<string, AbortController>();

// The newest question of a kind wins; the one before is given up.
async function ask<T>(kind: string, path: string, body: Record<string, unknown>, use: (answer: T) => void): Promise<void> {
  pending.get(kind)?.abort();
  pending.delete(kind);
  const key = path + JSON.stringify({...body, text: undefined});
  const kept = answers.get(key) as T | undefined;
  if (kept !== undefined) {
    use(kept);
    return;
  }
  const own = new AbortController();
  pending.set(kind, own);
  try {
    const answer = await postJson<T>(path, body, own.signal);
    if (pending.get(kind) !== own) return;
    if (answers.size >= mostAnswers) answers.delete(answers.keys().next().value!);
    answers.set(key, answer);
    attentionProblem.value = undefined;
    use(answer);
  } catch (error) {
    if (!isAbort(error) && pending.get(kind) === own) attentionProblem.value = error;
  } finally {
    if (pending.get(kind) === own) pending.delete(kind);
  }
}

export async function readText(model: string, text: string): Promise<void> {
  const old = subject.value;
  if (old && old.model === model && old.text === text) return;
  answers = new Map();
  isReading.value = true;
  await ask<TokensAnswer>('tokens', 'api/tokens', {model, text}, (answer) => {
    reading.value = undefined;
    clusters.value = undefined;
    subject.value = {model, text, answer};
  });
  isReading.value = pending.has('tokens');
}

export async function readPosition(position: number, layer: number, head: number): Promise<void> {
  const about = subject.value;
  if (!about) return;
  const {model, text, answer} = about;
  if (allAtOnce(answer.layers, answer.ids.length)) {
    await ask<AttentionAnswer>('attention', 'api/attention', {model, text, position},
                               ({heads}) => (reading.value = {position, heads}));
    return;
  }
  await ask<AttentionAnswer>('attention', 'api/attention', {model, text, position, layer, head}, ({heads}) => {
    const kept = reading.value?.position === position ? reading.value.heads : [];
    const others = kept.filter((each) => each.layer !== layer || each.head !== head);
    reading.value = {position, heads: [...others, ...heads]};
  });
}

export async function readClusters(layer: number, head: number): Promise<void> {
  const about = subject.value;
  if (!about) return;
  const key = `${layer}/${head}`;
  await ask<ClustersAnswer>('clusters', 'api/clusters', {model: about.model, text: about.text, layer, head},
                            (answer) => (clusters.value = {key, of: answer.clusters}));
}
