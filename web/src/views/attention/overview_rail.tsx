// The whole text in one strip: where the weight lies or the members of a cluster stand, and which part is on the screen.
import {rem, useDrawing} from '../../draw/canvas';
import {groupColour, palette} from '../../draw/colours';
import type {Shading} from './shading';
import {lineOfToken, type TextLayout} from './text_layout';

function marksOf(shading: Shading): {position: number; strength: number; group: number | undefined}[] {
  if (shading.kind === 'reads') {
    return [...shading.weights].map(([position, weight]) =>
      ({position, strength: Math.sqrt(weight / shading.largest), group: undefined}));
  }
  if (shading.kind === 'none') return [];
  const marks: {position: number; strength: number; group: number | undefined}[] = [];
  shading.of.forEach((own, position) => {
    const group = shading.only === undefined ? own[0] : own.find((cluster) => shading.only?.includes(cluster));
    if (group !== undefined) marks.push({position, strength: shading.only === undefined ? 0.5 : 1, group});
  });
  return marks;
}

export function OverviewRail(props: {
  layout: TextLayout; shading: Shading; selected: number; height: number; view: {first: number; lines: number};
  onLine: (line: number) => void;
}) {
  const {layout, view} = props;
  const width = Math.round(rem() * 0.9);
  const scale = props.height / Math.max(1, layout.lines, view.lines);
  const canvas = useDrawing({width, height: props.height}, (context) => {
    const colours = palette();
    const thick = Math.max(1.5, scale);
    const y = (position: number) => lineOfToken(layout, position + 1) * scale;
    for (const {position, strength, group} of marksOf(props.shading)) {
      context.globalAlpha = 0.25 + 0.75 * strength;
      context.fillStyle = group === undefined ? colours.accent : groupColour(group, colours);
      context.fillRect(3, y(position), width - 6, thick);
    }
    context.globalAlpha = 1;
    context.fillStyle = colours.ink;
    context.fillRect(0, lineOfToken(layout, props.selected) * scale, width, Math.max(2, thick));
  }, [layout, props.shading, props.selected, scale]);
  const jump = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    props.onLine((event.clientY - box.top) / scale);
  };
  return (
    <div class="rail" style={{width: `${width}px`}} aria-hidden="true"
         onPointerDown={(event) => {
           event.currentTarget.setPointerCapture(event.pointerId);
           jump(event);
         }}
         onPointerMove={(event) => {
           if (event.buttons > 0) jump(event);
         }}>
      <canvas ref={canvas} style={{width: `${width}px`, height: `${props.height}px`}} />
      <div class="rail-view" style={{top: `${view.first * scale}px`, height: `${Math.max(6, view.lines * scale)}px`}} />
    </div>
  );
}
