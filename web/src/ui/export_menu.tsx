// A figure, or its numbers, as a file.
export function ExportMenu(props: {label: string; onPng: () => void; onSvg: () => void; onCsv: () => void}) {
  return (
    <span class="export" role="group" aria-label={`Save ${props.label}`}>
      <button type="button" class="plain tight" onClick={props.onPng}>PNG</button>
      <button type="button" class="plain tight" onClick={props.onSvg}>SVG</button>
      <button type="button" class="plain tight" onClick={props.onCsv}>CSV</button>
    </span>
  );
}
