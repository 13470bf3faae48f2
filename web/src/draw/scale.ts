// From values to places on an axis, straight or by logarithm, and where its ticks are.

export interface Range { least: number; most: number }
export interface Scale { range: Range; isLog: boolean; from: number; to: number }

export function placeOf(scale: Scale, value: number): number {
  const {range: {least, most}, isLog, from, to} = scale;
  const share = isLog ? (Math.log(value) - Math.log(least)) / (Math.log(most) - Math.log(least)) : (value - least) / (most - least);
  return from + share * (to - from);
}

export function valueAt(scale: Scale, place: number): number {
  const {range: {least, most}, isLog, from, to} = scale;
  const share = (place - from) / (to - from);
  return isLog ? Math.exp(Math.log(least) + share * (Math.log(most) - Math.log(least))) : least + share * (most - least);
}

// The smallest range with all values, nothing for none. Logarithms leave out what is not above 0.
export function rangeOf(values: Iterable<number>, isLog: boolean): Range | undefined {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value) || (isLog && value <= 0)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least <= most ? {least, most} : undefined;
}

// A little room on either side, and a width where all values are the same.
export function padded(range: Range, isLog: boolean, share = 0.04): Range {
  const {least, most} = range;
  if (isLog) {
    const ratio = most > least ? (most / least) ** share : 1.5;
    return {least: least / ratio, most: most * ratio};
  }
  if (least === 0 && most === 0) return {least: 0, most: 1};
  const room = most > least ? (most - least) * share : Math.abs(most) * 0.1 || 1;
  return {least: least - room, most: most + room};
}

// Round numbers, about `count` of them, inside the range.
export function ticksOf(range: Range, isLog: boolean, count: number): number[] {
  if (isLog) {
    const ticks = logTicks(range, count);
    if (ticks.length >= 2) return ticks;
  }
  const width = range.most - range.least;
  if (!(width > 0) || !Number.isFinite(width)) return [range.least];
  const rough = width / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * power >= rough * 0.999) ?? 10) * power;
  const ticks: number[] = [];
  for (let at = Math.ceil(range.least / step - 1e-9); at * step <= range.most + step * 1e-9; ++at) {
    // 0.30000000000000004 is 0.3.
    ticks.push(Number((at * step).toPrecision(12)));
  }
  return ticks;
}

function logTicks(range: Range, count: number): number[] {
  const decades = Math.log10(range.most / range.least);
  const digitsOfDecade = decades > count ? [1] : decades > count / 2 ? [1, 3] : decades > 0.7 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  const every = Math.max(1, Math.ceil(decades / count));
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(range.least)); power <= Math.ceil(Math.log10(range.most)); power += every) {
    for (const digit of digitsOfDecade) {
      const value = Number((digit * 10 ** power).toPrecision(12));
      if (value >= range.least && value <= range.most) ticks.push(value);
    }
  }
  return ticks;
}
