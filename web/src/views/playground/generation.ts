// The document and what is being drawn onto it.
import {signal} from '@preact/signals';

import {ApiError, isAbort} from '../../api/error';
import {streamEvents} from '../../api/http';
import type {CompletionChunk, Usage} from '../../api/types';
import {announce} from '../../ui/announce';
import {isString, keep, recall} from '../../ui/storage';
import {alternatives, completionBody, settings} from './settings';
import {beforeLastDraw, edited, textOf, typed, unitsOf, type Unit} from './units';

export interface Sample { units: Unit[]; finish: string | null }
export interface Speed { first: number | null; tokens: number; seconds: number }
export type Activity = {kind: 'idle'} | {kind: 'waiting'; since: number; progress: string} | {kind: 'drawing'};

export const draft = signal<readonly Unit[]>([]);
// Several samples that all go on from the draft, until one is taken over.
export const samples = signal<readonly Sample[]>([]);
export const activity = signal<Activity>({kind: 'idle'});
export const problem = signal<unknown>(undefined);
export const speed = signal<Speed | undefined>(undefined);
export const usage = signal<Usage | undefined>(undefined);
export const finish = signal<string | null>(null);
export const canUndo = signal(false);

let before: (readonly Unit[])[] = [];
let running: AbortController | undefined;
const mostSteps = 50;

export function startDraft(): void {
  const text = recall('draft', '', isString);
  if (text !== '' && draft.value.length === 0) draft.value = [typed(text)];
}

function setDraft(units: readonly Unit[]): void {
  draft.value = units;
}

function remember(): void {
  if (before.at(-1) === draft.value) return;
  before = [...before.slice(-mostSteps), draft.value];
  canUndo.value = true;
}

export function undo(): void {
  giveUp();
  const last = before.pop();
  canUndo.value = before.length > 0;
  samples.value = [];
  if (last) setDraft(last);
  keep('draft', textOf(draft.value));
}

let isTyping = false;

// Letters come one by one; to undo, they are one step.
export function edit(text: string): void {
  if (text === textOf(draft.value)) return;
  if (!isTyping) remember();
  isTyping = true;
  setDraft(edited(draft.value, text));
  keep('draft', text);
}

export function endTyping(): void {
  isTyping = false;
}

export function stop(): void {
  running?.abort();
}

// As stop(), but what was drawn is not kept.
function giveUp(): void {
  stop();
  running = undefined;
  activity.value = {kind: 'idle'};
}

export function take(index: number): void {
  const sample = samples.value[index];
  if (!sample) return;
  remember();
  samples.value = [];
  setDraft([...draft.value, ...sample.units]);
  keep('draft', textOf(draft.value));
}

// Puts another token in the place of one, and goes on from there.
export function replaceUnit(at: number, text: string, model: string): void {
  remember();
  samples.value = [];
  setDraft([...draft.value.slice(0, at), typed(text)]);
  void drawFrom(model);
}

export function goOn(model: string): Promise<void> {
  if (samples.value.length === 0) remember();
  samples.value = [];
  return drawFrom(model);
}

// The same place again, with the next seed.
export function drawAgain(model: string): Promise<void> {
  if (samples.value.length === 0) {
    remember();
    setDraft(beforeLastDraw(draft.value));
  }
  samples.value = [];
  return drawFrom(model);
}

async function drawFrom(model: string): Promise<void> {
  stop();
  const own = new AbortController();
  running = own;
  const chosen = settings.value;
  const start = draft.value;
  const begun = performance.now();
  const collector = new Collector(start, chosen.n, begun, () => running === own);
  problem.value = undefined;
  usage.value = undefined;
  speed.value = undefined;
  finish.value = null;
  activity.value = {kind: 'waiting', since: begun, progress: ''};
  const body = {...completionBody(model, textOf(start), chosen), logprobs: alternatives, stream: true,
                stream_options: {include_usage: true}};
  try {
    for await (const item of streamEvents('v1/completions', {body, signal: own.signal})) {
      if (item.kind === 'comment') {
        if (running === own) activity.value = {kind: 'waiting', since: begun, progress: item.text};
        continue;
      }
      if (item.data === '[DONE]') break;
      const chunk = JSON.parse(item.data) as CompletionChunk;
      if (chunk.error) throw new ApiError(chunk.error.message, 500);
      if (running === own) collector.add(chunk);
    }
    if (running === own) announce(`Done. ${textOf(collector.lastUnits()).slice(-300)}`);
  } catch (error) {
    if (!isAbort(error) && running === own) problem.value = error;
  } finally {
    if (running === own) {
      collector.flush();
      activity.value = {kind: 'idle'};
      running = undefined;
      keep('draft', textOf(draft.value));
    }
  }
}

// Chunks come faster than screens are drawn: what came is shown once per frame.
class Collector {
  private readonly drawn: Unit[][];
  private readonly finishes: (string | null)[];
  private first: number | null = null;
  private tokens = 0;
  private frame = 0;

  constructor(private readonly start: readonly Unit[], private readonly count: number, private readonly begun: number,
              private readonly isWanted: () => boolean) {
    this.drawn = Array.from({length: count}, () => []);
    this.finishes = Array.from({length: count}, () => null);
  }

  add(chunk: CompletionChunk): void {
    if (chunk.usage) usage.value = chunk.usage;
    for (const choice of chunk.choices) {
      const units = this.drawn[choice.index];
      if (!units) continue;
      this.first ??= performance.now();
      this.tokens += choice.logprobs?.tokens.length ?? 0;
      units.push(...unitsOf(choice.text, choice.logprobs));
      if (choice.finish_reason) this.finishes[choice.index] = choice.finish_reason;
    }
    this.frame ||= requestAnimationFrame(() => this.flush());
  }

  lastUnits(): readonly Unit[] {
    return this.drawn[0] ?? [];
  }

  flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.first === null || !this.isWanted()) return;
    const now = performance.now();
    speed.value = {first: (this.first - this.begun) / 1000, tokens: this.tokens, seconds: (now - this.first) / 1000};
    activity.value = {kind: 'drawing'};
    if (this.count === 1) {
      setDraft([...this.start, ...this.lastUnits()]);
      finish.value = this.finishes[0] ?? null;
      announce(textOf(this.lastUnits()).slice(-200));
    } else {
      samples.value = this.drawn.map((units, index) => ({units: [...units], finish: this.finishes[index] ?? null}));
    }
  }
}
