// A pattern's rows, and what they amount to.
import type {PatternAnswer, PatternInfo} from '../../api/types';

export interface Cost { pairs: number; all: number; longest: number; mean: number; unread: number }

// How many pairs are read, of how many a full pattern of the same direction would read.
export function costOfRows(answer: PatternAnswer, causal: boolean): Cost {
  let pairs = 0;
  let longest = 0;
  let unread = 0;
  for (const row of answer.rows) {
    const count = new Set(row.keys).size;
    pairs += count;
    longest = Math.max(longest, count);
    if (count === 0) ++unread;
  }
  const {n} = answer;
  return {pairs, all: causal ? n * (n + 1) / 2 : n * n, longest, mean: n > 0 ? pairs / n : 0, unread};
}

export interface Key { key: number; groups: number[] }

// The keys of a row in order, each with all groups through which it is read.
export function keysOf(answer: PatternAnswer, row: number): Key[] {
  const found = new Map<number, number[]>();
  const {keys, groups} = answer.rows[row] ?? {keys: [], groups: []};
  keys.forEach((key, index) => {
    const list = found.get(key);
    if (list) list.push(groups[index] ?? 0);
    else found.set(key, [groups[index] ?? 0]);
  });
  return [...found].map(([key, through]) => ({key, groups: through})).sort((a, b) => a.key - b.key);
}

// {0, 3–7, 9}: a set of positions as one reads it.
export function setText(keys: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < keys.length;) {
    let end = at;
    while (end + 1 < keys.length && keys[end + 1] === keys[end]! + 1) ++end;
    parts.push(end === at ? `${keys[at]}` : end === at + 1 ? `${keys[at]}, ${keys[end]}` : `${keys[at]}–${keys[end]}`);
    at = end + 1;
  }
  return `{${parts.join(', ')}}`;
}

const rules: Readonly<Record<string, string>> = {
  'full': 'Every output reads every input up to its own. The cost grows with the square of the length.',
  'local': 'Every output reads the last few inputs: cheap, and blind beyond its window.',
  'local, block': 'Inputs are cut into blocks; an output reads its own block and those just before.',
  'local, 2 dimensions': 'An output reads the pixels of an image that lie around its own block.',
  'strided': 'Every output reads the inputs that are a whole number of strides away, as the column of a picture.',
  'fixed': 'Every output reads the last inputs of each stretch, which have to sum it up.',
  'random': 'Groups of positions are drawn by chance; an output reads its groups.',
  'LSH': 'Vectors that point the same way fall into one bucket; an output reads the last of its bucket (Reformer).',
  'routing, balanced': 'Each cluster takes its best inputs of the whole sequence, as in the paper. A choice then depends on later ' +
      'inputs: it reads the future.',
  'routing, nearest': 'Each input chooses one cluster by its content, and reads the last members of it. Strictly causal.',
  'routing, threshold': 'Each input joins every cluster whose threshold it passes, and reads the last members of each. Strictly causal.',
};

// What this page knows of a pattern by its name, or what the server says of it.
export function ruleOf(pattern: PatternInfo | undefined): string {
  if (!pattern) return '';
  const rule = rules[pattern.name] ?? pattern.about ?? '';
  return rule === '' ? '' : `${rule.charAt(0).toUpperCase()}${rule.slice(1)}${/[.!?]$/.test(rule) ? '' : '.'}`;
}

// The request for a pattern: what is asked for, each field brought into its range.
export function patternBody(
    pattern: PatternInfo, n: number, causal: boolean, values: Readonly<Record<string, string>>): Record<string, unknown> {
  const body: Record<string, unknown> = {pattern: pattern.name, n, causal};
  for (const field of pattern.fields) {
    const given = Number(values[field.name]);
    const value = values[field.name] === undefined || !Number.isFinite(given) ? field.default : Math.round(given);
    body[field.name] = Math.max(field.least, Math.min(field.most, value));
  }
  return body;
}
