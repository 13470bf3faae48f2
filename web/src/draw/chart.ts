// A chart of several runs over one x axis: pale lines as measured, lines as smoothed, dots of held-out values, names.
import type {Size} from './canvas';
import {mix} from './colour_math';
import type {Palette} from './colours';
import type {Pen, Point} from './pen';
import {padded, placeOf, rangeOf, ticksOf, type Range, type Scale} from './scale';
import {smooth, thin, type Points} from './series';

export interface Curve { name: string; colour: string; line: Points; dots: Points }

export interface ChartSpec {
  curves: readonly Curve[];
  xName: string;
  yName: string;
  xText: (value: number) => string;
  yText: (value: number) => string;
  xLog: boolean;
  yLog: boolean;
  smoothing: number;
  showsStart: boolean;      // also where it is far above the rest
  zoom: Range | undefined;  // of x
  letters: number;          // their height in pixels
  names: boolean;           // at the ends of the lines
}

export interface ChartPlan { x: Scale; y: Scale; left: number; right: number; top: number; bottom: number }

const isInside = (value: number, range: Range) => value >= range.least && value <= range.most;

// The beginning of training is so much worse than the rest that it would leave no room for it: the highest value is
// looked for after this share of the axis, and lines run out of the picture before.
const settlingShare = 0.025;

function yRange(spec: ChartSpec, x: Range): Range | undefined {
  const all: number[] = [];
  const settled: number[] = [];
  const settledAt = spec.zoom || spec.showsStart ? x.least : x.least + (x.most - x.least) * settlingShare;
  for (const curve of spec.curves) {
    for (const points of [curve.line, curve.dots]) {
      points.x.forEach((at, index) => {
        if (!isInside(at, x)) return;
        all.push(points.y[index]!);
        if (at >= settledAt) settled.push(points.y[index]!);
      });
    }
  }
  const whole = rangeOf(all, spec.yLog);
  const later = spec.yLog ? whole : rangeOf(settled, spec.yLog) ?? whole;
  return whole && later ? padded({least: whole.least, most: later.most}, spec.yLog, 0.06) : undefined;
}

export function planChart(pen: Pen, size: Size, spec: ChartSpec): ChartPlan | undefined {
  const xs = spec.curves.flatMap((curve) => [curve.line.x, curve.dots.x]);
  const found = rangeOf((function* () { for (const each of xs) yield* each; })(), spec.xLog);
  const x = spec.zoom ?? (found && (found.most > found.least ? found : padded(found, spec.xLog)));
  const y = x && yRange(spec, x);
  if (!x || !y) return undefined;
  const em = spec.letters;
  const yTicks = ticksOf(y, spec.yLog, Math.max(2, size.height / (em * 3.4)));
  const left = Math.max(...yTicks.map((tick) => pen.widthOf(spec.yText(tick), em)), em) + em * 0.9;
  const nameWidth = spec.names ? Math.max(0, ...spec.curves.map((curve) => pen.widthOf(shortName(curve.name), em))) + em : 0;
  const right = size.width - Math.max(em * 0.8, Math.min(nameWidth, size.width * 0.28));
  const [top, bottom] = [em * 1.9, size.height - em * 2];
  return {x: {range: x, isLog: spec.xLog, from: left, to: right}, y: {range: y, isLog: spec.yLog, from: bottom, to: top},
          left, right, top, bottom};
}

export function shortName(name: string): string {
  return name.length <= 22 ? name : `${name.slice(0, 8)}…${name.slice(-13)}`;
}

function pathOf(points: Points, plan: ChartPlan): Point[][] {
  const pieces: Point[][] = [];
  let piece: Point[] = [];
  points.x.forEach((x, index) => {
    const y = points.y[index]!;
    const shown = Number.isFinite(y) && (!plan.y.isLog || y > 0) && (!plan.x.isLog || x > 0);
    if (shown) {
      piece.push([placeOf(plan.x, x), placeOf(plan.y, y)]);
    } else if (piece.length > 0) {
      pieces.push(piece);
      piece = [];
    }
  });
  if (piece.length > 0) pieces.push(piece);
  return pieces;
}

// What lies in the zoomed range, and one point on either side so that lines reach the edge.
function within(points: Points, zoom: Range | undefined): Points {
  if (!zoom) return points;
  let begin = points.x.findIndex((x) => x >= zoom.least);
  if (begin < 0) begin = points.x.length;
  let end = begin;
  while (end < points.x.length && points.x[end]! <= zoom.most) ++end;
  const cut = (values: number[]) => values.slice(Math.max(0, begin - 1), end + 1);
  return {x: cut(points.x), y: cut(points.y)};
}

const kept = new WeakMap<Curve, {smoothing: number; points: Points}>();

