// The rows of some patterns, by their formulas.
import {chance} from './chance';

const field = (name: string, usual: number, least: number, most: number) => ({name, default: usual, least, most});

export const patternList = [
  {name: 'full', fields: []},
  {name: 'local', fields: [field('window', 8, 1, 256)]},
  {name: 'local, block', fields: [field('window', 8, 1, 256)]},
  {name: 'strided', fields: [field('stride', 8, 1, 256)]},
  {name: 'fixed', fields: [field('stride', 8, 1, 256), field('summary', 2, 1, 64)]},
  {name: 'random', fields: [field('clusters', 8, 1, 64), field('window', 8, 1, 256), field('seed', 1, 0, 1000)]},
  {name: 'routing, nearest', fields: [field('clusters', 6, 1, 64), field('window', 16, 1, 256), field('seed', 1, 0, 1000)]},
  {name: 'routing, threshold', fields: [field('clusters', 6, 1, 64), field('window', 16, 1, 256), field('seed', 1, 0, 1000)]},
];

interface Asked { pattern: string; n: number; causal: boolean; [name: string]: unknown }

export function patternRows(asked: Asked) {
  const {n, causal} = asked;
  const value = (name: string) => Number(asked[name] ?? patternList.find((each) => each.name === asked.pattern)?.fields
                                                          .find((each) => each.name === name)?.default);
  const random = chance(value('seed') || 1);
  const topics = value('clusters') || 1;
  const memberships = memberOf(asked.pattern, n, topics, random);
  const reads = (i: number, j: number): number[] => {
    const near = causal ? j <= i : true;
    if (!near) return [];
    switch (asked.pattern) {
      case 'full': return [0];
      case 'local': return Math.abs(i - j) < value('window') ? [0] : [];
      case 'local, block': {
        const [a, b] = [Math.floor(i / value('window')), Math.floor(j / value('window'))];
        return Math.abs(a - b) <= 1 ? [a] : [];
      }
      case 'strided': return (i - j) % value('stride') === 0 ? [i % value('stride')] : [];
      case 'fixed': return j % value('stride') >= value('stride') - value('summary') ? [0] : [];
      default: return memberships[i]!.filter((group) => memberships[j]!.includes(group));
    }
  };
  const rows = Array.from({length: n}, (_, i) => {
    const row = {keys: [] as number[], groups: [] as number[]};
    const left = new Map<number, number>();
    for (let j = causal ? i : n - 1; j >= 0; --j) {
      for (const group of reads(i, j)) {
        const used = left.get(group) ?? 0;
        if (asked.pattern.startsWith('routing') && used >= value('window')) continue;
        left.set(group, used + 1);
        row.keys.unshift(j);
        row.groups.unshift(group);
      }
    }
    return row;
  });
  return {n, rows};
}

function memberOf(pattern: string, n: number, topics: number, random: () => number): number[][] {
  const all: number[][] = [];
  while (all.length < n) {
    const topic = Math.floor(random() * topics);
    const length = pattern === 'random' ? 1 : 2 + Math.floor(random() * 5);
    const second = pattern === 'routing, threshold' && random() < 0.3 ? [(topic + 1) % topics] : [];
    for (let each = 0; each < length; ++each) all.push([...new Set([topic, ...second])]);
  }
  return all.slice(0, n);
}
