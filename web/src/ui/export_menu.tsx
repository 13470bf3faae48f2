// A figure, or its numbers, as a file.
import {useRef} from 'preact/hooks';

export function ExportMenu(props: {label: string; onPng: () => void; onSvg: () => void; onCsv: () => void}) {
  const menu = useRef<HTMLDetailsElement>(null);
  const close = () => menu.current?.removeAttribute('open');
  const choices = [['PNG', props.onPng], ['SVG', props.onSvg], ['CSV', props.onCsv]] as const;
  return (
    <details class="save" ref={menu}
             onFocusOut={(event) => {
               if (!menu.current?.contains(event.relatedTarget as Node | null)) close();
             }}
             onKeyDown={(event) => {
               if (event.key !== 'Escape') return;
               close();
               menu.current?.querySelector('summary')?.focus();
             }}>
      <summary aria-label={`Save ${props.label}`}>Save</summary>
      <div class="save-choices">
        {choices.map(([name, save]) => (
          <button key={name} type="button" class="plain tight" onClick={() => {
            close();
            save();
          }}>
            {name}
          </button>
        ))}
      </div>
    </details>
  );
}
