// The small parts that all views are made of.
import type {ComponentChildren} from 'preact';
import {useRef, useState} from 'preact/hooks';

import {advice, messageOf} from '../api/error';
import {focusIndex, moved} from './roving';

export interface Choice<T extends string> { value: T; name: string; title?: string }

// One of a few. Arrows choose, as with radio buttons.
export function Segments<T extends string>(props: {
  label: string; choices: readonly Choice<T>[]; value: T; onChange: (value: T) => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const {choices, value} = props;
  const onKeyDown = (event: KeyboardEvent) => {
    const index = choices.findIndex((choice) => choice.value === value);
    const key = event.key.replace('ArrowDown', 'ArrowRight').replace('ArrowUp', 'ArrowLeft');
    const next = moved(key, Math.max(0, index), {rows: 1, columns: choices.length});
    const choice = next === undefined ? undefined : choices[next];
    if (next === undefined || !choice) return;
    event.preventDefault();
    props.onChange(choice.value);
    focusIndex(box.current, next);
  };
  return (
    <div class="segments" role="radiogroup" aria-label={props.label} ref={box} onKeyDown={onKeyDown}>
      {choices.map((choice, index) => (
        <button type="button" role="radio" key={choice.value} data-index={index} title={choice.title}
                aria-checked={choice.value === value} tabIndex={choice.value === value ? 0 : -1}
                onClick={() => props.onChange(choice.value)}>
          {choice.name}
        </button>
      ))}
    </div>
  );
}

export function Check(props: {label: string; checked: boolean; onChange: (checked: boolean) => void; title?: string}) {
  return (
    <label class="check" title={props.title}>
      <input type="checkbox" checked={props.checked} onChange={(event) => props.onChange(event.currentTarget.checked)} />
      {props.label}
    </label>
  );
}

// A number with its range. What is typed counts when it is complete, and is brought into the range; until then it stays as
// it is, whatever else is rendered meanwhile.
export function Dial(props: {
  id: string; label: string; value: number; least: number; most: number; step?: number; slider?: boolean; hint?: string;
  onChange: (value: number) => void;
}) {
  const [typed, setTyped] = useState<string | undefined>(undefined);
  const step = props.step ?? 1;
  const set = (text: string) => {
    const value = Number(text);
    if (text.trim() === '' || !Number.isFinite(value)) return;
    const near = step >= 1 ? Math.round(value) : value;
    props.onChange(Math.max(props.least, Math.min(props.most, near)));
  };
  const range = {min: props.least, max: props.most, step};
  return (
    <div class="dial">
      <label for={props.id}>{props.label}</label>
      <input id={props.id} type="number" {...range} step={step >= 1 ? step : 'any'} value={typed ?? props.value}
             aria-describedby={props.hint ? `${props.id}-hint` : undefined}
             onInput={(event) => setTyped(event.currentTarget.value)} onBlur={() => setTyped(undefined)}
             onChange={(event) => {
               set(event.currentTarget.value);
               setTyped(undefined);
               event.currentTarget.value = String(props.value);
             }} />
      {props.slider === false ? null : (
        <input type="range" {...range} value={props.value} aria-label={props.label} tabIndex={-1}
               onInput={(event) => set(event.currentTarget.value)} />
      )}
      {props.hint ? <p class="hint" id={`${props.id}-hint`}>{props.hint}</p> : null}
    </div>
  );
}

// An error in words, with what to do.
export function Problem(props: {error: unknown; children?: ComponentChildren; onRetry?: (() => void) | undefined}) {
  if (!props.error) return null;
  return (
    <div class="notice" role="alert">
      <p><strong>{messageOf(props.error)}.</strong> {advice(props.error)}</p>
      {props.onRetry ? <button type="button" onClick={props.onRetry}>Try again</button> : null}
      {props.children}
    </div>
  );
}

// The validity label stands beside every likelihood; what is not causal is said louder.
export function Validity(props: {label: string | undefined}) {
  if (!props.label) return null;
  const isCausal = props.label === 'causal';
  return (
    <span class={isCausal ? 'label' : 'label bad'}
          title={isCausal ? 'No prediction depends on later tokens.' :
                            'What a token reads depends on later tokens, so this is no valid likelihood.'}>
      {props.label}
    </span>
  );
}
