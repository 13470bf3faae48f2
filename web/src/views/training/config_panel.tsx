// The configuration of the shown runs: of several, only what differs.
import {useState} from 'preact/hooks';

import {differing} from './config_rows';

export function ConfigPanel(props: {ids: readonly string[]; configs: ReadonlyMap<string, Readonly<Record<string, string>>>}) {
  const [filter, setFilter] = useState('');
  const known = props.ids.filter((id) => props.configs.has(id));
  if (known.length === 0) return null;
  const all = differing(known.map((id) => props.configs.get(id)!));
  const rows = all.filter((row) => row.key.includes(filter.toLowerCase()));
  return (
    <>
      <div class="toolbar">
        <label for="key-filter" class="hidden-text">Find keys</label>
        <input id="key-filter" type="search" placeholder="Find keys" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        {known.length > 1 && all.length === 0 ? <span class="label">these runs have the same configuration</span> : null}
      </div>
      <div class="config-scroller">
        <table class="config">
          {known.length > 1 ? <thead><tr><th scope="col">Key</th>{known.map((id) => <th key={id} scope="col">{id}</th>)}</tr></thead> : null}
          <tbody>
            {rows.map((row) => (
              <tr key={row.key}><th scope="row"><code>{row.key}</code></th>{row.values.map((value, index) => <td key={index}><code>{value}</code></td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
