// All runs of the folder, and the logs of those that are shown, kept up to date while they train.
import {signal} from '@preact/signals';

import {follow, type FollowState} from '../../api/follow';
import {getJson, pathOfRun} from '../../api/http';
import type {ClusterHistory, MetricsAnswer, Run, Sample} from '../../api/types';
import {emptyLog, merged, type RunLog} from './metrics';

export const runs = signal<readonly Run[] | undefined>(undefined);
export const logs = signal<ReadonlyMap<string, RunLog>>(new Map());
export const histories = signal<ReadonlyMap<string, ClusterHistory>>(new Map());
export const samples = signal<ReadonlyMap<string, readonly Sample[]>>(new Map());
export const configs = signal<ReadonlyMap<string, Readonly<Record<string, string>>>>(new Map());
export const connection = signal<FollowState>({kind: 'connecting'});
export const runProblem = signal<unknown>(undefined);

const under = <T>(map: ReadonlyMap<string, T>, id: string, value: T): ReadonlyMap<string, T> => new Map(map).set(id, value);
const asking = new Set<string>();

// One request at a time for each thing: what came meanwhile is in the next one.
async function once(what: string, ask: () => Promise<void>): Promise<void> {
  if (asking.has(what)) return;
  asking.add(what);
  try {
    await ask();
    runProblem.value = undefined;
  } catch (error) {
    runProblem.value = error;
  } finally {
    asking.delete(what);
  }
}

export function addMetrics(id: string, answer: MetricsAnswer): void {
  const log = logs.value.get(id) ?? emptyLog(id);
  if (answer.lines.length === 0 && answer.from === log.next) return;
  const next = merged(log, answer);
  if (next) logs.value = under(logs.value, id, next);
  else void readMetrics(id, 0);
}

export function readMetrics(id: string, after?: number): Promise<void> {
  return once(`metrics ${id}`, async () => {
    const from = after ?? logs.value.get(id)?.next ?? 0;
    const answer = await getJson<MetricsAnswer>(`api/runs/${pathOfRun(id)}/metrics?after=${from}`);
    // The log became shorter: the run began anew or was cut back.
    if (answer.next < from) addMetrics(id, await getJson<MetricsAnswer>(`api/runs/${pathOfRun(id)}/metrics?after=0`));
    else addMetrics(id, answer);
  });
}

export function mergeHistory(old: ClusterHistory | undefined, added: ClusterHistory): ClusterHistory {
  const first = added.steps[0];
  if (!old || first === undefined || JSON.stringify(old.heads) !== JSON.stringify(added.heads)) return first === undefined && old ? old : added;
  const kept = old.steps.filter((step) => step < first).length;
  return {heads: old.heads, steps: [...old.steps.slice(0, kept), ...added.steps],
          shares: [...old.shares.slice(0, kept), ...added.shares], dead: [...old.dead.slice(0, kept), ...added.dead]};
}

function addHistory(id: string, added: ClusterHistory): void {
  histories.value = under(histories.value, id, mergeHistory(histories.value.get(id), added));
}

function addSamples(id: string, added: readonly Sample[]): void {
  const bySteps = new Map([...samples.value.get(id) ?? [], ...added].map((sample) => [`${sample.step} ${sample.kind}`, sample]));
  samples.value = under(samples.value, id, [...bySteps.values()].sort((a, b) => a.step - b.step));
}

// What is shown of one run alone: clusters, samples, configuration.
export async function readDetails(id: string): Promise<void> {
  const path = `api/runs/${pathOfRun(id)}`;
  await Promise.all([
    once(`clusters ${id}`, async () => addHistory(id, await getJson<ClusterHistory>(`${path}/clusters?after=0`))),
    once(`samples ${id}`, async () => addSamples(id, (await getJson<{samples: Sample[]}>(`${path}/samples`)).samples)),
    readConfig(id),
  ]);
}

export function readConfig(id: string): Promise<void> {
  if (configs.value.has(id)) return Promise.resolve();
  return once(`config ${id}`, async () => {
    const {keys} = await getJson<{keys: Record<string, string>}>(`api/runs/${pathOfRun(id)}/config`);
    configs.value = under(configs.value, id, keys);
  });
}

export function readRuns(): Promise<void> {
  return once('runs', async () => {
    runs.value = (await getJson<{runs: Run[]}>('api/runs')).runs;
  });
}

// The list of runs, with a word to `onMoved` for each shown run that trained on.
function takeRuns(next: readonly Run[], shown: () => readonly string[]): void {
  const before = new Map(runs.value?.map((run) => [run.id, run.step]));
  runs.value = next;
  for (const run of next) {
    if (shown().includes(run.id) && before.get(run.id) !== run.step) void readMetrics(run.id);
  }
}

// Follows the folder, and one run more closely. Returns what ends it.
export function followRuns(focus: string | undefined, shown: () => readonly string[]): () => void {
  return follow({
    path: () => {
      const after = focus === undefined ? 0 : logs.value.get(focus)?.next ?? 0;
      return focus === undefined ? 'api/events' : `api/events?run=${encodeURIComponent(focus)}&after=${after}`;
    },
    onState: (state) => (connection.value = state),
    onEvent: (event, data) => {
      const body = JSON.parse(data) as Record<string, unknown>;
      if (event === 'runs') takeRuns((body as {runs?: Run[]}).runs ?? [], shown);
      if (focus === undefined) return;
      if (event === 'metrics') addMetrics(focus, body as unknown as MetricsAnswer);
      else if (event === 'clusters') addHistory(focus, body as unknown as ClusterHistory);
      else if (event === 'samples') addSamples(focus, (body as {samples?: Sample[]}).samples ?? []);
    },
  });
}
