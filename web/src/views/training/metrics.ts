// The log of a run, as columns of numbers. Grows by what the server sends; halves itself where it gets too long to draw.
import type {MetricsAnswer, MetricsLine} from '../../api/types';

export interface Table { rows: number; columns: ReadonlyMap<string, readonly number[]> }
export interface RunLog { id: string; next: number; train: Table; held: Table }

export const emptyTable: Table = {rows: 0, columns: new Map()};
export const emptyLog = (id: string): RunLog => ({id, next: 0, train: emptyTable, held: emptyTable});

const mostRows = 8000;

export const isHeld = (line: MetricsLine): boolean => 'eval_loss_nats' in line;
const isTraining = (line: MetricsLine): boolean => 'train_loss_nats' in line;

function appended(table: Table, lines: readonly MetricsLine[]): Table {
  if (lines.length === 0) return table;
  const first = Number(lines[0]!['step']);
  // A run that was resumed writes its last steps again.
  const kept = keptRows(table, first);
  const names = new Set(table.columns.keys());
  for (const line of lines) {
    for (const [name, value] of Object.entries(line)) if (typeof value === 'number' || value === null) names.add(name);
  }
  const columns = new Map<string, number[]>();
  for (const name of names) {
    const old = table.columns.get(name)?.slice(0, kept) ?? new Array<number>(kept).fill(NaN);
    columns.set(name, [...old, ...lines.map((line) => typeof line[name] === 'number' ? line[name] : NaN)]);
  }
  return {rows: kept + lines.length, columns};
}

function keptRows(table: Table, first: number): number {
  const steps = table.columns.get('step') ?? [];
  let kept = table.rows;
  while (kept > 0 && steps[kept - 1]! >= first) --kept;
  return kept;
}

// Every second row of the older part, so that the newest stay whole.
export function halved(table: Table, most: number): Table {
  if (table.rows <= most) return table;
  const older = table.rows - Math.floor(most / 4);
  const keep = (_: number, index: number) => index >= older || index % 2 === 0;
  const columns = new Map([...table.columns].map(([name, values]) => [name, values.filter(keep)]));
  return {rows: columns.get('step')?.length ?? 0, columns};
}

// Undefined where the answer does not go on from what is there: then everything has to be asked for again.
export function merged(log: RunLog, answer: MetricsAnswer): RunLog | undefined {
  if (answer.from === 0) log = emptyLog(log.id);
  else if (answer.from !== log.next || answer.next < answer.from) return undefined;
  const train = halved(appended(log.train, answer.lines.filter(isTraining)), mostRows);
  return {id: log.id, next: answer.next, train, held: appended(log.held, answer.lines.filter(isHeld))};
}

export function column(table: Table, name: string): readonly number[] {
  return table.columns.get(name) ?? [];
}

export function lastOf(table: Table, name: string): number | undefined {
  const value = table.columns.get(name)?.at(-1);
  return value !== undefined && Number.isFinite(value) ? value : undefined;
}

// Points of one column over another, without rows that miss either.
export function pointsOf(table: Table, x: string, y: string): {x: number[]; y: number[]} {
  const [xs, ys] = [column(table, x), column(table, y)];
  const points = {x: [] as number[], y: [] as number[]};
  for (let row = 0; row < Math.min(xs.length, ys.length); ++row) {
    if (!Number.isFinite(xs[row]!)) continue;
    points.x.push(xs[row]!);
    points.y.push(ys[row]!);
  }
  return points;
}
