// Which token, layer and head: in the address, within what the text and the model have.
import type {LayerInfo} from '../../api/types';
import {numberAt, place, setValues} from '../../ui/place';
import {firstHead} from './head_facts';
import type {HeadChoice} from './head_matrix';

export type Mode = 'reads' | 'clusters';
export interface Selection extends HeadChoice { position: number; mode: Mode; only: number | undefined; showsAll: boolean; isRouted: boolean; pattern: string; clusters: number }

// With more clusters than this, all of them at once are noise: those of the chosen token are shown then.
const mostColours = 32;

export function selectionOf(values: Readonly<Record<string, string>>, layers: readonly LayerInfo[], tokens: number): Selection {
  const usual = firstHead(layers);
  const [layer, head] = [numberAt(values, 'layer') ?? usual.layer, numberAt(values, 'head') ?? usual.head];
  const found = layers.find((each) => each.layer === layer)?.heads.find((each) => each.head === head);
  const choice = found ? {layer, head} : usual;
  const info = found ?? layers.find((each) => each.layer === usual.layer)?.heads.find((each) => each.head === usual.head);
  const position = Math.max(0, Math.min(tokens, Math.round(numberAt(values, 'at') ?? tokens)));
  const isRouted = info?.routed ?? false;
  const only = numberAt(values, 'cluster');
  return {...choice, position, isRouted, pattern: info?.pattern ?? '', clusters: info?.clusters ?? 0,
          mode: values['by'] === 'clusters' && isRouted ? 'clusters' : 'reads',
          showsAll: values['show'] === undefined ? (info?.clusters ?? 0) <= mostColours : values['show'] === 'all',
          only: only !== undefined && only < (info?.clusters ?? 0) ? only : undefined};
}

export function select(part: {position?: number; head?: HeadChoice; mode?: Mode; only?: number | undefined; showsAll?: boolean}): void {
  const values: Record<string, string | number> = {};
  if (part.position !== undefined) values['at'] = part.position;
  if (part.head) Object.assign(values, {layer: part.head.layer, head: part.head.head, cluster: '', show: ''});
  if (part.mode) values['by'] = part.mode === 'reads' ? '' : part.mode;
  if (part.showsAll !== undefined) values['show'] = part.showsAll ? 'all' : 'own';
  if ('only' in part) values['cluster'] = part.only ?? '';
  setValues(values);
}

export const currentValues = () => place.value.values;
