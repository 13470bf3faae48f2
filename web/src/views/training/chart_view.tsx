// A chart on the screen: the values under the pointer, zoom by dragging, keys for both, and files.
import {useRef, useState} from 'preact/hooks';

import {fontOf, rem, useDrawing, useSize} from '../../draw/canvas';
import {paintChart, planChart, smoothed, type ChartPlan, type ChartSpec} from '../../draw/chart';
import {palette} from '../../draw/colours';
import {csvOf} from '../../draw/csv';
import {download, fileName} from '../../draw/download';
import {savePng, saveSvg, type Paint} from '../../draw/figure_files';
import {CanvasPen} from '../../draw/pen';
import {placeOf, valueAt, type Range} from '../../draw/scale';
import {nearest} from '../../draw/series';
import {ExportMenu} from '../../ui/export_menu';

export interface ChartViewProps {
  spec: Omit<ChartSpec, 'letters' | 'names'>;
  isMain: boolean;
  cursor: number | undefined;  // an x value, the same in all charts
  onCursor: (x: number | undefined) => void;
  onZoom: (zoom: Range | undefined) => void;
}

const exportSize = {width: 960, height: 540};

function csvRows(spec: ChartViewProps['spec']) {
  return spec.curves.flatMap((curve) => [
    ...curve.line.x.map((x, index) => [curve.name, 'training', x, curve.line.y[index]]),
    ...curve.dots.x.map((x, index) => [curve.name, 'held out', x, curve.dots.y[index]]),
  ]);
}

function Readout(props: {spec: ChartViewProps['spec']; x: number | undefined}) {
  const {spec, x} = props;
  return (
    <ul class="readout" aria-label="Values">
      {spec.curves.map((curve) => {
        const line = smoothed(curve, spec.smoothing);
        const at = x === undefined ? line.x.length - 1 : nearest(line.x, x);
        const held = x === undefined ? curve.dots.x.length - 1 : nearest(curve.dots.x, x);
        const [value, dot] = [line.y[at], curve.dots.y[held]];
        return (
          <li key={curve.name} class="chip">
            <span class="swatch" style={{color: curve.colour}} />
            <span class="run-name">{curve.name}</span>
            {value === undefined ? null : <span>{spec.yText(value)}</span>}
            {dot === undefined ? null : <span class="soft" title="held out">● {spec.yText(dot)}</span>}
          </li>
        );
      })}
    </ul>
  );
}

