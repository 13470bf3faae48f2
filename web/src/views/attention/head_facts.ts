// What the reads of a head amount to: how far back, how heavy, in what order.
import type {HeadReads, LayerInfo, Read} from '../../api/types';

export const distanceBins = 16;

// Shares of a head's weight by distance: bin b holds distances 2^b to 2^(b+1) - 1, the last one all beyond.
export function weightByDistance(position: number, reads: readonly Read[]): Float64Array {
  const bins = new Float64Array(distanceBins);
  for (const read of reads) {
    const distance = Math.max(1, position - read.position);
    bins[Math.min(distanceBins - 1, Math.floor(Math.log2(distance)))]! += read.weight;
  }
  return bins;
}

// The mean distance of a read, by weight.
export function meanDistance(position: number, reads: readonly Read[]): number {
  let [sum, weight] = [0, 0];
  for (const read of reads) {
    sum += (position - read.position) * read.weight;
    weight += read.weight;
  }
  return weight > 0 ? sum / weight : 0;
}

// Heaviest first; of equal weights the nearer one.
export function heaviestFirst(reads: readonly Read[]): Read[] {
  return [...reads].sort((a, b) => b.weight - a.weight || b.position - a.position);
}

// The shape of a summary: steps as high as the shares, in a field of 16 by 8.
export function summaryPath(bins: Float64Array): string {
  let path = 'M0 8';
  bins.forEach((share, bin) => (path += `L${bin} ${round(8 - 8 * Math.sqrt(share))}H${bin + 1}`));
  return `${path}V8Z`;
}
const round = (value: number) => Math.round(value * 100) / 100;

export function findHead(heads: readonly HeadReads[] | undefined, layer: number, head: number): HeadReads | undefined {
  return heads?.find((each) => each.layer === layer && each.head === head);
}

// Where to begin: the first routed head of the topmost layer that has one, as routing analyze does.
export function firstHead(layers: readonly LayerInfo[]): {layer: number; head: number} {
  for (const {layer, heads} of [...layers].reverse()) {
    const routed = heads.find((head) => head.routed);
    if (routed) return {layer, head: routed.head};
  }
  return {layer: layers.at(-1)?.layer ?? 0, head: layers.at(-1)?.heads[0]?.head ?? 0};
}

// Heads that read everything answer with a line for each token: of long texts they are asked one by one.
const bounded = new Set(['local', 'routing', 'lsh', 'random', 'span', 'local2d']);
export function allAtOnce(layers: readonly LayerInfo[], tokens: number): boolean {
  const unbounded = layers.flatMap(({heads}) => heads).filter((head) => !head.routed && !bounded.has(head.pattern)).length;
  return unbounded * tokens <= 200_000;
}

// What stands around a token, so that one recognises its place: a letter alone says nothing.
export function surroundings(pieces: readonly string[], position: number, letters: number): {before: string; after: string} {
  let [before, after] = ['', ''];
  for (let at = position - 1; at >= 0 && before.length < letters; --at) before = pieces[at]! + before;
  for (let at = position + 1; at < pieces.length && after.length < letters; ++at) after += pieces[at]!;
  return {before: before.slice(-letters), after: after.slice(0, letters)};
}

// The members of a cluster before and after a token; undefined at the ends.
export function neighbours(clusters: readonly number[][], cluster: number, token: number) {
  const scan = (step: number): number | undefined => {
    for (let at = token + step; at >= 0 && at < clusters.length; at += step) if (clusters[at]!.includes(cluster)) return at;
    return undefined;
  };
  return {previous: scan(-1), next: scan(1)};
}

export interface ClusterSize { cluster: number; members: number }

export function sizesOf(clusters: readonly number[][], count: number): ClusterSize[] {
  const members = new Array<number>(count).fill(0);
  for (const own of clusters) for (const cluster of own) members[cluster] = (members[cluster] ?? 0) + 1;
  return members.map((size, cluster) => ({cluster, members: size})).sort((a, b) => b.members - a.members || a.cluster - b.cluster);
}
