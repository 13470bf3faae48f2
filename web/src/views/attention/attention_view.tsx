// What does each head read? For a token of a text: earlier tokens by weight, or all tokens by cluster.
import {useEffect, useMemo, useState} from 'preact/hooks';

import {chosenModel, kindOf} from '../../api/models';
import {announce} from '../../ui/announce';
import {Check, Problem, Segments} from '../../ui/controls';
import {percent, visible, whole} from '../../ui/format';
import {ModelChoice, ModelState} from '../../ui/model_choice';
import {sharedText, startSharedText} from '../../ui/shared_text';
import {attentionProblem, clusters, isReading, readClusters, reading, readPosition, readText, subject} from './attention_data';
import {ClusterPanel} from './cluster_panel';
import {findHead, heaviestFirst, meanDistance, neighbours} from './head_facts';
import {HeadMatrix, stepHead, type HeadChoice} from './head_matrix';
import {ReadList} from './read_list';
import type {Shading} from './shading';
import {TextInput} from './text_input';
import {TextView} from './text_view';
import {currentValues, select, selectionOf, type Mode} from './use_selection';

const modes: readonly {value: Mode; name: string}[] = [{value: 'reads', name: 'What it reads'}, {value: 'clusters', name: 'Clusters'}];
const mostArcs = 12;
const typingPause = 60;

