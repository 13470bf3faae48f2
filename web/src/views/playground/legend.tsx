// What the colours of tokens mean, and what the drawn text cost.
import {digits, plural} from '../../ui/format';
import {costOf, levels, type Unit} from './units';

export function Legend() {
  return (
    <div class="legend" role="img"
         aria-label="Colour of a token: without colour a probability of 50 % or more, each step half as likely, the strongest 0.2 % or less">
      <span>expected</span>
      <span class="steps">
        {Array.from({length: levels}, (_, level) => (
          <span key={level} class={`heat-${level}`}
                title={level + 1 < levels ? `${level} to ${level + 1} bits` : `${level} bits or more`} />
        ))}
      </span>
      <span>surprising</span>
      <span class="ends" aria-hidden="true"><span>≥ 50 %</span><span>≤ 0.2 %</span></span>
    </div>
  );
}

export function Cost(props: {units: readonly Unit[]}) {
  const {tokens, bits} = costOf(props.units);
  if (tokens === 0) return null;
  return (
    <dl class="facts">
      <div><dt>Drawn</dt><dd>{plural(tokens, 'token')}</dd></div>
      <div><dt>Bits per token</dt><dd>{digits(bits / tokens, 3)}</dd></div>
    </dl>
  );
}
