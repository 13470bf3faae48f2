// Each shown run keeps its colour as long as it is shown, whatever comes and goes beside it.
const given = new Map<string, number>();

export function colourIndices(shown: readonly string[]): ReadonlyMap<string, number> {
  for (const id of [...given.keys()]) if (!shown.includes(id)) given.delete(id);
  for (const id of shown) {
    if (given.has(id)) continue;
    const used = new Set(given.values());
    let index = 0;
    while (used.has(index)) ++index;
    given.set(id, index);
  }
  return new Map(shown.map((id) => [id, given.get(id)!]));
}
