// The matrix of a pattern: rows are outputs, columns inputs, colours groups. The same code draws the thumbnail, the
// picture and the exported file.
import type {PatternAnswer} from '../../api/types';
import {groupColour, type Palette} from '../../draw/colours';
import type {Pen} from '../../draw/pen';
import {keysOf} from './pattern_facts';

export interface Matrix { left: number; top: number; cell: number; n: number }

export function cellAt(matrix: Matrix, x: number, y: number): {row: number; column: number} | undefined {
  const column = Math.floor((x - matrix.left) / matrix.cell);
  const row = Math.floor((y - matrix.top) / matrix.cell);
  const inside = row >= 0 && column >= 0 && row < matrix.n && column < matrix.n;
  return inside ? {row, column} : undefined;
}

// Neighbouring cells of one colour are one rectangle; a full pattern of 512 tokens has 512 then, not 130,000.
export function drawMatrix(pen: Pen, matrix: Matrix, answer: PatternAnswer, colours: Palette): void {
  const {left, top, cell, n} = matrix;
  pen.rectangle(left, top, n * cell, n * cell, {fill: colours.paper});
  const gap = cell >= 7 ? 1 : 0;
  for (let row = 0; row < n; ++row) {
    const keys = keysOf(answer, row);
    const y = top + row * cell;
    for (let at = 0; at < keys.length;) {
      const {key, groups} = keys[at]!;
      let end = at + 1;
      if (gap === 0) {
        while (end < keys.length && keys[end]!.key === key + end - at && keys[end]!.groups[0] === groups[0] &&
               keys[end]!.groups.length === 1 && groups.length === 1) {
          ++end;
        }
      }
      const x = left + key * cell;
      pen.rectangle(x, y, (end - at) * cell - gap, cell - gap, {fill: groupColour(groups[0]!, colours)});
      if (groups.length > 1 && cell >= 4) {
        const mark = Math.max(1.5, cell * 0.3);
        pen.rectangle(x + (cell - gap - mark) / 2, y + (cell - gap - mark) / 2, mark, mark, {fill: colours.ink});
      }
      at = end;
    }
  }
  pen.rectangle(left, top, n * cell, n * cell, {stroke: colours.edge, width: 1});
}

// The row and the column under the pointer.
export function drawCross(pen: Pen, matrix: Matrix, row: number, column: number | undefined, colours: Palette): void {
  const {left, top, cell, n} = matrix;
  const width = Math.max(1.5, Math.min(2.5, cell / 5));
  pen.rectangle(left, top + row * cell, n * cell, cell, {stroke: colours.ink, width});
  if (column !== undefined) pen.rectangle(left + column * cell, top, cell, n * cell, {stroke: colours.soft, width: 1});
}
