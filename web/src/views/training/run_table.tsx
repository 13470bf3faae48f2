// All runs of the folder. Those that are chosen have a colour, which the charts use.
import {useState} from 'preact/hooks';

import type {Run} from '../../api/types';
import {groupColour, palette} from '../../draw/colours';
import {Validity} from '../../ui/controls';
import {ago, compact, digits, percent, plural, whole} from '../../ui/format';
import {isRecord, keep, recall} from '../../ui/storage';
import {themeChanges} from '../../ui/theme';
import {unitName} from './charts';
import {matching, sorted, type Order, type SortKey} from './run_order';

const columns: readonly {key: SortKey; name: string; class: string}[] = [
  {key: 'id', name: 'Run', class: ''}, {key: 'state', name: 'State', class: ''}, {key: 'best', name: 'Best', class: ''},
  {key: 'step', name: 'Steps', class: 'steps'}, {key: 'data', name: 'Data', class: 'wide-only'},
  {key: 'parameters', name: 'Weights', class: 'wide-only number'}, {key: 'changed', name: 'Changed', class: 'wide-only number'},
];
const mostRows = 400;

const isOrder = (value: unknown): value is Order =>
    isRecord(value) && typeof value['isDown'] === 'boolean' && columns.some((column) => column.key === value['by']);

function Row(props: {run: Run; colour: string | undefined; now: number; onToggle: () => void; onOnly: () => void}) {
  const {run, colour} = props;
  const share = run.steps ? Math.min(1, (run.step ?? 0) / run.steps) : 0;
  return (
    <tr class={colour ? 'chosen' : ''}>
      <td class="pick">
        <input type="checkbox" aria-label={`Show ${run.id}`} checked={!!colour} disabled={!!run.problem} onChange={props.onToggle}
               style={colour ? {accentColor: colour} : {}} />
      </td>
      <th scope="row">
        {run.problem ? run.id : <button type="button" class="plain tight" title="Show only this one" onClick={props.onOnly}>{run.id}</button>}
      </th>
      {run.problem ? <td colSpan={6} class="problem-text">{run.problem}</td> : (
        <>
          <td class={`state ${run.state ?? ''}`}>{run.state === 'running' ? <span class="dot" /> : null}{run.state}</td>
          <td class="best">
            {run.best === null || run.best === undefined ? <span class="soft">none yet</span> : (
              <>
                {digits(run.best, 4)} <span class="soft unit">{unitName(run)}</span> <Validity label={run.validity} />
                {run.data_label ? <span class="label bad"> {run.data_label}</span> : null}
              </>
            )}
          </td>
          <td class="steps">
            <span class="progress" role="img" aria-label={percent(share)}><span style={{width: `${share * 100}%`}} /></span>
            {whole(run.step ?? 0)}<span class="soft">/{whole(run.steps ?? 0)}</span>
          </td>
          <td class="wide-only">{run.data}</td>
          <td class="wide-only number">{run.parameters ? compact(run.parameters) : ''}</td>
          <td class="wide-only number soft">{run.changed ? ago(run.changed, props.now) : ''}</td>
        </>
      )}
    </tr>
  );
}

export function RunTable(props: {
  runs: readonly Run[]; indices: ReadonlyMap<string, number>; onChoose: (ids: string[]) => void;
}) {
  const [order, setOrder] = useState<Order>(() => recall<Order>('runs.order', {by: 'changed', isDown: false}, isOrder));
  const [filter, setFilter] = useState('');
  void themeChanges.value;
  const colours = palette();
  const found = sorted(matching(props.runs, filter), order);
  const chosen = [...props.indices.keys()];
  const sortBy = (by: SortKey) => {
    const next = {by, isDown: order.by === by ? !order.isDown : false};
    setOrder(next);
    keep('runs.order', next);
  };
  const toggle = (id: string) => props.onChoose(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  return (
    <section class="runs" aria-label="Runs">
      <div class="toolbar">
        <label for="filter" class="hidden-text">Find runs</label>
        <input id="filter" type="search" placeholder="Find runs" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="label">{found.length === props.runs.length ? plural(found.length, 'run') : `${whole(found.length)} of ${whole(props.runs.length)} runs`}</span>
      </div>
      <div class="run-scroller">
        <table>
          <thead>
            <tr>
              <td class="pick" />
              {columns.map((column) => (
                <th key={column.key} scope="col" class={column.class}
                    aria-sort={order.by === column.key ? (order.isDown ? 'descending' : 'ascending') : 'none'}>
                  <button type="button" class="plain tight" onClick={() => sortBy(column.key)}>
                    {column.name}<span aria-hidden="true" class="arrow">{order.by === column.key ? (order.isDown ? '↓' : '↑') : ''}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, mostRows).map((run) => {
              const index = props.indices.get(run.id);
              return <Row key={run.id} run={run} now={Date.now()} colour={index === undefined ? undefined : groupColour(index, colours)}
                          onToggle={() => toggle(run.id)} onOnly={() => props.onChoose([run.id])} />;
            })}
          </tbody>
        </table>
      </div>
      {found.length > mostRows ? <p class="soft small">The first {mostRows} are shown; write a part of a name to find others.</p> : null}
    </section>
  );
}