export function ChartView(props: ChartViewProps) {
  const {spec, cursor} = props;
  const [box, size] = useSize<HTMLDivElement>();
  const [drag, setDrag] = useState<{from: number; to: number} | undefined>(undefined);
  const plan = useRef<ChartPlan | undefined>(undefined);
  const letters = rem() * 0.75;
  const whole: ChartSpec = {...spec, letters, names: props.isMain && size.width > 40 * rem() && spec.curves.length > 1 && spec.curves.length <= 12};
  const family = fontOf('sans', 1).replace(/^.*?px /, '');

  const canvas = useDrawing(size, (context) => {
    plan.current = paintChart(new CanvasPen(context, family), size, palette(), whole);
  }, [spec, whole.names, letters]);
  const above = useDrawing(size, (context) => {
    const pen = new CanvasPen(context, family);
    const now = plan.current ?? planChart(pen, size, whole);
    if (!now) return;
    const colours = palette();
    if (drag) {
      const [left, right] = [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)];
      pen.rectangle(left, now.top, right - left, now.bottom - now.top, {fill: colours.accent, alpha: 0.15});
    } else if (cursor !== undefined) {
      const x = placeOf(now.x, cursor);
      if (x < now.left - 1 || x > now.right + 1) return;
      pen.path([[x, now.top], [x, now.bottom]], {stroke: colours.soft, width: 1});
      for (const curve of spec.curves) {
        const line = smoothed(curve, spec.smoothing);
        const at = nearest(line.x, cursor);
        if (at < 0) continue;
        const y = placeOf(now.y, line.y[at]!);
        if (y >= now.top && y <= now.bottom) pen.circle(placeOf(now.x, line.x[at]!), y, 4, {fill: curve.colour, stroke: colours.paper, width: 1.5});
      }
    }
  }, [spec, cursor, drag, whole.names]);

  const placeUnder = (event: PointerEvent) => event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left;
  const snapped = (x: number): number | undefined => {
    const xs = spec.curves.map((curve) => curve.line.x).filter((each) => each.length > 0);
    const near = xs.map((each) => each[nearest(each, x)]!);
    return near.sort((a, b) => Math.abs(a - x) - Math.abs(b - x))[0];
  };
  const zoomTo = (from: number, to: number) => {
    if (!plan.current) return;
    const [a, b] = [valueAt(plan.current.x, Math.min(from, to)), valueAt(plan.current.x, Math.max(from, to))];
    props.onZoom({least: a, most: b});
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const now = plan.current;
    if (!now || event.ctrlKey || event.metaKey || event.altKey) return;
    const {least, most} = now.x.range;
    const at = cursor ?? (least + most) / 2;
    const step = (now.right - now.left) / (event.shiftKey ? 10 : 100);
    const move = (pixels: number) => props.onCursor(snapped(Math.max(least, Math.min(most, valueAt(now.x, placeOf(now.x, at) + pixels)))));
    const zoom = (factor: number) => {
      const center = placeOf(now.x, at);
      const half = (now.right - now.left) * factor / 2;
      if (factor < 1) zoomTo(Math.max(now.left, center - half), Math.min(now.right, center + half));
      else zoomTo(center - half, center + half);
    };
    switch (event.key) {
      case 'ArrowLeft': move(-step); break;
      case 'ArrowRight': move(step); break;
      case '+': case '=': zoom(0.5); break;
      case '-': zoom(2); break;
      case '0': case 'Escape': props.onZoom(undefined); break;
      default: return;
    }
    event.preventDefault();
  };
  const name = fileName(...spec.curves.slice(0, 3).map((curve) => curve.name), spec.yName);
  const paint: Paint = (pen, area, colours) => paintChart(pen, area, colours, {...whole, letters: 13, names: true});
  return (
    <figure class={props.isMain ? 'chart main-chart' : 'chart'}>
      <div class="chart-head">
        <Readout spec={spec} x={cursor} />
        <ExportMenu label={spec.yName} onPng={() => void savePng(name, exportSize, paint)}
                    onSvg={() => saveSvg(name, spec.yName, exportSize, paint)}
                    onCsv={() => download(`${name}.csv`, csvOf(['run', 'kind', spec.xName, spec.yName], csvRows(spec)), 'text/csv')} />
      </div>
      <div class="plot" ref={box} tabIndex={0} role="group" aria-describedby="chart-keys"
           aria-label={`Chart of ${spec.yName} by ${spec.xName}${cursor === undefined ? '' : ` at ${spec.xText(cursor)}`}`}
           onKeyDown={onKeyDown} onDblClick={() => props.onZoom(undefined)}
           onPointerDown={(event) => {
             if (event.button !== 0 || event.pointerType === 'touch') return;
             event.currentTarget.setPointerCapture(event.pointerId);
             const x = placeUnder(event);
             setDrag({from: x, to: x});
           }}
           onPointerMove={(event) => {
             const x = placeUnder(event);
             if (drag) setDrag({from: drag.from, to: x});
             if (plan.current) props.onCursor(snapped(valueAt(plan.current.x, x)));
           }}
           onPointerUp={() => {
             if (drag && Math.abs(drag.to - drag.from) > 6) zoomTo(drag.from, drag.to);
             setDrag(undefined);
           }}
           onPointerCancel={() => setDrag(undefined)} onPointerLeave={() => props.onCursor(undefined)}>
        <canvas ref={canvas} aria-hidden="true" />
        <canvas ref={above} aria-hidden="true" />
        {spec.curves.length === 0 ? <p class="nothing soft">Nothing logged yet.</p> : null}
      </div>
    </figure>
  );
}