// Asked for with every movement of the pointer, so the last answer is kept.
export function smoothed(curve: Curve, smoothing: number): Points {
  const old = kept.get(curve);
  if (old?.smoothing === smoothing) return old.points;
  const points = {x: curve.line.x, y: smooth(curve.line.y, smoothing)};
  kept.set(curve, {smoothing, points});
  return points;
}

export function paintChart(pen: Pen, size: Size, colours: Palette, spec: ChartSpec): ChartPlan | undefined {
  const plan = planChart(pen, size, spec);
  pen.letters(spec.yName, 0, spec.letters, {size: spec.letters, colour: colours.soft});
  if (!plan) return undefined;
  paintAxes(pen, plan, colours, spec);
  const columns = Math.max(1, Math.round(plan.right - plan.left));
  const ends: {y: number; curve: Curve}[] = [];
  pen.clipped(plan.left, plan.top - 2, plan.right - plan.left + 2, plan.bottom - plan.top + 4, () => {
    for (const curve of spec.curves) {
      if (spec.smoothing <= 0) continue;
      for (const piece of pathOf(thin(within(curve.line, spec.zoom), columns), plan)) {
        pen.path(piece, {stroke: mix(colours.paper, curve.colour, 0.3), width: 1});
      }
    }
    for (const curve of spec.curves) {
      const line = thin(within(smoothed(curve, spec.smoothing), spec.zoom), columns);
      for (const piece of pathOf(line, plan)) pen.path(piece, {stroke: curve.colour, width: 1.75});
      const last = pathOf({x: line.x.slice(-1), y: line.y.slice(-1)}, plan)[0]?.[0] ??
          pathOf({x: curve.dots.x.slice(-1), y: curve.dots.y.slice(-1)}, plan)[0]?.[0];
      if (last) ends.push({y: last[1], curve});
    }
    for (const curve of spec.curves) {
      for (const piece of pathOf(within(curve.dots, spec.zoom), plan)) {
        for (const [x, y] of piece) pen.circle(x, y, 3.2, {fill: curve.colour, stroke: colours.paper, width: 1.25});
      }
    }
  });
  if (spec.names) paintNames(pen, plan, spec, ends);
  return plan;
}

function paintAxes(pen: Pen, plan: ChartPlan, colours: Palette, spec: ChartSpec): void {
  const em = spec.letters;
  const letters = {size: em, colour: colours.soft};
  for (const tick of ticksOf(plan.y.range, spec.yLog, Math.max(2, (plan.bottom - plan.top) / (em * 3.4)))) {
    const y = Math.round(placeOf(plan.y, tick)) + 0.5;
    pen.path([[plan.left, y], [plan.right, y]], {stroke: colours.line, width: 1});
    pen.letters(spec.yText(tick), plan.left - em * 0.6, y, {...letters, align: 'end', middle: true});
  }
  pen.path([[plan.left, plan.bottom + 0.5], [plan.right, plan.bottom + 0.5]], {stroke: colours.edge, width: 1});
  let free = -Infinity;
  const nameWidth = pen.widthOf(spec.xName, em) + em;
  for (const tick of ticksOf(plan.x.range, spec.xLog, Math.max(2, (plan.right - plan.left) / (em * 8)))) {
    const x = placeOf(plan.x, tick);
    const text = spec.xText(tick);
    const half = pen.widthOf(text, em) / 2;
    pen.path([[x, plan.bottom], [x, plan.bottom + em * 0.3]], {stroke: colours.edge, width: 1});
    if (x - half < free || x + half > plan.right - nameWidth + em * 0.5) continue;
    pen.letters(text, x, plan.bottom + em * 1.5, {...letters, align: 'middle'});
    free = x + half + em * 0.6;
  }
  pen.letters(spec.xName, plan.right, plan.bottom + em * 1.5, {...letters, align: 'end'});
}

// Names beside the ends of lines, moved apart where they would touch.
function paintNames(pen: Pen, plan: ChartPlan, spec: ChartSpec, ends: {y: number; curve: Curve}[]): void {
  const step = spec.letters * 1.25;
  const sorted = [...ends].sort((a, b) => a.y - b.y).map((end) => ({...end, y: Math.max(plan.top, Math.min(plan.bottom, end.y))}));
  let free = plan.top - step;
  for (const end of sorted) {
    end.y = Math.max(end.y, free + step);
    free = end.y;
  }
  let limit = plan.bottom;
  for (const end of sorted.reverse()) {
    end.y = Math.min(end.y, limit);
    limit = end.y - step;
  }
  for (const {y, curve} of sorted) {
    pen.letters(shortName(curve.name), plan.right + spec.letters * 0.6, y, {size: spec.letters, colour: curve.colour, middle: true});
  }
}
