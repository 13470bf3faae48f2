// What the background of each token says: the weight with which it is read, or its clusters.
import {groupTint, readTint, strongTint, type Palette} from '../../draw/colours';

export type Shading =
    {kind: 'reads'; weights: ReadonlyMap<number, number>; largest: number} |
    {kind: 'clusters'; of: readonly number[][]; only: readonly number[] | undefined} |
    {kind: 'none'};

// The colours of a token's background from top to bottom; none where it has none. Position -1 is the start.
export function bandsOf(shading: Shading, position: number, colours: Palette): string[] {
  switch (shading.kind) {
    case 'reads': {
      const weight = shading.weights.get(position);
      return weight === undefined || shading.largest <= 0 ? [] : [readTint(weight / shading.largest, colours)];
    }
    case 'clusters': {
      const own = shading.of[position] ?? [];
      if (shading.only === undefined) return own.map((cluster) => groupTint(cluster, colours));
      return own.filter((cluster) => shading.only?.includes(cluster)).map((cluster) => strongTint(cluster, colours));
    }
    default: return [];
  }
}
