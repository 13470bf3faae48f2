// Made-up runs: finished ones, one that trains on, one that collapses, one that cannot be read.
import {chance} from './chance';
import {passage} from './made_up_text';

type Line = Record<string, unknown>;

export interface MockRun {
  id: string; unit: 'bits_per_byte' | 'perplexity' | 'bits_per_dim'; start: number; end: number; steps: number; done: number;
  seed: number; state: string; parameters: number; data: string; validity: string; heads: number; clusters: number;
  problem?: string; dataLabel?: string; logEvery: number; images?: boolean;
}

const run = (id: string, more: Partial<MockRun>): MockRun => ({
  id, unit: 'bits_per_byte', start: 5.2, end: 1.57, steps: 5040, done: 5040, seed: 1, state: 'finished', parameters: 471_552,
  data: 'gcide.dict.dz', validity: 'causal', heads: 2, clusters: 16, logEvery: 10, ...more,
});

export const runs: MockRun[] = [
  run('island/words', {unit: 'perplexity', start: 9000, end: 62, steps: 20_000, done: 12_400, state: 'running', seed: 2,
                       parameters: 5_812_736, data: 'wikitext-103', heads: 4, clusters: 24}),
  run('quickstart', {}),
  run('exp/local', {end: 1.66, seed: 4, heads: 0}),
  run('exp/routed', {end: 1.53, seed: 5}),
  run('exp/routed-seed2', {end: 1.535, seed: 6}),
  run('exp/collapsed', {end: 1.71, seed: 7, state: 'stopped', done: 3100}),
  run('island/published', {unit: 'perplexity', start: 9000, end: 41, steps: 20_000, done: 20_000, seed: 8,
                           parameters: 5_812_736, validity: 'selection reads the future', data: 'wikitext-103'}),
  run('pictures', {unit: 'bits_per_dim', start: 7.9, end: 3.62, steps: 8000, done: 8000, seed: 9, parameters: 1_204_224,
                   data: 'cifar-10', dataLabel: 'partial data', images: true}),
  run('exp/diverged', {end: 6.4, start: 5.5, done: 900, seed: 10, state: 'diverged'}),
  run('exp/torn', {problem: 'config.toml, line 12: key train.setps does not exist; train.steps is the nearest', seed: 11}),
];

// Many more, to see a long table.
export function manyRuns(count: number): MockRun[] {
  return Array.from({length: count}, (_, index) =>
    run(`sweep/lr-${(index % 10) + 1}e-4/seed-${Math.floor(index / 10) + 1}`, {end: 1.5 + (index % 10) * 0.02, seed: 100 + index}));
}

const nats = {bits_per_byte: Math.LN2, bits_per_dim: Math.LN2, perplexity: 1};

function valueAt(found: MockRun, step: number, random: () => number): number {
  const share = Math.min(1, step / found.steps);
  const fall = Math.exp(-9 * share) * 0.75 + 0.25 * (1 - share) ** 1.6;
  const noise = 1 + (random() - 0.5) * 0.035;
  if (found.unit === 'perplexity') return Math.exp(Math.log(found.end) + (Math.log(found.start) - Math.log(found.end)) * fall) * noise;
  return (found.end + (found.start - found.end) * fall) * noise;
}

export function linesOf(found: MockRun): Line[] {
  if (found.problem) return [];
  const random = chance(found.seed);
  const lines: Line[] = [];
  let best = Infinity;
  for (let step = found.logEvery; step <= found.done; step += found.logEvery) {
    const value = valueAt(found, step, random);
    const loss = found.unit === 'perplexity' ? Math.log(value) : value * nats[found.unit];
    const share = step / found.steps;
    lines.push({
      step, tokens: step * 8192, train_loss_nats: loss, [`train_${found.unit}`]: value,
      learning_rate: 0.002 * Math.min(1, step / 250) * (0.55 + 0.45 * Math.cos(Math.PI * share)),
      gradient_norm: 0.4 + 2.5 * Math.exp(-12 * share) + random() * 0.25, auxiliary_loss: 0.01 + 0.02 * random(),
      tokens_per_second: 228_000 + 24_000 * (random() - 0.5) - (random() < 0.01 ? 90_000 : 0), seconds: step * 0.0357,
      ...(found.heads > 0 ? {routing_dead_centroids: deadAt(found, step), routing_occupancy_entropy_min: 0.94} : {}),
      validity: found.validity, ...(found.dataLabel ? {data_label: found.dataLabel} : {}),
    });
    const every = Math.round(found.steps / 10 / found.logEvery) * found.logEvery;
    if (step % every === 0) {
      const held = valueAt(found, step, () => 0.5) * 1.015;
      best = Math.min(best, held);
      lines.push({
        step, tokens: step * 8192, eval_loss_nats: found.unit === 'perplexity' ? Math.log(held) : held * nats[found.unit],
        [`eval_${found.unit}`]: held, eval_split: 'valid', eval_tokens: 16_384, best: held === best, seconds: step * 0.0357,
        validity: found.validity,
      });
    }
  }
  return lines;
}

