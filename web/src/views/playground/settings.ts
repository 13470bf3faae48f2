// How tokens are drawn: what the reader chose, kept for the next time.
import {signal} from '@preact/signals';

import {isRecord, keep, recall} from '../../ui/storage';

export interface Settings {
  temperature: number; top_p: number; top_k: number; min_p: number; repetition_penalty: number;
  max_tokens: number; n: number; seed: number; stop: string; ignore_end: boolean;
}
export type NumberSetting = {[K in keyof Settings]: Settings[K] extends number ? K : never}[keyof Settings];

export const standard: Settings = {
  temperature: 1, top_p: 0.8, top_k: 0, min_p: 0, repetition_penalty: 1,
  max_tokens: 256, n: 1, seed: 1, stop: '', ignore_end: false,
};

export interface DialSpec { name: NumberSetting; label: string; least: number; most: number; step: number; hint: string }

export const samplingDials: readonly DialSpec[] = [
  {name: 'temperature', label: 'Temperature', least: 0, most: 2, step: 0.05, hint: '0 always takes the likeliest token'},
  {name: 'top_p', label: 'Top p', least: 0.01, most: 1, step: 0.01, hint: 'of the likeliest tokens'},
  {name: 'top_k', label: 'Top k', least: 0, most: 200, step: 1, hint: 'likeliest tokens; 0 for all'},
  {name: 'min_p', label: 'Min p', least: 0, most: 1, step: 0.01, hint: 'times the likeliest, or more'},
  {name: 'repetition_penalty', label: 'Repetition penalty', least: 1, most: 2, step: 0.01, hint: '1 for none'},
];
export const lengthDials: readonly DialSpec[] = [
  {name: 'max_tokens', label: 'New tokens', least: 1, most: 4096, step: 1, hint: ''},
  {name: 'n', label: 'Samples side by side', least: 1, most: 8, step: 1, hint: ''},
];

const isSettings = (value: unknown): value is Settings =>
    isRecord(value) && Object.entries(standard).every(([name, usual]) => typeof value[name] === typeof usual);

export const settings = signal<Settings>(standard);

export function startSettings(): void {
  settings.value = recall('sampler', standard, isSettings);
}

export function change(part: Partial<Settings>): void {
  settings.value = {...settings.value, ...part};
  keep('sampler', settings.value);
}

// One stop text a line; \n in it is an end of line.
export function stopsOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '').map((line) => line.replaceAll('\\n', '\n'));
}

export const alternatives = 8;

// The body of a request. What has its neutral value is left out, so that a copied command stays short.
export function completionBody(model: string, prompt: string, chosen: Settings): Record<string, unknown> {
  const body: Record<string, unknown> = {model, prompt, max_tokens: chosen.max_tokens, seed: chosen.seed};
  for (const {name} of samplingDials) if (chosen[name] !== standard[name]) body[name] = chosen[name];
  if (chosen.n !== 1) body['n'] = chosen.n;
  const stops = stopsOf(chosen.stop);
  if (stops.length > 0) body['stop'] = stops;
  if (chosen.ignore_end) body['ignore_end'] = true;
  return body;
}

export function imageBody(model: string, chosen: Settings): Record<string, unknown> {
  const body: Record<string, unknown> = {model, n: chosen.n, seed: chosen.seed};
  for (const {name} of samplingDials) {
    if (name !== 'repetition_penalty' && chosen[name] !== standard[name]) body[name] = chosen[name];
  }
  return body;
}

// A command for a shell: in single quotes, where only the quote itself needs care.
export function curlOf(address: string, body: Record<string, unknown>): string {
  return `curl ${address} -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
}
