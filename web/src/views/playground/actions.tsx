// What can be done with the text.
import {useState} from 'preact/hooks';

import {setSharedText} from '../../ui/shared_text';
import {go} from '../../ui/place';
import {canUndo, draft, stop, undo} from './generation';
import {change, completionBody, curlOf, settings} from './settings';
import {textOf} from './units';

export function CopyButton(props: {text: () => string; children: string}) {
  const [state, setState] = useState<'' | 'Copied' | 'Not allowed'>('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text());
      setState('Copied');
    } catch {
      setState('Not allowed');
    }
    setTimeout(() => setState(''), 1500);
  };
  return <button type="button" class="plain" aria-live="polite" onClick={() => void copy()}>{state || props.children}</button>;
}

export function Actions(props: {
  model: string | undefined; isDrawing: boolean; isEditing: boolean; canEdit: boolean; hasDrawn: boolean;
  onGoOn: () => void; onAgain: () => void; onEdit: () => void; onDone: () => void;
}) {
  const {model, isDrawing} = props;
  const curl = () => curlOf(new URL('v1/completions', document.baseURI).href,
                            completionBody(model ?? '', textOf(draft.value), settings.value));
  const look = () => {
    setSharedText(textOf(draft.value));
    go({view: 'attention', values: model ? {model} : {}});
  };
  return (
    <div class="actions">
      {isDrawing ? (
        <button type="button" class="main" onClick={stop}>Stop <kbd>Esc</kbd></button>
      ) : (
        <button type="button" class="main" disabled={!model} onClick={props.onGoOn}>
          {props.hasDrawn ? 'Continue' : 'Generate'} <kbd>Ctrl ⏎</kbd>
        </button>
      )}
      <button type="button" disabled={!model || isDrawing || !props.hasDrawn} onClick={() => {
        change({seed: settings.value.seed + 1});
        props.onAgain();
      }}>
        Regenerate
      </button>
      {props.isEditing ? <button type="button" onClick={props.onDone}>Done</button> :
                         <button type="button" disabled={!props.canEdit} onClick={props.onEdit}>Edit</button>}
      <button type="button" disabled={!canUndo.value} onClick={undo}>Undo</button>
      <span class="spacer" />
      <button type="button" class="plain" disabled={!model || draft.value.length === 0} onClick={look}>
        See attention
      </button>
      <CopyButton text={curl}>Copy as curl</CopyButton>
    </div>
  );
}
