// Streams of made-up tokens with probabilities, as text, or as rows of pictures.
import {chance, hashOf} from './chance';
import {nextWord} from './made_up_text';
import type {MockModel} from './models';

export interface Drawn { text: string; tokens: string[]; logprobs: number[]; top: Record<string, number>[] }

function escaped(bytes: Buffer): string {
  return `bytes:${[...bytes].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`;
}

// One token of words, or the bytes of one character.
export function* drawTokens(model: MockModel, prompt: string, seed: number): Generator<Drawn> {
  const random = chance(seed * 7919 + hashOf(prompt) % 1000);
  let last = prompt.trimEnd().split(/\s+/).at(-1) ?? '.';
  for (;;) {
    const {word, others} = nextWord(last, random);
    last = word;
    // Like a model: most tokens are expected, some are not.
    const bits = random() < 0.55 ? random() * 1.2 : random() * random() * 11 + 0.5;
    if (model.tokens === 'bytes') {
      const letters = random() < 0.03 ? `${word} — café` : word;
      yield* bytesOfWord(letters, bits, random);
      continue;
    }
    const spoken = model.kind === 'symbols' ? ` ${Math.floor(random() * 64)}` : word;
    yield {text: spoken, tokens: [spoken], logprobs: [-bits * Math.LN2],
           top: [topOf(spoken, bits, model.kind === 'symbols' ? [' 1', ' 2', ' 3', ' 5'] : others)]};
  }
}

function topOf(own: string, bits: number, others: readonly string[]): Record<string, number> {
  const share = 2 ** -bits;
  const top: [string, number][] = [[own, share]];
  let rest = 1 - share;
  for (const other of others.slice(0, 8)) {
    rest *= 0.55;
    top.push([other, rest * 0.6]);
  }
  return Object.fromEntries(top.sort((a, b) => b[1] - a[1]).slice(0, 8).map(([text, p]) => [text, Math.log(Math.max(p, 1e-9))]));
}

function* bytesOfWord(word: string, bits: number, random: () => number): Generator<Drawn> {
  let first = true;
  for (const letter of word) {
    const bytes = Buffer.from(letter);
    const cost = first ? bits : random() * bits * 0.35;
    first = false;
    const tokens = bytes.length === 1 ? [letter] : [...bytes].map((byte) => escaped(Buffer.from([byte])));
    const logprobs = tokens.map((_, index) => -(index === 0 ? cost : 0.02) * Math.LN2);
    yield {text: letter, tokens, logprobs,
           top: tokens.map((token, index) => topOf(token, index === 0 ? cost : 0.02, [...'etaoins r'].filter((each) => each !== token)))};
  }
}

export function logprobsOf(drawn: Drawn) {
  return {tokens: drawn.tokens, token_logprobs: drawn.logprobs, top_logprobs: drawn.top, text_offset: drawn.tokens.map(() => 0),
          token_ids: drawn.tokens.map((token) => hashOf(token) % 1000), top_ids: []};
}

// A sky, a sea and a sun, another one for every seed.
export function pictureRow(seed: number, index: number, row: number, width: number, height: number): number[] {
  const random = chance(seed * 977 + index);
  const [horizon, sunX, sunY, hue] = [height * (0.5 + 0.25 * random()), width * random(), height * 0.35 * random() + 4, random()];
  const noise = chance(seed * 31 + index * 1009 + row);
  const values: number[] = [];
  for (let x = 0; x < width; ++x) {
    const isSun = (x - sunX) ** 2 + (row - sunY) ** 2 < 12;
    const depth = row / height;
    const base = isSun ? [255, 236, 170] : row < horizon ?
      [90 + 120 * depth + 60 * hue, 140 + 70 * depth, 225 - 70 * hue * depth] :
      [24 + 40 * hue, 70 + 60 * (1 - depth), 110 + 40 * (1 - hue)];
    for (const channel of base) values.push(Math.max(0, Math.min(255, Math.round(channel + (noise() - 0.5) * 26))));
  }
  return values;
}
