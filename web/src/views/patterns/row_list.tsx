// S_i: what a row reads, as a set and key by key with its groups.
import type {PatternAnswer} from '../../api/types';
import {groupColour, palette} from '../../draw/colours';
import {plural} from '../../ui/format';
import {themeChanges} from '../../ui/theme';
import type {Cell} from './matrix_view';
import {keysOf, setText} from './pattern_facts';

export function RowList(props: {answer: PatternAnswer; cell: Cell}) {
  const {row, column} = props.cell;
  void themeChanges.value;
  const colours = palette();
  const keys = keysOf(props.answer, row);
  const groups = new Set(keys.flatMap((key) => key.groups));
  const under = keys.find((key) => key.key === column);
  return (
    <section class="row-list" aria-label={`What row ${row} reads`}>
      <h2>S<sub>{row}</sub></h2>
      <p class="set mono">{keys.length === 0 ? '∅' : setText(keys.map((key) => key.key))}</p>
      <p class="soft small">
        Output {row} reads {plural(keys.length, 'input')}{groups.size > 1 ? ` through ${groups.size} groups` : ''}.
        {' '}{column === undefined ? '' :
          under ? `Input ${column} is read through group ${under.groups.join(' and ')}.` : `Input ${column} is not read.`}
      </p>
      <ol class="keys" aria-label="Inputs and their groups">
        {keys.map(({key, groups: through}) => (
          <li key={key} class={key === column ? 'chip on' : 'chip'}>
            {through.map((group) => <span key={group} class="swatch" style={{color: groupColour(group, colours)}} />)}
            {key}
          </li>
        ))}
      </ol>
    </section>
  );
}
