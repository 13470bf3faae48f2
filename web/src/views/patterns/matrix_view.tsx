// The matrix in large. The pointer or the arrow keys choose a row.
import type {PatternAnswer} from '../../api/types';
import {fontOf, rem, useDrawing, useSize} from '../../draw/canvas';
import {palette} from '../../draw/colours';
import {CanvasPen} from '../../draw/pen';
import {cellAt, drawCross, drawMatrix, type Matrix} from './pattern_picture';

export interface Cell { row: number; column: number | undefined }

export function MatrixView(props: {
  answer: PatternAnswer; cell: Cell; label: string; onCell: (cell: Cell, isChosen: boolean) => void;
}) {
  const {answer, cell} = props;
  const [box, size] = useSize<HTMLDivElement>();
  const margin = Math.round(rem() * 1.6);
  const side = Math.max(0, Math.min(size.width, size.height || size.width));
  const room = Math.max(1, side - margin - 2);
  const step = room / answer.n >= 3 ? Math.floor(room / answer.n) : room / answer.n;
  const matrix: Matrix = {left: margin, top: margin, cell: step, n: answer.n};
  const canvas = useDrawing({width: side, height: side}, (context) => {
    const colours = palette();
    const pen = new CanvasPen(context, fontOf('sans', 1).replace(/^.*?px /, ''));
    drawMatrix(pen, matrix, answer, colours);
    drawCross(pen, matrix, cell.row, cell.column, colours);
    const letters = {size: rem() * 0.75, colour: colours.soft};
    pen.letters('inputs', matrix.left, margin - 0.5 * rem(), letters);
    pen.letters('outputs', margin - 0.5 * rem(), matrix.top + step * answer.n, {...letters, turned: true});
  }, [answer, cell.row, cell.column, step]);
  const at = (event: MouseEvent) => {
    const area = canvas.current?.getBoundingClientRect();
    return area ? cellAt(matrix, event.clientX - area.left, event.clientY - area.top) : undefined;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const far = event.shiftKey ? 8 : 1;
    const rows = {ArrowDown: far, ArrowUp: -far, PageDown: 16, PageUp: -16, Home: -answer.n, End: answer.n}[event.key];
    const columns = {ArrowRight: far, ArrowLeft: -far}[event.key];
    if (rows === undefined && columns === undefined) return;
    event.preventDefault();
    const limit = (value: number) => Math.max(0, Math.min(answer.n - 1, value));
    const column = columns === undefined ? cell.column : limit((cell.column ?? cell.row) + columns);
    props.onCell({row: limit(cell.row + (rows ?? 0)), column}, true);
  };
  return (
    <div class="matrix" ref={box}>
      <canvas ref={canvas} tabIndex={0} role="img" aria-label={props.label} aria-describedby="row-keys"
              style={{width: `${side}px`, height: `${side}px`}} onKeyDown={onKeyDown}
              onMouseMove={(event) => {
                const found = at(event);
                if (found) props.onCell(found, false);
              }}
              onClick={(event) => {
                const found = at(event);
                if (found) props.onCell(found, true);
              }} />
      <p id="row-keys" class="hidden-text">Arrow keys choose a row and a column.</p>
    </div>
  );
}
