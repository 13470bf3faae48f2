// All patterns in small, to choose from: the paper's Figure 1.
import {useEffect, useRef} from 'preact/hooks';

import type {PatternAnswer, PatternInfo} from '../../api/types';
import {fontOf, rem, useDrawing} from '../../draw/canvas';
import {palette} from '../../draw/colours';
import {CanvasPen} from '../../draw/pen';
import {focusIndex, moved} from '../../ui/roving';
import {thumbnailTokens} from './pattern_data';
import {drawMatrix} from './pattern_picture';

function Thumbnail(props: {answer: PatternAnswer | undefined}) {
  const {answer} = props;
  // Whole pixels for a cell, so that no stripes appear.
  const tokens = answer?.n ?? thumbnailTokens;
  const cell = Math.max(1, Math.round(rem() * 4 / tokens));
  const side = cell * tokens + 2;
  const canvas = useDrawing({width: side, height: side}, (context) => {
    const colours = palette();
    const pen = new CanvasPen(context, fontOf('sans', 1));
    if (answer) drawMatrix(pen, {left: 1, top: 1, cell, n: answer.n}, answer, colours);
    else pen.rectangle(0.5, 0.5, side - 1, side - 1, {stroke: colours.line});
  }, [answer]);
  return <canvas ref={canvas} aria-hidden="true" style={{width: `${side}px`, height: `${side}px`}} />;
}

export function Gallery(props: {
  patterns: readonly PatternInfo[]; thumbnails: Readonly<Record<string, PatternAnswer>>; value: string;
  onChange: (name: string) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const {patterns, value} = props;
  // On narrow screens they are a row that scrolls.
  useEffect(() => {
    const chosen = box.current?.querySelector<HTMLElement>('[aria-checked="true"]');
    if (box.current && chosen) box.current.scrollLeft = chosen.offsetLeft - box.current.clientWidth / 2;
  }, [value, patterns]);
  const onKeyDown = (event: KeyboardEvent) => {
    const index = patterns.findIndex((pattern) => pattern.name === value);
    const key = event.key.replace('ArrowDown', 'ArrowRight').replace('ArrowUp', 'ArrowLeft');
    const next = moved(key, Math.max(0, index), {rows: 1, columns: patterns.length});
    const pattern = next === undefined ? undefined : patterns[next];
    if (next === undefined || !pattern) return;
    event.preventDefault();
    props.onChange(pattern.name);
    focusIndex(box.current, next);
  };
  return (
    <div class="gallery" role="radiogroup" aria-label="Pattern" ref={box} onKeyDown={onKeyDown}>
      {patterns.map((pattern, index) => (
        <button key={pattern.name} type="button" role="radio" data-index={index} aria-checked={pattern.name === value}
                tabIndex={pattern.name === value ? 0 : -1} onClick={() => props.onChange(pattern.name)}>
          <Thumbnail answer={props.thumbnails[pattern.name]} />
          <span>{pattern.name}</span>
        </button>
      ))}
    </div>
  );
}
