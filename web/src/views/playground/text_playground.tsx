// One text: typed in part, drawn in part, and edited anywhere.
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';

import {kindOf} from '../../api/models';
import type {Model} from '../../api/types';
import {announce} from '../../ui/announce';
import {Problem} from '../../ui/controls';
import {percent, visible} from '../../ui/format';
import {Actions} from './actions';
import {activity, draft, drawAgain, edit, endTyping, finish, goOn, problem, replaceUnit, samples, speed, stop, take, usage} from './generation';
import {Inspector} from './inspector';
import {Cost, Legend} from './legend';
import {Samples} from './samples';
import {SettingsPanel} from './settings_panel';
import {StatusLine} from './status_line';
import {TokenText, type Looked} from './token_text';
import {textOf, unitBits} from './units';

const placeholders = {
  text: 'Write a beginning, or nothing at all, and let the model go on.',
  image: '',
  symbols: 'Write the symbols that the model reads, for example 12 7 7 30.',
};

function describe({unit}: Looked): string {
  const bits = unitBits(unit);
  const [token] = unit.tokens;
  const others = token?.others.slice(0, 3).map((other) => `${visible(other.text)} ${percent(Math.exp(other.logprob))}`);
  return bits === null ? `${visible(unit.text)}, typed` :
                         `${visible(unit.text)}, ${bits.toFixed(1)} bits. Likeliest: ${others?.join(', ') ?? ''}`;
}

export function TextPlayground(props: {model: Model | undefined}) {
  const {model} = props;
  const [isEditing, setEditing] = useState<number | undefined>(undefined);
  const [looked, setLooked] = useState<Looked | undefined>(undefined);
  const field = useRef<HTMLTextAreaElement>(null);
  const units = draft.value;
  const isDrawing = activity.value.kind !== 'idle';
  const hasDrawn = units.some((unit) => unit.isDrawn);
  const showsField = !isDrawing && (isEditing !== undefined || (!hasDrawn && samples.value.length === 0));
  const id = model && !model.problem ? model.id : undefined;

  const commit = () => {
    if (field.current && showsField) edit(field.current.value);
    endTyping();
    setEditing(undefined);
  };
  const begin = (how: (model: string) => Promise<void>) => {
    commit();
    setLooked(undefined);
    if (id) void how(id);
  };
  const look = (next: Looked | undefined) => {
    setLooked(next);
    if (next?.isPinned) announce(describe(next));
  };
  const editAt = (index: number) => {
    if (isDrawing) return;
    setLooked(undefined);
    setEditing(textOf(units.slice(0, index + 1)).length);
  };
  useEffect(() => {
    if (isEditing === undefined || !field.current) return;
    field.current.focus();
    field.current.setSelectionRange(isEditing, isEditing);
  }, [isEditing]);
  // Before the reader sees what the keys are about, so that none of them means what stood there before.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        begin(goOn);
      } else if (event.key === 'Escape') {
        if (isDrawing) stop();
        else if (looked) setLooked(undefined);
        else commit();
      }
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  });

  return (
    <div class="playground">
      <details class="settings-box" open={matchMedia('(min-width: 64rem)').matches}>
        <summary>Sampler</summary>
        <SettingsPanel isImage={false} mostTokens={model?.max_tokens} />
      </details>
      <div class="text-column">
        <div class="paper">
          {showsField ? (
            <textarea ref={field} class="prompt mono" aria-label="Text" spellcheck={false} autocomplete="off"
                      defaultValue={textOf(units)} placeholder={placeholders[kindOf(model)]}
                      onInput={(event) => edit(event.currentTarget.value)} onBlur={endTyping} />
          ) : (
            <TokenText units={units} label="Text, token by token" looked={looked} onLook={look} onEdit={editAt} />
          )}
          <p id="token-keys" class="hidden-text">Arrow keys go from token to token, Enter edits the text there.</p>
          <Samples samples={samples.value} isDrawing={isDrawing} looked={looked} onLook={look} onTake={take} />
        </div>
        <Problem error={problem.value} onRetry={() => begin(goOn)} />
        <Actions model={id} isDrawing={isDrawing} isEditing={isEditing !== undefined}
                 hasDrawn={hasDrawn || samples.value.length > 0}
                 canEdit={hasDrawn && !showsField} onGoOn={() => begin(goOn)} onAgain={() => begin(drawAgain)}
                 onEdit={() => editAt(units.length - 1)} onDone={commit} />
        <StatusLine activity={activity.value} speed={speed.value} usage={usage.value} finish={finish.value} />
      </div>
      <aside class={looked ? 'side looked' : 'side'} aria-label="Token and legend">
        {looked ? (
          <Inspector looked={looked} onClose={() => setLooked(undefined)}
                     onReplace={id && !isDrawing && units[looked.index] === looked.unit ?
                       (index, text) => {
                         setLooked(undefined);
                         replaceUnit(index, text, id);
                       } : undefined} />
        ) : (
          <div class="side-rest">
            <Legend />
            <Cost units={units} />
            <p class="soft small">Point at a token to see what else the model expected there. Double-click edits the text
              from that place.</p>
          </div>
        )}
      </aside>
    </div>
  );
}
