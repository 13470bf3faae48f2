// All runs of the folder, and the curves, clusters and samples of those that are chosen, live.
import {useEffect, useMemo, useState} from 'preact/hooks';

import type {Run} from '../../api/types';
import {palette} from '../../draw/colours';
import type {Range} from '../../draw/scale';
import {Check, Problem, Segments} from '../../ui/controls';
import {numberAt, place, setValues} from '../../ui/place';
import {themeChanges} from '../../ui/theme';
import {ChartView} from './chart_view';
import {curvesOf, mainCharts, smallCharts, xNames, xText, type ChartKind, type XKind} from './charts';
import {ClustersPanel} from './clusters_panel';
import {ConfigPanel} from './config_panel';
import {Connection} from './connection';
import {colourIndices} from './run_colours';
import {configs, followRuns, histories, logs, readConfig, readDetails, readMetrics, readRuns, runProblem, runs, samples} from './run_data';
import {usualChoice} from './run_order';
import {RunTable} from './run_table';
import {SamplesPanel} from './samples_panel';

const xKinds: readonly {value: XKind; name: string}[] = [
  {value: 'step', name: 'Steps'}, {value: 'tokens', name: 'Tokens'}, {value: 'seconds', name: 'Time'},
];
const isXKind = (text: string | undefined): text is XKind => xKinds.some((kind) => kind.value === text);

function Charts(props: {shown: readonly Run[]; indices: ReadonlyMap<string, number>}) {
  const {values} = place.value;
  const x: XKind = isXKind(values['x']) ? values['x'] : 'step';
  const smoothing = Math.max(0, Math.min(0.99, numberAt(values, 'smooth') ?? 0.6));
  const [xLog, inNats] = [values['logx'] === '1', values['nats'] === '1'];
  const isLog = (kind: ChartKind) => !!kind.isMain && (values['logy'] === undefined ? !!kind.isSteep : values['logy'] === '1');
  const mains = mainCharts(props.shown, inNats);
  const yLog = mains.length > 0 && mains.every((chart) => isLog(chart.kind));
  const [cursor, setCursor] = useState<number | undefined>(undefined);
  const [zoom, setZoom] = useState<Range | undefined>(undefined);
  const themes = themeChanges.value;
  const charts = useMemo(() => {
    const colours = palette();
    const specOf = (kind: ChartKind, ids: string[]) => ({
      kind,
      spec: {curves: curvesOf(kind, ids, x, logs.value, props.indices, colours), xName: xNames[x], yName: kind.title,
             xText: (value: number) => xText(x, value), yText: kind.yText, xLog, yLog: isLog(kind), smoothing: kind.isExact ? 0 : smoothing, showsStart: !!kind.isExact, zoom},
    });
    const ids = props.shown.map((run) => run.id);
    const small = smallCharts.map((kind) => specOf(kind, ids)).filter(({kind, spec}) => !kind.isOptional || spec.curves.length > 0);
    return {main: mains.map((chart) => specOf(chart.kind, chart.ids)), small};
  }, [props.shown, props.indices, logs.value, x, xLog, values['logy'], inNats, smoothing, zoom, themes]);
  const flag = (name: string) => (on: boolean) => setValues({[name]: on ? 1 : ''});
  return (
    <section aria-label="Charts">
      <div class="toolbar chart-tools">
        <Segments label="Horizontal axis" choices={xKinds} value={x} onChange={(next) => {
          setZoom(undefined);
          setCursor(undefined);
          setValues({x: next === 'step' ? '' : next});
        }} />
        <label class="check" for="smooth">Smoothing
          <input id="smooth" type="range" min={0} max={0.99} step={0.01} value={smoothing}
                 onInput={(event) => setValues({smooth: event.currentTarget.value})} />
          <span class="smooth-value">{smoothing.toFixed(2)}</span>
        </label>
        <Check label="Log x" checked={xLog} onChange={flag('logx')} />
        <Check label="Log y" checked={yLog} onChange={(on) => setValues({logy: on ? 1 : 0})} />
        <Check label="Nats" title="The loss in nats per token, in which runs of all units can be compared" checked={inNats}
               onChange={flag('nats')} />
        {zoom ? <button type="button" onClick={() => setZoom(undefined)}>Whole axis <kbd>0</kbd></button> : null}
      </div>
      <p id="chart-keys" class="hidden-text">Left and right move along the chart, plus and minus zoom, 0 shows the whole axis.</p>
      {[charts.main, charts.small].map((row, index) => (
        <div key={index} class={index === 0 ? 'main-charts' : 'small-charts'}>
          {row.map(({kind, spec}) => (
            <ChartView key={kind.key} spec={spec} isMain={!!kind.isMain} cursor={cursor} onCursor={setCursor} onZoom={setZoom} />
          ))}
        </div>
      ))}
    </section>
  );
}

