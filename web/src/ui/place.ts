// Where the reader is, in the hash of the address: #/attention?model=exp/a&layer=1. Links lead there, reloads stay there.
import {signal} from '@preact/signals';

export const viewNames = ['playground', 'attention', 'training', 'patterns'] as const;
export type ViewName = (typeof viewNames)[number];

export interface Place { view: ViewName; values: Readonly<Record<string, string>> }

export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const view = viewNames.find((name) => name === path) ?? 'playground';
  return {view, values: Object.fromEntries(new URLSearchParams(query))};
}

export function hashOf(place: Place): string {
  const query = Object.entries(place.values)
                    .filter(([, value]) => value !== '')
                    .map(([name, value]) => `${name}=${encodeURIComponent(value).replace(/%(2F|2C)/g, decodeURIComponent)}`)
                    .join('&');
  return `#/${place.view}${query ? `?${query}` : ''}`;
}

export const place = signal<Place>({view: 'playground', values: {}});

// The last place of each view, so that its tab leads back there.
const last = new Map<ViewName, Place>();

export function startPlace(): void {
  const read = () => {
    place.value = parsePlace(location.hash);
    last.set(place.value.view, place.value);
  };
  read();
  addEventListener('hashchange', read);
}

// A step that the Back button takes back, or, with `replace`, none.
export function go(next: Place, options: {replace?: boolean} = {}): void {
  const hash = hashOf(next);
  if (hash === hashOf(place.peek())) return;
  history[options.replace ? 'replaceState' : 'pushState'](null, '', hash);
  place.value = next;
  last.set(next.view, next);
}

// Sets some values of this view and keeps the others; an empty text takes one away.
export function setValues(values: Record<string, string | number>, options: {replace?: boolean} = {replace: true}): void {
  const texts = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
  const {view, values: old} = place.peek();
  const all = Object.entries({...old, ...texts}).filter(([, value]) => value !== '');
  go({view, values: Object.fromEntries(all)}, options);
}

export function lastPlaceOf(view: ViewName): Place {
  return last.get(view) ?? {view, values: {}};
}

export function numberAt(values: Readonly<Record<string, string>>, name: string): number | undefined {
  const text = values[name];
  return text !== undefined && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : undefined;
}
