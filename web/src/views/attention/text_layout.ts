// Where each token of a text stands, worked out without the browser: 32,000 tokens take a few milliseconds, and only the
// lines that are seen become elements.
//
// A token is one or more fragments: it is cut at ends of lines, around spaces (so that lines break there) and where it is
// wider than a line. Lists are flat and typed; line l has the fragments lineFirst[l] to lineFirst[l + 1] - 1, token t
// those from tokenFirst[t] to tokenFirst[t + 1] - 1.

export interface TextLayout {
  tokens: number;
  lines: number;
  lineFirst: Int32Array;
  tokenFirst: Int32Array;
  fragmentToken: Int32Array;
  fragmentLine: Int32Array;
  fragmentX: Float32Array;
  fragmentWidth: Float32Array;
  fragmentText: string[];
}

export interface LetterWidths {
  cell: number;  // of a letter of the fixed-width font
  other: (text: string) => number;  // of what that font may not have
}

export const endSign = '↵';
const mark = '·';
const tab = '    ';

export const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

// The fragments of a piece, in order; an end of line is a sign of its own.
export function fragmentsOf(piece: string): string[] {
  if (piece === '') return [mark];
  const shown = piece.replace(/\r\n?/g, '\n').replace(/\t/g, tab);
  const parts = shown.match(/\n| +|[^\n ]+/g) ?? [];
  return parts.map((part) => part === '\n' ? endSign : part.replace(/[\u0000-\u001F\u007F]/g, mark));
}

function cutToWidth(text: string, widths: LetterWidths, width: number): string[] {
  if (text.length * widths.cell * 2 <= width || widthOf(text, widths) <= width) return [text];
  const parts: string[] = [];
  let part = '';
  for (const letter of text) {
    if (part !== '' && widthOf(part + letter, widths) > width) {
      parts.push(part);
      part = '';
    }
    part += letter;
  }
  parts.push(part);
  return parts;
}

function widthOf(text: string, widths: LetterWidths): number {
  return isPlain(text) ? text.length * widths.cell : widths.other(text);
}

// Letters of scripts without spaces between words: a line may break at each.
const breaksAnywhere = /^[\u2E80-\u9FFF\uAC00-\uD7AF\uF900-\uFAFF\uFF00-\uFFEF]/;

export function layOut(pieces: readonly string[], widths: LetterWidths, width: number): TextLayout {
  const text: string[] = [];
  const token: number[] = [];
  const tokenFirst = new Int32Array(pieces.length + 1);
  pieces.forEach((piece, index) => {
    tokenFirst[index] = text.length;
    for (const fragment of fragmentsOf(piece)) {
      for (const part of cutToWidth(fragment, widths, width)) {
        text.push(part);
        token.push(index);
      }
    }
  });
  tokenFirst[pieces.length] = text.length;

  const count = text.length;
  const line = new Int32Array(count);
  const x = new Float32Array(count);
  const wide = new Float32Array(count);
  const lineFirst = [0];
  let at = 0;          // the pen on this line
  let breakAt = 0;     // the first fragment of the word that is being set
  for (let index = 0; index < count; ++index) {
    const fragment = text[index]!;
    const own = wide[index] = widthOf(fragment, widths);
    const begin = lineFirst.at(-1)!;
    const isSpace = fragment[0] === ' ';
    const before = index > begin ? text[index - 1]! : '';
    if (isSpace || before.startsWith(' ') || breaksAnywhere.test(fragment)) breakAt = index;
    // Spaces and signs of ends may hang over the edge; a word may not.
    if (!isSpace && fragment !== endSign && at + own > width && index > begin) {
      const first = breakAt > begin ? breakAt : index;
      lineFirst.push(first);
      at = 0;
      for (let moved = first; moved < index; ++moved) {
        x[moved] = at;
        line[moved] = lineFirst.length - 1;
        at += wide[moved]!;
      }
    }
    x[index] = at;
    line[index] = lineFirst.length - 1;
    at += own;
    if (fragment === endSign && index + 1 < count) {
      lineFirst.push(index + 1);
      at = 0;
      breakAt = index + 1;
    }
  }
  const lines = count === 0 ? 0 : lineFirst.length;
  lineFirst.length = lines;
  lineFirst.push(count);
  return {tokens: pieces.length, lines, lineFirst: Int32Array.from(lineFirst), tokenFirst, fragmentToken: Int32Array.from(token),
          fragmentLine: line, fragmentX: x, fragmentWidth: wide, fragmentText: text};
}

export function lineOfToken(layout: TextLayout, token: number): number {
  return layout.fragmentLine[layout.tokenFirst[token] ?? 0] ?? 0;
}

// The token at a place of a line: the one there, or the nearest.
export function tokenAt(layout: TextLayout, line: number, x: number): number | undefined {
  if (line < 0 || line >= layout.lines) return undefined;
  let [low, high] = [layout.lineFirst[line]!, layout.lineFirst[line + 1]! - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (layout.fragmentX[middle]! <= x) low = middle;
    else high = middle - 1;
  }
  return layout.fragmentToken[low];
}

export interface Box { x: number; line: number; width: number }

// Where an arc to a token ends: its widest part that is no space.
export function boxOfToken(layout: TextLayout, token: number): Box {
  let best = layout.tokenFirst[token] ?? 0;
  let widest = -1;
  for (let index = best; index < (layout.tokenFirst[token + 1] ?? 0); ++index) {
    const width = layout.fragmentText[index]![0] === ' ' ? 0 : layout.fragmentWidth[index]!;
    if (width <= widest) continue;
    widest = width;
    best = index;
  }
  return {x: layout.fragmentX[best] ?? 0, line: layout.fragmentLine[best] ?? 0, width: layout.fragmentWidth[best] ?? 0};
}
