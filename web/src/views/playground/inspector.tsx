// One token: how likely it was, and what the model would have written instead.
import {digits, percent, visible} from '../../ui/format';
import {alternatives} from './settings';
import type {Looked} from './token_text';
import {bitsOf, levelOf, tokenLabel, unitBits, type Token} from './units';

function Alternatives(props: {token: Token; onReplace: ((text: string) => void) | undefined}) {
  const {token} = props;
  if (token.others.length === 0) return null;
  const listed = token.others.reduce((sum, other) => sum + Math.exp(other.logprob), 0);
  return (
    <ol class="alternatives" aria-label="Likeliest tokens at this place">
      {token.others.map((other) => {
        const share = Math.exp(other.logprob);
        const isOwn = other.text === token.text;
        const label = visible(tokenLabel(other.text));
        const canReplace = props.onReplace && !isOwn && !other.text.startsWith('bytes:');
        return (
          <li key={other.text}>
            <button type="button" class={isOwn ? 'own' : ''} disabled={!canReplace}
                    title={canReplace ? 'Put this one here and go on' : undefined}
                    onClick={() => props.onReplace?.(other.text)}>
              <span class="bar-of" style={{width: `${Math.max(0.5, share * 100)}%`}} />
              <code>{label}</code>
              <span class="share">{percent(share)}</span>
            </button>
          </li>
        );
      })}
      <li class="rest"><span>all others</span><span>{percent(Math.max(0, 1 - listed))}</span></li>
    </ol>
  );
}

function One(props: {token: Token; onReplace: ((text: string) => void) | undefined}) {
  const {token} = props;
  // Where it is none of the likeliest, the server adds it as one more.
  const place = token.others.findIndex((other) => other.text === token.text);
  const rank = place < alternatives ? place : -1;
  return (
    <div class="one-token">
      {token.logprob === null ? <p class="soft">It has no probability.</p> : (
        <dl class="facts">
          <div><dt>Probability</dt><dd>{percent(Math.exp(token.logprob))}</dd></div>
          <div>
            <dt>Bits</dt>
            <dd><span class={`patch heat-${levelOf(bitsOf(token.logprob))}`} />{digits(bitsOf(token.logprob), 3)}</dd>
          </div>
          <div><dt>Rank</dt><dd>{rank >= 0 ? rank + 1 : `below ${Math.min(alternatives, token.others.length)}`}</dd></div>
        </dl>
      )}
      <Alternatives token={token} onReplace={props.onReplace} />
    </div>
  );
}

export function Inspector(props: {
  looked: Looked; onReplace?: ((index: number, text: string) => void) | undefined; onClose: () => void;
}) {
  const {unit, index} = props.looked;
  const several = unit.tokens.length > 1;
  const bits = unitBits(unit);
  return (
    <section class="inspector" aria-label="Token">
      <header>
        <code class="token-name">{visible(unit.text)}</code>
        <button type="button" class="plain tight" onClick={props.onClose}>Close</button>
      </header>
      {unit.tokens.length === 0 ? <p class="soft">{unit.isDrawn ? 'Drawn without probabilities.' : 'Typed, not drawn.'}</p> : null}
      {several && bits !== null ? <p class="soft">{unit.tokens.length} tokens, {digits(bits, 3)} bits together</p> : null}
      {unit.tokens.map((token, part) => (
        <div key={part}>
          {several ? <p><code>{visible(tokenLabel(token.text))}</code></p> : null}
          <One token={token} onReplace={props.onReplace && !several ? (text) => props.onReplace?.(index, text) : undefined} />
        </div>
      ))}
    </section>
  );
}