const clusterNames = (all: readonly number[]) => all.length === 1 ? `cluster ${all[0]}` :
  `clusters ${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;

function NoText(props: {kind: string}) {
  return (
    <p class="empty">
      {props.kind === 'image' ? 'Images have no text to show here. routing analyze attention draws what their heads read.' :
                                'Encoder-decoders have no such view: their heads read two sequences.'}
    </p>
  );
}

export function AttentionView() {
  const model = chosenModel.value;
  const kind = kindOf(model);
  const text = sharedText.value;
  const [isOpen, setOpen] = useState(false);
  const [showsArcs, setArcs] = useState(true);
  const [marked, setMarked] = useState<number | undefined>(undefined);
  const about = subject.value?.model === model?.id ? subject.value : undefined;
  const layers = about?.answer.layers ?? [];
  const tokens = about?.answer.ids.length ?? 0;
  const chosen = selectionOf(currentValues(), layers, tokens);
  const {layer, head, position, mode} = chosen;

  useEffect(startSharedText, []);
  useEffect(() => {
    if (model && !model.problem && kind === 'text' && text !== '') void readText(model.id, text);
  }, [model?.id, text]);
  useEffect(() => {
    if (!about) return;
    // Arrow keys run over many tokens; the one where they rest is asked about.
    const timer = setTimeout(() => void readPosition(position, layer, head), typingPause);
    return () => clearTimeout(timer);
  }, [about, position, layer, head]);
  useEffect(() => {
    if (about && chosen.isRouted) void readClusters(layer, head);
  }, [about, layer, head, chosen.isRouted]);

  const now = reading.value?.position === position ? findHead(reading.value.heads, layer, head) : undefined;
  const own = clusters.value?.key === `${layer}/${head}` ? clusters.value.of : undefined;
  const sorted = useMemo(() => now ? heaviestFirst(now.reads) : [], [now]);
  const largest = sorted[0]?.weight ?? 0;
  const shownClusters = chosen.only !== undefined ? [chosen.only] : chosen.showsAll ? undefined : own?.[Math.min(position, tokens - 1)] ?? [];
  const shading: Shading = useMemo(() => {
    if (mode === 'clusters') return own ? {kind: 'clusters', of: own, only: shownClusters} : {kind: 'none'};
    if (!now) return {kind: 'none'};
    return {kind: 'reads', weights: new Map(now.reads.map((read) => [read.position, read.weight])), largest};
  }, [mode, own, chosen.only, chosen.showsAll, chosen.showsAll ? 0 : position, now]);
  const arcs = useMemo(() => showsArcs && mode === 'reads' ?
    sorted.slice(0, mostArcs).map((read) => ({token: read.position + 1, share: read.weight / largest})) : [],
                       [showsArcs, mode, sorted]);
  useEffect(() => {
    if (now && about) {
      announce(`Predicting ${visible(about.answer.pieces[position] ?? 'the next token')}. ${sorted.slice(0, 3).map((read) =>
        `${percent(read.weight)} on ${read.position < 0 ? 'the start' : visible(read.token)}`).join(', ')}`);
    }
  }, [now]);

  const goHead = (next: HeadChoice) => select({head: next});
  const member = (step: 'previous' | 'next') => {
    if (!own) return;
    const cluster = chosen.only ?? own[Math.min(position, tokens - 1)]?.[0];
    const to = cluster === undefined ? undefined : neighbours(own, cluster, position)[step];
    if (to !== undefined) select({position: to});
  };
  const onKey = (event: KeyboardEvent): boolean => {
    if (event.key === '[' || event.key === ']') member(event.key === '[' ? 'previous' : 'next');
    else if (event.shiftKey && event.key === 'ArrowRight') goHead(stepHead(layers, chosen, 0, 1));
    else if (event.shiftKey && event.key === 'ArrowLeft') goHead(stepHead(layers, chosen, 0, -1));
    else if (event.shiftKey && event.key === 'ArrowDown') goHead(stepHead(layers, chosen, 1, 0));
    else if (event.shiftKey && event.key === 'ArrowUp') goHead(stepHead(layers, chosen, -1, 0));
    else return false;
    return true;
  };
  const piece = about?.answer.pieces[position];
  return (
    <>
      <div class="view-head"><h1 class="hidden-text">Attention</h1><ModelChoice /></div>
      <ModelState />
      {model && kind !== 'text' ? <NoText kind={kind} /> : (
        <div class="attention">
          <div class="text-side">
            <TextInput isOpen={isOpen || text === ''} onOpen={setOpen} isReading={isReading.value} tokens={about ? tokens : undefined} />
            <Problem error={attentionProblem.value}
                     onRetry={() => about ? void readPosition(position, layer, head) : model && void readText(model.id, text)} />
            {about && !isOpen && text !== '' ? (
              <TextView pieces={about.answer.pieces} shading={shading} position={position} marked={marked} arcs={arcs}
                        onSelect={(next) => select({position: next})} onKey={onKey} />
            ) : null}
          </div>
          {about ? (
            <aside class="head-side" aria-label="Heads">
              <p class="question">
                Predicting {piece === undefined ? 'what comes next' : <code>{visible(piece)}</code>}
                {piece === undefined ? null : <span class="soft"> at {whole(position)}</span>}
              </p>
              <HeadMatrix layers={layers} position={position} value={chosen} onChange={goHead}
                          heads={reading.value?.position === position ? reading.value.heads : undefined} />
              <p class="label key-of-heads"><span class="chip plain-head">near</span><span>distance of what is read</span>
                <span>far</span></p>
              <h2>Layer {layer}, head {head} <span class="soft">{chosen.pattern}</span></h2>
              <div class="toolbar">
                {chosen.isRouted ? <Segments label="Colour" choices={modes} value={mode} onChange={(next) => select({mode: next})} /> : null}
                {mode === 'reads' ? <Check label="Arcs" checked={showsArcs} onChange={setArcs} /> : null}
              </div>
              {mode === 'clusters' && own ? (
                <ClusterPanel of={own} count={chosen.clusters} token={Math.min(position, tokens - 1)} only={chosen.only} showsAll={chosen.showsAll}
                              onAll={(showsAll) => select({showsAll, only: undefined})}
                              onOnly={(only) => select({only})} onGo={(to) => select({position: to})} />
              ) : null}
              {mode === 'reads' && now ? (
                <>
                  <p class="soft small">
                    {now.reads.length === 0 ? 'It reads nothing here.' :
                      `It reads ${whole(now.reads.length)} tokens, ${whole(meanDistance(position, now.reads))} back on average` +
                      `${now.clusters?.length ? `, through ${clusterNames(now.clusters)}` : ''}.`}
                  </p>
                  <ReadList reads={now.reads} pieces={about.answer.pieces} position={position} onMark={setMarked} onGo={(to) => select({position: to})} />
                </>
              ) : null}
            </aside>
          ) : null}
        </div>
      )}
    </>
  );
}
