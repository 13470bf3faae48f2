// The exact weights of a head at a position.
import {useState} from 'preact/hooks';

import type {Read} from '../../api/types';
import {visible, whole} from '../../ui/format';
import {heaviestFirst} from './head_facts';

const shortList = 60;

export function ReadList(props: {
  reads: readonly Read[]; position: number; onMark: (position: number | undefined) => void; onGo: (position: number) => void;
}) {
  const [isLong, setLong] = useState(false);
  const {reads, position} = props;
  const sorted = heaviestFirst(reads);
  const shown = isLong ? sorted : sorted.slice(0, shortList);
  const largest = sorted[0]?.weight ?? 0;
  return (
    <div class="reads">
      <table>
        <thead>
          <tr><th scope="col" class="number">Weight</th><th scope="col">Token</th><th scope="col" class="number">At</th>
            <th scope="col" class="number">Back</th></tr>
        </thead>
        <tbody>
          {shown.map((read) => (
            <tr key={read.position} onMouseEnter={() => props.onMark(read.position)} onMouseLeave={() => props.onMark(undefined)}>
              <td class="number weight">
                <span class="bar-of" style={{width: `${largest > 0 ? read.weight / largest * 100 : 0}%`}} />
                <span>{read.weight.toFixed(4)}</span>
              </td>
              <td class="piece"><code>{read.position < 0 ? 'start' : visible(read.token)}</code></td>
              <td class="number">
                {read.position < 0 ? '' : (
                  <button type="button" class="plain tight" title="Choose this token" onClick={() => props.onGo(read.position)}
                          onFocus={() => props.onMark(read.position)} onBlur={() => props.onMark(undefined)}>
                    {whole(read.position)}
                  </button>
                )}
              </td>
              <td class="number soft">{whole(position - read.position)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {sorted.length > shortList && !isLong ? (
        <button type="button" class="plain" onClick={() => setLong(true)}>All {whole(sorted.length)} tokens</button>
      ) : null}
    </div>
  );
}
