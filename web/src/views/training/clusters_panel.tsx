// All routed heads of one run, side by side, and how many centroids are dead.
import type {ClusterHistory} from '../../api/types';
import {palette} from '../../draw/colours';
import {plural} from '../../ui/format';
import {themeChanges} from '../../ui/theme';
import {HeatMap} from './heat_map';
import {heatColour} from './heat_scale';

function Key(props: {deadShare: number}) {
  void themeChanges.value;
  const colours = palette();
  const steps = [{times: 0, name: 'dead'}, {times: 0.25, name: '¼'}, {times: 0.5, name: '½'}, {times: 1, name: 'fair share'},
                 {times: 2, name: '2 ×'}, {times: 4, name: '4 × and more'}];
  return (
    <ul class="heat-key label" aria-label="Colours of clusters">
      {steps.map(({times, name}) => (
        <li key={name} class="chip"><span class="swatch" style={{color: heatColour(times, times === 0 ? 1 : props.deadShare, colours)}} />{name}</li>
      ))}
    </ul>
  );
}

export function ClustersPanel(props: {run: string; history: ClusterHistory | undefined; deadShare: number}) {
  const {history} = props;
  if (!history) return null;
  if (history.heads.length === 0) return <p class="soft">This run has no routed heads.</p>;
  if (history.steps.length === 0) return <p class="soft">No clusters were logged; <code>train.clusters_every</code> says how often they are.</p>;
  const dead = history.dead.at(-1) ?? 0;
  return (
    <>
      <div class="toolbar">
        <Key deadShare={props.deadShare} />
        <span class={dead > 0 ? 'label bad' : 'label'}>{plural(dead, 'dead centroid')} at the last step</span>
      </div>
      <div class="heats">
        {history.heads.map((_, head) => <HeatMap key={head} run={props.run} history={history} head={head} deadShare={props.deadShare} />)}
      </div>
    </>
  );
}
