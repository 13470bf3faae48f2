// What lies under and over the visible lines: the backgrounds of tokens, and arcs to what is read.
import type {Palette} from '../../draw/colours';
import {bandsOf, type Shading} from './shading';
import {boxOfToken, type TextLayout} from './text_layout';

export interface Lines { layout: TextLayout; first: number; last: number; lineHeight: number }
export interface Arc { token: number; share: number }

// The space before a word belongs to its token, but it may hang at the end of another line: the word stands for both.
function isJustSpace(layout: TextLayout, index: number): boolean {
  const token = layout.fragmentToken[index]!;
  return layout.fragmentText[index]![0] === ' ' && layout.tokenFirst[token + 1]! - layout.tokenFirst[token]! > 1;
}

// Tokens of the layout are positions + 1: the first one is the start. Returns how many fragments it looked at.
export function drawBackgrounds(context: CanvasRenderingContext2D, lines: Lines, shading: Shading, colours: Palette): number {
  const {layout, first, last, lineHeight} = lines;
  if (last <= first) return 0;
  const [begin, end] = [layout.lineFirst[first]!, layout.lineFirst[last]!];
  for (let index = begin; index < end; ++index) {
    const bands = bandsOf(shading, layout.fragmentToken[index]! - 1, colours);
    if (bands.length === 0 || isJustSpace(layout, index)) continue;
    const top = (layout.fragmentLine[index]! - first) * lineHeight + 1;
    const height = (lineHeight - 2) / bands.length;
    const width = layout.fragmentWidth[index]!;
    bands.forEach((colour, band) => {
      context.fillStyle = colour;
      context.fillRect(layout.fragmentX[index]!, top + band * height, width, height);
    });
  }
  return end - begin;
}

// A frame around all parts of a token.
export function drawFrame(context: CanvasRenderingContext2D, lines: Lines, token: number, colour: string, width: number): void {
  const {layout, first, last, lineHeight} = lines;
  context.strokeStyle = colour;
  context.lineWidth = width;
  for (let index = layout.tokenFirst[token] ?? 0; index < (layout.tokenFirst[token + 1] ?? 0); ++index) {
    const line = layout.fragmentLine[index]!;
    if (line < first || line >= last) continue;
    if (isJustSpace(layout, index)) continue;
    context.strokeRect(layout.fragmentX[index]! - 0.5, (line - first) * lineHeight + 1.5, layout.fragmentWidth[index]! + 1, lineHeight - 3);
  }
}

// From the bottom of what is read to the top of who reads; along one line, over it.
export function drawArcs(context: CanvasRenderingContext2D, lines: Lines, from: number, arcs: readonly Arc[], colours: Palette): void {
  const {layout, first, lineHeight} = lines;
  const query = boxOfToken(layout, from);
  const x = query.x + query.width / 2;
  const y = (query.line - first) * lineHeight + 2;
  context.lineCap = 'round';
  for (const {token, share} of arcs) {
    const key = boxOfToken(layout, token);
    const keyX = key.x + key.width / 2;
    context.strokeStyle = context.fillStyle = colours.accent;
    context.globalAlpha = 0.25 + 0.5 * share;
    context.lineWidth = 0.75 + 1.75 * share;
    context.beginPath();
    if (key.line === query.line) {
      const high = Math.min(1.6 * lineHeight, 6 + Math.abs(x - keyX) * 0.3);
      context.moveTo(keyX, y);
      context.bezierCurveTo(keyX, y - high, x, y - high, x, y);
      context.stroke();
      context.globalAlpha = 0.95;
      context.beginPath();
      context.arc(keyX, y, 2.5, 0, 2 * Math.PI);
      context.fill();
      continue;
    }
    const keyY = (key.line - first + 1) * lineHeight - 2;
    const bend = Math.max(lineHeight * 0.6, (y - keyY) * 0.45);
    context.moveTo(keyX, keyY);
    context.bezierCurveTo(keyX, keyY + bend, x, y - bend, x, y);
    context.stroke();
    context.globalAlpha = 0.95;
    context.beginPath();
    context.arc(keyX, keyY, 2.5, 0, 2 * Math.PI);
    context.fill();
  }
  context.globalAlpha = 1;
}
