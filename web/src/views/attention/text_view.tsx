// A text of any length in which tokens are chosen. Only lines near the screen exist; what is drawn under and over them
// scrolls along with them, so nothing lags behind.
import {useEffect, useLayoutEffect, useMemo, useRef, useState} from 'preact/hooks';

import {fontOf, rem, sharpContext, useSize} from '../../draw/canvas';
import {palette} from '../../draw/colours';
import {hasModifier} from '../../ui/roving';
import {themeChanges} from '../../ui/theme';
import {drawArcs, drawBackgrounds, drawFrame, type Arc} from './draw_text';
import {LineSurface} from './line_surface';
import {OverviewRail} from './overview_rail';
import type {Shading} from './shading';
import {layOut, lineOfToken, tokenAt, type LetterWidths, type TextLayout} from './text_layout';

export const startSign = '▸';
export const nextSign = '…';
const padding = 10;

export interface TextViewProps {
  pieces: readonly string[];
  shading: Shading;
  position: number;
  marked: number | undefined;
  arcs: readonly Arc[];
  onSelect: (position: number) => void;
  onKey: (event: KeyboardEvent) => boolean;
}

function measure(pixels: number): LetterWidths {
  const probe = document.createElement('span');
  probe.className = 'text-line probe';
  probe.textContent = '0'.repeat(200);
  document.querySelector('.text-lines')?.append(probe);
  const cell = probe.getBoundingClientRect().width / 200;
  probe.remove();
  const context = document.createElement('canvas').getContext('2d');
  const kept = new Map<string, number>();
  const other = (text: string): number => {
    let width = kept.get(text);
    if (width === undefined) {
      if (context) context.font = fontOf('mono', pixels);
      kept.set(text, width = Math.max(cell, Math.ceil(context?.measureText(text).width ?? cell)));
    }
    return width;
  };
  return {cell, other};
}

function usePieces(pieces: readonly string[], width: number, pixels: number): TextLayout | undefined {
  return useMemo(() => width <= 0 ? undefined : layOut([startSign, ...pieces, nextSign], measure(pixels), width),
                 [pieces, width, pixels]);
}

export function TextView(props: TextViewProps) {
  const [scroller, size] = useSize<HTMLDivElement>();
  const lineBox = useRef<HTMLDivElement>(null);
  const under = useRef<HTMLCanvasElement>(null);
  const over = useRef<HTMLCanvasElement>(null);
  const surface = useRef<LineSurface | undefined>(undefined);
  const [top, setTop] = useState(0);
  const pixels = rem() * 0.875;
  const lineHeight = Math.round(pixels * 1.75);
  const width = Math.max(0, Math.floor(size.width) - 2 * padding);
  const layout = usePieces(props.pieces, width, pixels);
  const selected = props.position + 1;

  // Half a screen more on either side, so that most scrolling draws nothing.
  const seen = Math.ceil(size.height / lineHeight);
  const begin = Math.floor(top / lineHeight);
  const block = Math.max(1, Math.floor(seen / 2));
  const first = layout ? Math.max(0, Math.min(layout.lines, Math.floor(begin / block) * block - block)) : 0;
  const last = layout ? Math.min(layout.lines, first + seen + 3 * block) : 0;
  const themes = themeChanges.value;

  useLayoutEffect(() => {
    if (!layout || !lineBox.current) return;
    surface.current ??= new LineSurface(lineBox.current);
    surface.current.show(layout, first, last, lineHeight);
  }, [layout, first, last, lineHeight]);

  useLayoutEffect(() => {
    if (!layout || last <= first) return;
    const area = {width: width + padding, height: (last - first) * lineHeight};
    const lines = {layout, first, last, lineHeight};
    const colours = palette();
    const below = under.current && sharpContext(under.current, area);
    const above = over.current && sharpContext(over.current, area);
    if (below) {
      const drawn = drawBackgrounds(below, lines, props.shading, colours);
      scroller.current?.setAttribute('data-drawn', String(drawn));
    }
    if (!above) return;
    drawArcs(above, lines, selected, props.arcs, colours);
    drawFrame(above, lines, selected, colours.accent, 2);
    if (props.marked !== undefined) drawFrame(above, lines, props.marked + 1, colours.ink, 2);
  }, [layout, first, last, lineHeight, props.shading, props.arcs, selected, props.marked, themes]);

  // What was chosen comes into sight, in the middle where it was not seen before.
  useEffect(() => {
    const box = scroller.current;
    if (!layout || !box) return;
    const y = lineOfToken(layout, selected) * lineHeight;
    if (y < box.scrollTop || y + lineHeight > box.scrollTop + box.clientHeight) box.scrollTop = y - box.clientHeight / 2;
  }, [layout, selected, lineHeight]);

  const positionUnder = (event: MouseEvent): number | undefined => {
    const area = lineBox.current?.getBoundingClientRect();
    if (!layout || !area) return undefined;
    const token = tokenAt(layout, Math.floor((event.clientY - area.top) / lineHeight), event.clientX - area.left);
    return token === undefined ? undefined : token - 1;
  };
  const select = (position: number) => props.onSelect(Math.max(0, Math.min(props.pieces.length, position)));
  const byLine = (step: number) => {
    if (!layout) return;
    const line = Math.max(0, Math.min(layout.lines - 1, lineOfToken(layout, selected) + step));
    const x = layout.fragmentX[layout.tokenFirst[selected]!] ?? 0;
    const token = tokenAt(layout, line, x + 1);
    if (token !== undefined) select(token - 1);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (hasModifier(event)) return;
    const steps: Record<string, () => void> = {
      ArrowRight: () => select(props.position + 1), ArrowLeft: () => select(props.position - 1),
      ArrowDown: () => byLine(1), ArrowUp: () => byLine(-1), Home: () => select(0), End: () => select(props.pieces.length),
    };
    const step = event.shiftKey ? undefined : steps[event.key];
    if (step) step();
    else if (!props.onKey(event)) return;
    event.preventDefault();
  };
  const scrollToLine = (line: number) => {
    if (scroller.current) scroller.current.scrollTop = line * lineHeight - scroller.current.clientHeight / 2;
  };
  const y = first * lineHeight;
  const area = {width: `${width + padding}px`, height: `${Math.max(0, last - first) * lineHeight}px`, transform: `translateY(${y}px)`};
  return (
    <div class="text-view">
      <div class="text-scroller" ref={scroller} tabIndex={0} role="group" aria-describedby="text-keys"
           aria-label={`Text of ${props.pieces.length} tokens`} onKeyDown={onKeyDown}
           onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
        <div class="text-content" style={{height: `${(layout?.lines ?? 0) * lineHeight}px`, lineHeight: `${lineHeight}px`}}
             onClick={(event) => {
               const position = positionUnder(event);
               if (position !== undefined && String(getSelection()) === '') select(position);
             }}>
          <canvas ref={under} class="text-under" aria-hidden="true" style={area} />
          <div class="text-lines" ref={lineBox} />
          <canvas ref={over} class="text-over" aria-hidden="true" style={area} />
        </div>
      </div>
      {layout ? (
        <OverviewRail layout={layout} shading={props.shading} selected={selected} height={size.height}
                      view={{first: top / lineHeight, lines: seen}} onLine={scrollToLine} />
      ) : null}
      <p id="text-keys" class="hidden-text">Arrow keys choose a token. Shift and an arrow chooses another head or layer. The
        bracket keys go to the previous and the next member of the cluster.</p>
    </div>
  );
}
