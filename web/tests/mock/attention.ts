// What made-up heads read: the last tokens, every so many, or earlier members of the same cluster.
import {chance, hashOf} from './chance';
import {layersOf, type MockModel} from './models';

const window = 64;

export function clustersOf(pieces: readonly string[], layer: number, head: number, count: number): number[][] {
  return pieces.map((piece) => {
    const word = piece.trim().toLowerCase();
    const first = hashOf(`${word}/${layer}/${head}`) % count;
    const second = hashOf(`${head}/${word}/${layer}`);
    if (second % 19 === 0) return [];
    return second % 5 === 0 ? [...new Set([first, (first + 1 + second % (count - 1)) % count])].sort((a, b) => a - b) : [first];
  });
}

export interface Question { model: MockModel; pieces: string[]; position: number; layer?: number; head?: number }

export function attentionOf(question: Question) {
  const {model, pieces, position} = question;
  const heads = layersOf(model).flatMap(({layer, heads: row}) => row.map((head) => ({layer, ...head})))
                    .filter((head) => question.layer === undefined || head.layer === question.layer)
                    .filter((head) => question.head === undefined || head.head === question.head);
  return {
    model: model.id,
    tokens: pieces.length,
    position,
    predicts: pieces[position] ?? '(next)',
    heads: heads.map(({layer, head, pattern, clusters: count}) => {
      const random = chance(position * 131 + layer * 17 + head);
      const last = position - 1;
      let read: number[] = [];
      let clusters: number[] = [];
      if (pattern === 'routing') {
        const all = clustersOf(pieces, layer, head, count);
        clusters = all[Math.max(0, last)] ?? [];
        for (let at = last; at >= 0 && read.length < window; --at) {
          if (all[at]!.some((cluster) => clusters.includes(cluster))) read.push(at);
        }
      } else if (pattern === 'strided') {
        for (let at = last; at >= -1; at -= 16) read.push(at);
      } else {
        for (let at = last; at >= Math.max(-1, position - window); --at) read.push(at);
      }
      const raw = read.map((at) => Math.exp(4 * random() ** 2 - (pattern === 'routing' ? 0 : (last - at) / 12)));
      const sum = raw.reduce((total, each) => total + each, 0);
      const reads = read.map((at, index) => ({position: at, token: at < 0 ? '(start)' : pieces[at]!, weight: raw[index]! / sum}))
                        .sort((a, b) => b.weight - a.weight);
      return {layer, head, pattern, ...(pattern === 'routing' ? {clusters} : {}), reads};
    }),
  };
}
