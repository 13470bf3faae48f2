// The paper's Figure 1, to play with: which inputs does each output read?
import {useEffect, useState} from 'preact/hooks';

import {csvOf} from '../../draw/csv';
import {download, fileName} from '../../draw/download';
import {savePng, saveSvg, type Paint} from '../../draw/figure_files';
import {announce} from '../../ui/announce';
import {Dial, Problem, Segments} from '../../ui/controls';
import {ExportMenu} from '../../ui/export_menu';
import {digits, percent, whole} from '../../ui/format';
import {numberAt, place, setValues} from '../../ui/place';
import {Gallery} from './gallery';
import {MatrixView, type Cell} from './matrix_view';
import {patternProblem, patterns, readPatterns, showPattern, shown, thumbnails} from './pattern_data';
import {costOfRows, keysOf, patternBody, ruleOf, setText} from './pattern_facts';
import {drawMatrix} from './pattern_picture';
import {RowList} from './row_list';

const directions = [{value: 'causal', name: 'Causal'}, {value: 'both', name: 'Bidirectional'}] as const;
const leastTokens = 8;
const mostTokens = 512;

function fieldName(name: string): string {
  const words = name.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function PatternsView() {
  const {values} = place.value;
  const all = patterns.value;
  const pattern = all?.find((each) => each.name === values['pattern']) ?? all?.at(-1);
  const n = Math.max(leastTokens, Math.min(mostTokens, Math.round(numberAt(values, 'n') ?? 64)));
  const isCausal = values['direction'] !== 'both';
  const body = pattern ? patternBody(pattern, n, isCausal, values) : undefined;
  const answer = shown.value;
  const row = numberAt(values, 'row');
  const chosen: Cell = {row: Math.min(n - 1, row ?? Math.floor(n * 0.7)), column: undefined};
  const [hovered, setHovered] = useState<Cell | undefined>(undefined);
  const cell = hovered && hovered.row < (answer?.n ?? 0) ? hovered : chosen;

  useEffect(() => {
    if (!patterns.value) void readPatterns();
  }, []);
  useEffect(() => {
    if (body) void showPattern(body);
  }, [JSON.stringify(body)]);

  const onCell = (next: Cell, isChosen: boolean) => {
    setHovered(next);
    if (!isChosen) return;
    setValues({row: next.row});
    if (answer) announce(`Row ${next.row} reads ${setText(keysOf(answer, next.row).map((key) => key.key)).slice(0, 200)}`);
  };
  const cost = answer ? costOfRows(answer, isCausal) : undefined;
  const name = fileName('pattern', pattern?.name ?? '', isCausal ? 'causal' : 'bidirectional', String(n));
  const paint: Paint = (pen, size, colours) => {
    if (answer) drawMatrix(pen, {left: 1, top: 1, cell: (size.width - 2) / answer.n, n: answer.n}, answer, colours);
  };
  const size = {width: 8 * n + 2, height: 8 * n + 2};
  const rowsOf = function* () {
    for (let each = 0; each < (answer?.n ?? 0); ++each) {
      for (const {key, groups} of keysOf(answer!, each)) yield [each, key, groups.join(' ')];
    }
  };
  return (
    <>
      <h1 class="hidden-text">Patterns</h1>
      <Problem error={patternProblem.value} onRetry={() => void (all ? body && showPattern(body) : readPatterns())} />
      {!pattern || !all ? null : (
        <div class="patterns">
          <Gallery patterns={all} thumbnails={thumbnails.value} value={pattern.name}
                   onChange={(next) => setValues({pattern: next})} />
          <div class="pattern-controls">
            <h2>{pattern.name}</h2>
            <p class="soft">{ruleOf(pattern)}</p>
            <Segments label="Direction" choices={directions} value={isCausal ? 'causal' : 'both'}
                      onChange={(direction) => setValues({direction: direction === 'causal' ? '' : direction})} />
            <Dial id="n" label="Tokens" least={leastTokens} most={mostTokens} value={n} onChange={(next) => setValues({n: next})} />
            {pattern.fields.map((field) => (
              <Dial key={field.name} id={`field-${field.name}`} label={fieldName(field.name)} least={field.least}
                    most={field.most} value={Number(body?.[field.name])} hint={field.about ?? ''}
                    onChange={(value) => setValues({[field.name]: value})} />
            ))}
            {cost ? (
              <dl class="facts">
                <div><dt>Pairs read</dt><dd>{whole(cost.pairs)} of {whole(cost.all)}</dd></div>
                <div><dt>Share of full attention</dt><dd>{percent(cost.pairs / cost.all)}</dd></div>
                <div><dt>Inputs per output</dt><dd>{digits(cost.mean, 3)}, at most {whole(cost.longest)}</dd></div>
                {cost.unread > 0 ? <div><dt>Outputs that read nothing</dt><dd>{whole(cost.unread)}</dd></div> : null}
              </dl>
            ) : null}
            <ExportMenu label="the pattern" onPng={() => void savePng(name, size, paint)}
                        onSvg={() => saveSvg(name, pattern.name, size, paint)}
                        onCsv={() => download(`${name}.csv`, csvOf(['output', 'input', 'groups'], rowsOf()), 'text/csv')} />
          </div>
          {answer ? (
            <>
              <MatrixView answer={answer} cell={cell} onCell={onCell}
                          label={`Pattern ${pattern.name} over ${answer.n} tokens: rows are outputs, columns inputs`} />
              <RowList answer={answer} cell={cell} />
            </>
          ) : null}
        </div>
      )}
    </>
  );
}
