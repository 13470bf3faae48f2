// Several samples that go on from the same text, side by side.
import {plural} from '../../ui/format';
import type {Sample} from './generation';
import {finishText} from './status_line';
import {TokenText, type Looked} from './token_text';
import {costOf} from './units';

export function Samples(props: {
  samples: readonly Sample[]; isDrawing: boolean; looked: Looked | undefined;
  onLook: (looked: Looked | undefined) => void; onTake: (index: number) => void;
}) {
  if (props.samples.length === 0) return null;
  return (
    <div class="samples">
      {props.samples.map((sample, index) => {
        const {tokens, bits} = costOf(sample.units);
        return (
          <section key={index} aria-label={`Sample ${index + 1}`}>
            <header>
              <h3>{index + 1}</h3>
              <span class="label">
                {plural(tokens, 'token')}{tokens > 0 ? `, ${(bits / tokens).toFixed(2)} bits each` : ''}
              </span>
              <button type="button" class="plain tight" disabled={props.isDrawing} title={finishText(sample.finish)}
                      onClick={() => props.onTake(index)}>
                Keep this one
              </button>
            </header>
            <TokenText units={sample.units} label={`Sample ${index + 1}, token by token`} looked={props.looked}
                       onLook={props.onLook} />
          </section>
        );
      })}
    </div>
  );
}
