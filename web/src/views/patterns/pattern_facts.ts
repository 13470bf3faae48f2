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

const rules: Record<string, string> = {
  full: 'Every token reads every token before it. The cost grows with the square of the length.',
  local: 'Every token reads the last few. Cheap, and blind beyond its window.',
  block: 'Tokens are cut into blocks; a token reads its own block and the one before.',
  span: 'A window whose length each head learns.',
  strided: 'A token reads those a whole number of strides away, as the columns of a picture.',
  fixed: 'Every token reads the last few of each stretch, which sum it up.',
  local2d: 'Blocks of a picture: a pixel reads the pixels around it.',
  random: 'Groups of positions drawn by chance.',
  lsh: 'Vectors that point the same way fall into one bucket; a token reads its bucket.',
  balanced: 'Each cluster takes its best tokens of the whole sequence, so a choice depends on later tokens.',
  nearest: 'Each token chooses one cluster by its content and reads the last of its members.',
  threshold: 'Each token joins the clusters whose threshold it passes and reads the last of their members.',
  routing: 'Tokens of like content share a cluster; a token reads the last members of its own.',
};

// What the server says of a pattern, or what this page knows by its name.
export function ruleOf(pattern: PatternInfo | undefined): string {
  if (!pattern) return '';
  if (pattern.about) return pattern.about;
  const words = pattern.name.toLowerCase().split(/[^a-z0-9]+/).reverse();
  for (const word of words) {
    const rule = rules[word];
    if (rule) return rule;
  }
  return '';
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