export function TrainingView() {
  const {values} = place.value;
  const all = runs.value;
  const chosenText = values['runs'];
  const chosen = useMemo(() => {
    if (!all) return [];
    const ids = chosenText === undefined ? usualChoice(all) : chosenText.split(',');
    return all.filter((run) => ids.includes(run.id) && !run.problem).sort((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id));
  }, [all, chosenText]);
  const ids = chosen.map((run) => run.id);
  const key = ids.join(',');
  const indices = useMemo(() => colourIndices(ids), [key]);
  const focus = ids.includes(values['focus'] ?? '') ? values['focus'] : ids[0];

  useEffect(() => {
    if (!runs.value) void readRuns();
  }, []);
  useEffect(() => followRuns(focus, () => place.value.view === 'training' ? ids : []), [focus, key]);
  useEffect(() => {
    for (const id of ids) {
      if (!logs.value.has(id)) void readMetrics(id);
      void readConfig(id);
    }
  }, [key]);
  useEffect(() => {
    if (focus !== undefined) void readDetails(focus);
  }, [focus]);

  const choose = (next: string[]) => setValues({runs: next.join(',') || 'none'});
  const deadShare = Number(configs.value.get(focus ?? '')?.['routing.dead_share'] ?? 0) || 0;
  return (
    <>
      <div class="view-head"><h1>Training</h1><Connection /></div>
      <Problem error={runProblem.value} onRetry={() => void readRuns()} />
      {all && all.length === 0 ? (
        <p class="empty">No run is in this folder yet. Start one, and it appears here: <code>routing train --data FILE --out runs/mine</code></p>
      ) : null}
      {all && all.length > 0 ? (
        <div class="training">
          <RunTable runs={all} indices={indices} onChoose={choose} />
          {chosen.length === 0 ? <p class="empty">Choose one run or several to see their curves.</p> : (
            <>
              <Charts shown={chosen} indices={indices} />
              <div class="focus toolbar">
                {ids.length > 1 ? (
                  <label for="focus">Clusters and samples of{' '}
                    <select id="focus" value={focus} onChange={(event) => setValues({focus: event.currentTarget.value})}>
                      {ids.map((id) => <option key={id} value={id}>{id}</option>)}
                    </select>
                  </label>
                ) : null}
              </div>
              {focus === undefined ? null : (
                <>
                  <section class="part" aria-labelledby="clusters-title">
                    <h2 id="clusters-title">Clusters</h2>
                    <ClustersPanel run={focus} history={histories.value.get(focus)} deadShare={deadShare} />
                  </section>
                  <section class="part" aria-labelledby="samples-title">
                    <h2 id="samples-title">Samples</h2>
                    <SamplesPanel run={focus} samples={samples.value.get(focus)} />
                  </section>
                </>
              )}
              <details class="part">
                <summary>{ids.length > 1 ? 'What differs in the configurations' : 'Configuration'}</summary>
                <ConfigPanel ids={ids} configs={configs.value} />
              </details>
            </>
          )}
        </div>
      ) : null}
    </>
  );
}
