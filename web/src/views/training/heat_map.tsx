// How a routed head shares its tokens among clusters, step by step: rows are clusters, columns steps.
import {useState} from 'preact/hooks';

import type {ClusterHistory} from '../../api/types';
import {fontOf, rem, useDrawing, useSize, type Size} from '../../draw/canvas';
import {palette, type Palette} from '../../draw/colours';
import {csvOf} from '../../draw/csv';
import {download, fileName} from '../../draw/download';
import {savePng, saveSvg} from '../../draw/figure_files';
import {CanvasPen, type Pen} from '../../draw/pen';
import {ExportMenu} from '../../ui/export_menu';
import {digits, percent, whole} from '../../ui/format';
import {heatColour, isDead, timesFair} from './heat_scale';

interface Field { left: number; top: number; width: number; height: number; columns: number; rows: number }

function fieldOf(size: Size, letters: number, history: ClusterHistory, clusters: number): Field {
  const left = letters * 2.2;
  return {left, top: 1, width: size.width - left - 1, height: size.height - letters * 1.8 - 1, columns: history.steps.length, rows: clusters};
}

function paintHeat(pen: Pen, field: Field, letters: number, colours: Palette, shown: {history: ClusterHistory; head: number; deadShare: number}): void {
  const {history, head, deadShare} = shown;
  const [wide, high] = [field.width / Math.max(1, field.columns), field.height / field.rows];
  for (let column = 0; column < field.columns; ++column) {
    const shares = history.shares[column]?.[head] ?? [];
    for (let row = 0; row < field.rows; ++row) {
      const colour = heatColour(timesFair(shares[row] ?? NaN, field.rows), deadShare, colours);
      // Half a pixel more, so that no paper shows between cells.
      pen.rectangle(field.left + column * wide, field.top + row * high, wide + 0.5, high + 0.5, {fill: colour});
    }
  }
  const style = {size: letters, colour: colours.soft};
  const edge = Math.max(high / 2, letters * 0.5);
  pen.letters('0', field.left - letters * 0.4, field.top + edge, {...style, align: 'end', middle: true});
  pen.letters(String(field.rows - 1), field.left - letters * 0.4, field.top + field.height - edge, {...style, align: 'end', middle: true});
  const baseline = field.top + field.height + letters * 1.3;
  const [first, last] = [history.steps[0], history.steps.at(-1)];
  if (first !== undefined) pen.letters(whole(first), field.left, baseline, style);
  if (last !== undefined && last !== first) pen.letters(`step ${whole(last)}`, field.left + field.width, baseline, {...style, align: 'end'});
}

export function HeatMap(props: {run: string; history: ClusterHistory; head: number; deadShare: number}) {
  const {history, head, deadShare} = props;
  const info = history.heads[head]!;
  const [box, size] = useSize<HTMLDivElement>();
  const [cell, setCell] = useState<{column: number; row: number} | undefined>(undefined);
  const letters = rem() * 0.7;
  const field = fieldOf(size, letters, history, info.clusters);
  const canvas = useDrawing(size, (context) => {
    const colours = palette();
    const pen = new CanvasPen(context, fontOf('sans', 1).replace(/^.*?px /, ''));
    paintHeat(pen, field, letters, colours, {history, head, deadShare});
    if (!cell || cell.column >= field.columns) return;
    const [wide, high] = [field.width / field.columns, field.height / field.rows];
    pen.rectangle(field.left + cell.column * wide, field.top + cell.row * high, Math.max(3, wide), Math.max(3, high),
                  {stroke: colours.ink, width: 1.5});
  }, [history, head, deadShare, cell, letters]);
  const share = cell ? history.shares[cell.column]?.[head]?.[cell.row] : undefined;
  const shares = history.shares.at(-1)?.[head] ?? [];
  const dead = shares.filter((each) => isDead(timesFair(each, info.clusters), deadShare)).length;
  const text = cell && share !== undefined ?
    `step ${whole(history.steps[cell.column]!)}, cluster ${cell.row}: ${percent(share)}, ${digits(timesFair(share, info.clusters), 2)} × fair` :
    dead > 0 ? `${dead} of ${info.clusters} dead now` : `${info.clusters} clusters`;
  const limit = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
  const onKeyDown = (event: KeyboardEvent) => {
    const step = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (!step || field.columns === 0) return;
    event.preventDefault();
    const from = cell ?? {column: field.columns - 1, row: 0};
    setCell({column: limit(from.column + step[0]! * (event.shiftKey ? 10 : 1), field.columns), row: limit(from.row + step[1]!, field.rows)});
  };
  const name = fileName(props.run, info.attention, 'head', String(info.head), 'clusters');
  const exportSize = {width: 640, height: 60 + 14 * info.clusters};
  const paint = (pen: Pen, area: Size, colours: Palette) =>
    paintHeat(pen, fieldOf(area, 12, history, info.clusters), 12, colours, {history, head, deadShare});
  const csv = () => csvOf(['step', ...shares.map((_, cluster) => `cluster ${cluster}`)],
                          history.steps.map((step, column) => [step, ...history.shares[column]?.[head] ?? []]));
  return (
    <figure class="heat">
      <figcaption>
        <h3>{info.attention}, head {info.head}</h3>
        <span class={dead > 0 && !cell ? 'label bad' : 'label'}>{text}</span>
        <ExportMenu label={`clusters of ${info.attention}, head ${info.head}`} onPng={() => void savePng(name, exportSize, paint)}
                    onSvg={() => saveSvg(name, name, exportSize, paint)} onCsv={() => download(`${name}.csv`, csv(), 'text/csv')} />
      </figcaption>
      <div class="heat-plot" ref={box} tabIndex={0} role="group" aria-label={`Clusters of ${info.attention}, head ${info.head}. ${text}`}
           style={{height: `${Math.max(6, Math.min(15, info.clusters * 0.45 + 2))}rem`}} onKeyDown={onKeyDown}
           onPointerMove={(event) => {
             const area = event.currentTarget.getBoundingClientRect();
             const column = Math.floor((event.clientX - area.left - field.left) / field.width * field.columns);
             const row = Math.floor((event.clientY - area.top - field.top) / field.height * field.rows);
             const inside = column >= 0 && row >= 0 && column < field.columns && row < field.rows;
             setCell(inside ? {column, row} : undefined);
           }}
           onPointerLeave={() => setCell(undefined)}>
        <canvas ref={canvas} aria-hidden="true" />
      </div>
    </figure>
  );
}
