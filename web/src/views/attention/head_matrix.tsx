// All heads, a row per layer. Each cell draws how far back the head reads from the chosen token.
import {useRef} from 'preact/hooks';

import type {HeadReads, LayerInfo} from '../../api/types';
import {percent, plural} from '../../ui/format';
import {focusIndex, moved} from '../../ui/roving';
import {findHead, summaryPath, weightByDistance} from './head_facts';

export interface HeadChoice { layer: number; head: number }

function titleOf(layer: number, head: number, pattern: string, reads: HeadReads | undefined): string {
  const what = `layer ${layer} head ${head}, ${pattern}`;
  const [heaviest] = reads?.reads ?? [];
  return reads && heaviest ? `${what}: reads ${plural(reads.reads.length, 'token')}, ${percent(heaviest.weight)} of one` : what;
}

// The head that a step of rows and columns leads to; layers may have different numbers of heads.
export function stepHead(layers: readonly LayerInfo[], from: HeadChoice, down: number, right: number): HeadChoice {
  const row = layers.findIndex((each) => each.layer === from.layer);
  const next = layers[Math.max(0, Math.min(layers.length - 1, row + down))];
  const column = layers[row]?.heads.findIndex((each) => each.head === from.head) ?? 0;
  const head = next?.heads[Math.max(0, Math.min(next.heads.length - 1, column + right))];
  return next && head ? {layer: next.layer, head: head.head} : from;
}

export function HeadMatrix(props: {
  layers: readonly LayerInfo[]; position: number; heads: readonly HeadReads[] | undefined; value: HeadChoice;
  onChange: (choice: HeadChoice) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const {layers, value} = props;
  const columns = Math.max(1, ...layers.map((layer) => layer.heads.length));
  const cells = layers.flatMap(({layer, heads}, row) => heads.map((head, column) => ({layer, ...head, index: row * columns + column})));
  const onKeyDown = (event: KeyboardEvent) => {
    const own = cells.find((cell) => cell.layer === value.layer && cell.head === value.head);
    const index = moved(event.key, own?.index ?? 0, {rows: layers.length, columns});
    const next = cells.find((cell) => cell.index === index);
    if (index === undefined || !next) return;
    event.preventDefault();
    props.onChange({layer: next.layer, head: next.head});
    focusIndex(box.current, index);
  };
  return (
    <div class="heads" role="radiogroup" aria-label="Layer and head" ref={box} onKeyDown={onKeyDown}
         style={{gridTemplateColumns: `auto repeat(${columns}, minmax(1.5rem, 1fr))`}}>
      <span class="corner label" aria-hidden="true">layer</span>
      {Array.from({length: columns}, (_, column) => <span key={column} class="column label" aria-hidden="true">{column}</span>)}
      {layers.map(({layer, heads}, row) => (
        <>
          <span class="row label" aria-hidden="true" key={`row ${layer}`} style={{gridColumn: 1}}>{layer}</span>
          {heads.map(({head, pattern, routed}, column) => {
            const reads = findHead(props.heads, layer, head);
            const isChosen = layer === value.layer && head === value.head;
            const title = titleOf(layer, head, pattern, reads);
            return (
              <button key={`${layer}/${head}`} type="button" role="radio" class={routed ? 'routed' : ''} title={title}
                      aria-label={title} aria-checked={isChosen} tabIndex={isChosen ? 0 : -1} data-index={row * columns + column}
                      onClick={() => props.onChange({layer, head})}>
                <svg viewBox="0 0 16 8" preserveAspectRatio="none" aria-hidden="true">
                  {reads ? <path d={summaryPath(weightByDistance(props.position, reads.reads))} /> : null}
                </svg>
              </button>
            );
          })}
        </>
      ))}
    </div>
  );
}
