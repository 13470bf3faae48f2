// Text that looks like some: a few sentences, and chains of their words.
import {chance} from './chance';

export const passage = `The ferry leaves the harbour at six, before the bakers open their shutters. In summer it carries \
hikers and letters; in winter only the postman and his dog, who knows every rope on board. The captain keeps a ledger of \
the tides, and beside each tide a word about the weather. Once, in a night of fog, she steered by the bells of the two \
churches, one on either shore, and wrote beside that tide: heard, not seen.

On the far side the road climbs between walls of loose stone. Sheep stand in the road and will not move. The post office \
is a room behind the shop, and the shop is a room behind the kitchen, so whoever brings a letter also brings the smell of \
bread. Letters for the lighthouse wait in a tin. When the light is repaired the keeper comes down for his letters, reads \
them on the steps, and carries the answers back in the same tin.

There is a map of the island in the schoolroom. The children have drawn the houses, each house in the colour of its door, \
and the paths, each path in the colour of the house where it ends. A stranger can find any door by its colour. The captain \
says that this is how she reads the harbour at night: every light has its colour, and the same colour means the same wall.
`;

const words = passage.match(/\s*[\w']+|[.,:;]|\n+/g) ?? [];

function followers(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  words.forEach((word, index) => {
    const next = words[index + 1] ?? words[0]!;
    const list = found.get(word.trim()) ?? [];
    list.push(next);
    found.set(word.trim(), list);
  });
  return found;
}
const chain = followers();

// A word that could come after this one, and others that could have.
export function nextWord(last: string, random: () => number): {word: string; others: string[]} {
  const list = chain.get(last.trim()) ?? words;
  const word = list[Math.floor(random() * list.length)] ?? ' the';
  const others = new Set<string>(list);
  while (others.size < 9) others.add(words[Math.floor(random() * words.length)]!);
  return {word, others: [...others].filter((other) => other !== word)};
}

export function longText(count: number, seed: number): string[] {
  const random = chance(seed);
  const out: string[] = [];
  let last = '.';
  while (out.length < count) {
    const {word} = nextWord(last, random);
    out.push(word);
    last = word;
    if (word === '.' && random() < 0.16) out.push('\n\n');
  }
  return out.slice(0, count);
}

export function wordsOf(text: string): string[] {
  return text.match(/\s*[\p{L}\p{N}_']+|[^\S\n]*[^\s\p{L}\p{N}_']|\n+|\s+/gu) ?? [];
}
