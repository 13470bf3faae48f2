// What was typed or drawn, cut into units: a unit is a token whose text can be shown, or the few tokens that make one
// character together.
import type {Logprobs} from '../../api/types';

export interface Alternative { text: string; logprob: number }
export interface Token { text: string; logprob: number | null; others: Alternative[] }
// `tokens` is empty where the text was typed.
export interface Unit { text: string; tokens: Token[]; isDrawn: boolean }

export const typed = (text: string): Unit => ({text, tokens: [], isDrawn: false});
export const textOf = (units: readonly Unit[]): string => units.map((unit) => unit.text).join('');

const bytesMark = 'bytes:';

// The bytes of a token that is no whole text by itself, "bytes:\xe2\x80" as OpenAI writes it.
export function bytesOf(token: string): number[] | undefined {
  if (!token.startsWith(bytesMark)) return undefined;
  const escapes = token.slice(bytesMark.length);
  if (!/^(\\x[0-9a-f]{2})+$/i.test(escapes)) return undefined;
  return escapes.split('\\x').slice(1).map((hex) => parseInt(hex, 16));
}

// What a person reads for a token, half characters included.
export function tokenLabel(token: string): string {
  const bytes = bytesOf(token);
  return bytes ? bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('') : token;
}

export function bitsOf(logprob: number): number {
  return logprob === 0 ? 0 : -logprob / Math.LN2;
}

// Bits of the whole unit; null where a token of it has no probability, as the first of an echoed prompt.
export function unitBits(unit: Unit): number | null {
  if (unit.tokens.length === 0) return null;
  let bits = 0;
  for (const token of unit.tokens) {
    if (token.logprob === null) return null;
    bits += bitsOf(token.logprob);
  }
  return bits;
}

// Level n: the token was expected with a probability between 2^-n and 2^-(n+1). The last level has all below.
export const levels = 10;
export function levelOf(bits: number): number {
  return Math.max(0, Math.min(levels - 1, Math.floor(bits)));
}

function tokensOf(logprobs: Logprobs): Token[] {
  return logprobs.tokens.map((text, index) => ({
    text,
    logprob: logprobs.token_logprobs[index] ?? null,
    others: Object.entries(logprobs.top_logprobs?.[index] ?? {})
                .map(([other, logprob]) => ({text: other, logprob}))
                .sort((a, b) => b.logprob - a.logprob),
  }));
}

// Cuts the text of a chunk along its tokens. The text decides what is shown: it may end before its tokens do, at a stop
// text, and bytes of several tokens may be one character of it.
export function unitsOf(text: string, logprobs: Logprobs | null): Unit[] {
  if (!logprobs) return text === '' ? [] : [{text, tokens: [], isDrawn: true}];
  const units: Unit[] = [];
  let rest = text;
  let parts: Token[] = [];
  const close = (shown: string) => {
    if (shown !== '') units.push({text: shown, tokens: parts, isDrawn: true});
    parts = [];
    rest = rest.slice(shown.length);
  };
  const all = tokensOf(logprobs);
  all.forEach((token, index) => {
    const bytes = bytesOf(token.text);
    if (!bytes) {
      // Bytes before it that never became a character of their own: what the text has up to this token.
      if (parts.length > 0) close(textBefore(rest, token.text));
      parts.push(token);
      close(rest.startsWith(token.text) ? token.text : index === all.length - 1 ? rest : commonStart(rest, token.text));
      return;
    }
    parts.push(token);
    const character = decoded(parts);
    if (character !== undefined && rest.startsWith(character)) close(character);
  });
  if (rest !== '') close(rest);
  return units;
}

function decoded(parts: readonly Token[]): string | undefined {
  try {
    const bytes = parts.flatMap((part) => bytesOf(part.text) ?? []);
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(new Uint8Array(bytes));
  } catch {
    return undefined;
  }
}

function textBefore(rest: string, next: string): string {
  const at = next === '' ? -1 : rest.indexOf(next);
  return at < 0 ? '' : rest.slice(0, at);
}

function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) ++length;
  return one.slice(0, length);
}

// After the reader edited the text: what stands before the change keeps its tokens, the rest is typed.
export function edited(units: readonly Unit[], text: string): Unit[] {
  const kept: Unit[] = [];
  let at = 0;
  for (const unit of units) {
    if (!text.startsWith(unit.text, at)) break;
    kept.push(unit);
    at += unit.text.length;
  }
  const rest = text.slice(at);
  return rest === '' ? kept : [...kept, typed(rest)];
}

// Without what was drawn last.
export function beforeLastDraw(units: readonly Unit[]): Unit[] {
  let end = units.length;
  while (end > 0 && units[end - 1]?.isDrawn) --end;
  return units.slice(0, end);
}

export interface Cost { tokens: number; bits: number }

export function costOf(units: readonly Unit[]): Cost {
  const cost = {tokens: 0, bits: 0};
  for (const unit of units) {
    for (const token of unit.tokens) {
      if (token.logprob === null) continue;
      ++cost.tokens;
      cost.bits += bitsOf(token.logprob);
    }
  }
  return cost;
}
