// The text that is looked at: typed, pasted, dropped as a file, or taken over from the playground.
import {useRef, useState} from 'preact/hooks';

import {setSharedText, sharedText} from '../../ui/shared_text';
import {whole} from '../../ui/format';

const mostBytes = 8 * 1024 * 1024;

export function TextInput(props: {isOpen: boolean; onOpen: (isOpen: boolean) => void; isReading: boolean; tokens: number | undefined}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [problem, setProblem] = useState('');
  const use = (text: string) => {
    // As JSON it is a little longer; the server says so where that matters.
    if (new Blob([text]).size > mostBytes) {
      setProblem('This text is longer than the 8 MiB that a request holds. Take a part of it.');
      return;
    }
    setProblem('');
    setSharedText(text);
    if (text !== '') props.onOpen(false);
  };
  const drop = async (event: DragEvent) => {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    const text = await file.text();
    if (field.current) field.current.value = text;
    use(text);
  };
  if (!props.isOpen) {
    return (
      <div class="toolbar">
        <button type="button" onClick={() => props.onOpen(true)}>Change the text</button>
        <span class="label">{props.isReading ? 'reading' : props.tokens === undefined ? '' : `${whole(props.tokens)} tokens`}</span>
      </div>
    );
  }
  return (
    <form class="text-input" onSubmit={(event) => {
      event.preventDefault();
      use(field.current?.value ?? '');
    }}>
      <label for="text" class="small soft">Paste a text, or drop a file. What does each head read in it?</label>
      <textarea id="text" class="mono" rows={10} ref={field} spellcheck={false} defaultValue={sharedText.value}
                onDrop={(event) => void drop(event)} />
      {problem ? <p class="notice" role="alert">{problem}</p> : null}
      <div class="toolbar">
        <button type="submit" class="main">Read it</button>
        {sharedText.value === '' ? null : <button type="button" onClick={() => props.onOpen(false)}>Cancel</button>}
      </div>
    </form>
  );
}
