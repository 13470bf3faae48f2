// The exact weights of a head at a position.
import {useState} from 'preact/hooks';

import type {Read} from '../../api/types';
import {visible, whole} from '../../ui/format';
import {heaviestFirst, surroundings} from './head_facts';

const shortList = 60;
const around = 16;

// One line: ends of lines are signs, other white space is what it is.
const inLine = (text: string) => text.replace(/\s*\n\s*/g, ' ↵ ').replace(/\t/g, ' ');

function Piece(props: {read: Read; pieces: readonly string[]}) {
  const {position, token} = props.read;
  if (position < 0) return <span class="soft">the start</span>;
  const {before, after} = surroundings(props.pieces, position, around);
  const own = props.pieces[position] || token;
  return (
    <>
      <span class="around before"><bdi>{inLine(before)}</bdi></span>
      <b>{own.trim() === '' ? visible(own) : inLine(own)}</b>
      <span class="around">{inLine(after)}</span>
    </>
  );
}

export function ReadList(props: {
  reads: readonly Read[]; pieces: readonly string[]; position: number; onMark: (position: number | undefined) => void; onGo: (position: number) => void;
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
              <td class="piece"><Piece read={read} pieces={props.pieces} /></td>
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