export function summaryOf(found: MockRun): Line {
  if (found.problem) return {id: found.id, changed: '2026-11-18T19:10:00Z', problem: found.problem};
  const held = linesOf(found).filter((line) => line[`eval_${found.unit}`] !== undefined);
  const best = held.reduce<Line | undefined>((low, line) =>
    !low || Number(line[`eval_${found.unit}`]) < Number(low[`eval_${found.unit}`]) ? line : low, undefined);
  return {
    id: found.id, state: found.state, name: found.id.split('/').at(-1), data: found.data, parameters: found.parameters,
    step: found.done, steps: found.steps, tokens: found.done * 8192, seconds: found.done * 0.0357, unit: found.unit,
    unit_name: found.unit.replaceAll('_', ' '), best: best ? best[`eval_${found.unit}`] : null, best_step: best?.['step'] ?? null,
    best_split: best ? 'valid' : null, validity: found.validity,
    ...(found.dataLabel ? {data_label: found.dataLabel} : {}), audit: 'not audited',
    changed: found.state === 'running' ? new Date().toISOString() : '2026-11-18T17:05:00Z', problem: null,
  };
}

function deadAt(found: MockRun, step: number): number {
  if (found.id === 'exp/collapsed') return Math.min(found.clusters * found.heads - 4, Math.floor(step / 150));
  return step < 120 ? 5 - Math.floor(step / 30) : 0;
}

export function clusterHistoryOf(found: MockRun, after: number) {
  const steps: number[] = [];
  for (let step = 100; step <= found.done; step += 100) if (step > after) steps.push(step);
  const heads = Array.from({length: found.heads}, (_, head) =>
    ({attention: `layer ${3 - Math.floor(head / 2)}`, head: 2 + head % 2, clusters: found.clusters}));
  const shares = steps.map((step) => heads.map((_, head) => {
    const own = chance(found.seed * 31 + head);
    const raw = Array.from({length: found.clusters}, (_, cluster) => {
      const [level, phase, drift] = [own(), own() * 6.28, own()];
      const settled = 1 - Math.exp(-step / (found.steps * 0.12));
      const uneven = Math.exp((level - 0.5) * 5 * (1 - settled) + 0.5 * Math.sin(phase + drift * step / 700));
      const isDead = found.id === 'exp/collapsed' ? cluster >= found.clusters - deadAt(found, step) / 2 :
                                                    step < 300 && cluster % 5 === 4 && head % 2 === 0;
      return isDead ? 0 : uneven;
    });
    const sum = raw.reduce((total, each) => total + each, 0);
    return raw.map((each) => Math.round(each / sum * 1e5) / 1e5);
  }));
  const stride = Math.max(1, Math.ceil(steps.length / 400));
  const every = <T>(all: T[]) => all.filter((_, index) => index % stride === 0);
  return {heads, steps: every(steps), shares: every(shares), dead: every(steps.map((step) => deadAt(found, step)))};
}

export function samplesOf(found: MockRun) {
  const all: Line[] = [];
  const every = found.steps / 10;
  for (let step = every; step <= found.done; step += every) {
    if (found.images) {
      all.push({step, kind: 'image', file: `step-${String(step).padStart(8, '0')}.png`});
      continue;
    }
    const random = chance(step + found.seed);
    const mistakes = 0.35 * Math.exp(-4 * step / found.steps);
    const letters = [...passage.slice(Math.floor(random() * 600)).slice(0, 400)];
    const text = letters.map((letter) => random() < mistakes ? 'etaoin shrdlu'[Math.floor(random() * 13)] : letter).join('');
    all.push({step, kind: 'text', text});
  }
  return all;
}
