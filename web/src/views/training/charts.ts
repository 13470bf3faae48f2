// Which charts there are, and their curves out of the logs.
import {groupColour, type Palette} from '../../draw/colours';
import type {Curve} from '../../draw/chart';
import type {Run} from '../../api/types';
import {digits, duration, scaled, whole} from '../../ui/format';
import {pointsOf, type RunLog} from './metrics';

export type XKind = 'step' | 'tokens' | 'seconds';
// `isSteep` falls by powers of ten: it is drawn by its logarithm unless the reader says otherwise. `isOptional` is not shown
// where no run logs it; what `isExact` is neither
// smoothed nor cut at its beginning.
export interface ChartKind { key: string; title: string; train: string; held?: string; isMain?: boolean; isOptional?: boolean; isExact?: boolean; isSteep?: boolean; yText: (value: number) => string }

export const xNames: Record<XKind, string> = {step: 'steps', tokens: 'tokens', seconds: 'time'};

export function xText(kind: XKind, value: number): string {
  if (kind === 'seconds') return value === 0 ? '0' : duration(Math.max(10, value)).replace(/\s00\ss$/, '');
  return scaled(value);
}

function number(value: number): string {
  const size = Math.abs(value);
  return size >= 1e4 ? scaled(value) : size >= 1000 ? whole(value) : size !== 0 && size < 1e-3 ? digits(value, 2) : String(Number(value.toPrecision(4)));
}

export const smallCharts: readonly ChartKind[] = [
  {key: 'rate', title: 'learning rate', train: 'learning_rate', isExact: true, yText: number},
  {key: 'speed', title: 'tokens per second', train: 'tokens_per_second', yText: scaled},
  {key: 'norm', title: 'gradient norm', train: 'gradient_norm', yText: number},
  {key: 'dead', title: 'dead centroids', train: 'routing_dead_centroids', isOptional: true, isExact: true, yText: number},
];

const unitNames: Record<string, string> = {bits_per_byte: 'bits per byte', bits_per_dim: 'bits per dim', perplexity: 'perplexity'};

export function unitName(run: Run): string {
  return unitNames[run.unit ?? ''] ?? run.unit_name ?? run.unit?.replaceAll('_', ' ') ?? '';
}

// One chart for each unit: runs of different units share no axis.
export function mainCharts(runs: readonly Run[], inNats: boolean): {kind: ChartKind; ids: string[]}[] {
  if (inNats) {
    const kind = {key: 'nats', title: 'loss, nats per token', train: 'train_loss_nats', held: 'eval_loss_nats', isMain: true, yText: number};
    return [{kind, ids: runs.map((run) => run.id)}];
  }
  const units = [...new Set(runs.map((run) => run.unit ?? '').filter((unit) => unit !== ''))];
  return units.map((unit) => {
    const own = runs.filter((run) => run.unit === unit);
    const kind = {key: unit, title: unitName(own[0]!), train: `train_${unit}`, held: `eval_${unit}`, isMain: true,
                  isSteep: unit === 'perplexity', yText: number};
    return {kind, ids: own.map((run) => run.id)};
  });
}

export function curvesOf(
    kind: ChartKind, ids: readonly string[], x: XKind, logs: ReadonlyMap<string, RunLog>,
    indices: ReadonlyMap<string, number>, colours: Palette): Curve[] {
  return ids.flatMap((id) => {
    const log = logs.get(id);
    if (!log) return [];
    const line = pointsOf(log.train, x, kind.train);
    const dots = kind.held ? pointsOf(log.held, x, kind.held) : {x: [], y: []};
    return line.x.length + dots.x.length === 0 ? [] : [{name: id, colour: groupColour(indices.get(id) ?? 0, colours), line, dots}];
  });
}
