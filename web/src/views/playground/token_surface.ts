// The units of a text as elements, one span each, in a paragraph per line, so that the browser may leave out paragraphs
// that nobody sees. Kept by hand: a stream appends, and nothing that stands already is touched.
import {levelOf, unitBits, type Unit} from './units';

interface Paragraph { element: HTMLElement; first: number }

export class TokenSurface {
  private units: readonly Unit[] = [];
  private paragraphs: Paragraph[] = [];
  private active = -1;

  constructor(private readonly box: HTMLElement) {}

  show(next: readonly Unit[]): void {
    let same = 0;
    const limit = Math.min(next.length, this.units.length);
    while (same < limit && next[same] === this.units[same]) ++same;
    if (same < this.units.length) same = this.dropFrom(same);
    for (let index = same; index < next.length; ++index) this.append(next[index]!, index);
    this.units = next;
    if (this.active >= next.length) this.active = -1;
  }

  element(index: number): HTMLElement | null {
    return this.box.querySelector(`[data-index="${index}"]`);
  }

  activate(index: number): void {
    if (index === this.active) return;
    this.element(this.active)?.classList.remove('on');
    this.active = index;
    this.element(index)?.classList.add('on');
  }

  // Removes the paragraphs from the one of this unit on; from where to build them again.
  private dropFrom(index: number): number {
    let first = this.paragraphs.length;
    while (first > 0 && this.paragraphs[first - 1]!.first >= index) --first;
    if (first > 0) --first;
    const begin = this.paragraphs[first]?.first ?? 0;
    for (const paragraph of this.paragraphs.splice(first)) paragraph.element.remove();
    return begin;
  }

  private append(unit: Unit, index: number): void {
    let paragraph = this.paragraphs.at(-1);
    const last = paragraph?.element.lastElementChild?.textContent ?? '';
    if (!paragraph || last.endsWith('\n')) {
      const element = document.createElement('div');
      element.className = 'line';
      paragraph = {element, first: index};
      this.paragraphs.push(paragraph);
      this.box.append(element);
    }
    paragraph.element.append(spanOf(unit, index));
  }
}

function spanOf(unit: Unit, index: number): HTMLElement {
  const span = document.createElement('span');
  span.dataset['index'] = String(index);
  span.className = unit.isDrawn ? 'drawn' : 'typed';
  if (!unit.isDrawn) {
    span.textContent = unit.text;
    return span;
  }
  // The space before a word may stay at the end of the line above; the colour goes with the word.
  const word = unit.text.trimStart() === '' ? unit.text : unit.text.replace(/^ +/, '');
  const element = document.createElement('span');
  element.textContent = word;
  const bits = unitBits(unit);
  element.className = bits === null ? 'word' : `word heat-${levelOf(bits)}`;
  if (word.endsWith('\n')) element.classList.add('end');
  span.append(unit.text.slice(0, unit.text.length - word.length), element);
  return span;
}
