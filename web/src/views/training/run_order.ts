// Sorting and finding runs.
import type {Run} from '../../api/types';

export type SortKey = 'id' | 'state' | 'step' | 'best' | 'data' | 'parameters' | 'changed';
export interface Order { by: SortKey; isDown: boolean }

// What newcomers look for first stands first.
const states = ['running', 'finished', 'stopped', 'diverged', 'exported'];

function valueOf(run: Run, by: SortKey): string | number | undefined {
  switch (by) {
    case 'state': {
      const index = states.indexOf(run.state ?? '');
      return run.problem ? states.length + 1 : index < 0 ? states.length : index;
    }
    case 'changed': return run.changed === undefined ? undefined : -Date.parse(run.changed);
    case 'id': return run.id;
    case 'data': return run.data;
    default: return run[by] ?? undefined;
  }
}

// What has no value comes last in either direction; equal ones by name.
export function sorted(runs: readonly Run[], order: Order): Run[] {
  const sign = order.isDown ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [one, other] = [valueOf(a, order.by), valueOf(b, order.by)];
    if (one === undefined || other === undefined) {
      if (one !== other) return one === undefined ? 1 : -1;
    } else if (one !== other) {
      const way = typeof one === 'string' ? one.localeCompare(String(other), 'en', {numeric: true}) : one < Number(other) ? -1 : 1;
      return sign * way;
    }
    return a.id.localeCompare(b.id, 'en', {numeric: true});
  });
}

// Every word has to occur somewhere.
export function matching(runs: readonly Run[], text: string): Run[] {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  return runs.filter((run) => {
    const all = [run.id, run.state, run.data, run.name, run.validity, run.data_label, run.problem].join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

// What is shown before anybody chose: what trains now, or else the run that changed last.
export function usualChoice(runs: readonly Run[]): string[] {
  const readable = runs.filter((run) => !run.problem);
  const running = readable.filter((run) => run.state === 'running').slice(0, 4);
  return (running.length > 0 ? running : sorted(readable, {by: 'changed', isDown: false}).slice(0, 1)).map((run) => run.id);
}
