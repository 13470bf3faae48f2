// Lists of points as curves: smoothed, and no longer than a screen can show.

export interface Points { x: number[]; y: number[] }

// TensorBoard's smoothing: each value becomes the mean of all up to it, whose weights fall by the factor w per value.
// Values that are no numbers stay, and count for nothing.
export function smooth(values: readonly number[], w: number): number[] {
  if (w <= 0) return [...values];
  let [sum, weight] = [0, 0];
  return values.map((value) => {
    if (!Number.isFinite(value)) return value;
    sum = sum * w + value * (1 - w);
    weight = weight * w + (1 - w);
    return sum / weight;
  });
}

// At most four points for each of `columns` columns: the first, the lowest, the highest and the last in it. A line
// through them covers the same pixels as one through all.
export function thin(points: Points, columns: number): Points {
  const {x, y} = points;
  if (x.length <= columns * 4) return points;
  const [least, most] = [x[0]!, x.at(-1)!];
  const width = (most - least) / columns || 1;
  const kept: Points = {x: [], y: []};
  const keepAll = (indices: number[]) => {
    for (const index of [...new Set(indices)].sort((a, b) => a - b)) {
      kept.x.push(x[index]!);
      kept.y.push(y[index]!);
    }
  };
  for (let begin = 0; begin < x.length;) {
    const column = Math.floor((x[begin]! - least) / width);
    let [end, low, high] = [begin, begin, begin];
    while (end < x.length && Math.floor((x[end]! - least) / width) === column) {
      if (y[end]! < y[low]! || Number.isNaN(y[low]!)) low = end;
      if (y[end]! > y[high]! || Number.isNaN(y[high]!)) high = end;
      ++end;
    }
    keepAll([begin, low, high, end - 1]);
    begin = end;
  }
  return kept;
}

// The index of the value nearest to this one in a sorted list; -1 of none.
export function nearest(sorted: readonly number[], value: number): number {
  if (sorted.length === 0) return -1;
  let [low, high] = [0, sorted.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low > 0 && value - sorted[low - 1]! <= sorted[low]! - value ? low - 1 : low;
}
