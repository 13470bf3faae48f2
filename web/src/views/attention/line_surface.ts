// The lines that are near the screen, as elements: their stretches of letters that have the width of the font,
// and each other fragment at its own place. Lines that stay on the screen are not made again.
import {endSign, isPlain, type TextLayout} from './text_layout';

export class LineSurface {
  private layout: TextLayout | undefined;
  private readonly lines = new Map<number, HTMLElement>();

  constructor(private readonly box: HTMLElement) {}

  show(layout: TextLayout, first: number, last: number, lineHeight: number): void {
    if (layout !== this.layout) {
      this.box.replaceChildren();
      this.lines.clear();
      this.layout = layout;
    }
    for (const [line, element] of this.lines) {
      if (line >= first && line < last) continue;
      element.remove();
      this.lines.delete(line);
    }
    // From the last to the first, each before the one below: copied text and screen readers follow this order.
    let below: HTMLElement | null = null;
    for (let line = last - 1; line >= first; --line) {
      let element = this.lines.get(line);
      if (!element) {
        element = elementOf(layout, line);
        this.lines.set(line, element);
        this.box.insertBefore(element, below);
      }
      below = element;
      element.style.transform = `translateY(${line * lineHeight}px)`;
    }
  }
}

function elementOf(layout: TextLayout, line: number): HTMLElement {
  const element = document.createElement('div');
  element.className = 'text-line';
  const end = layout.lineFirst[line + 1]!;
  for (let index = layout.lineFirst[line]!; index < end;) {
    const first = index++;
    let text = layout.fragmentText[first]!;
    if (isPlain(text)) while (index < end && isPlain(layout.fragmentText[index]!)) text += layout.fragmentText[index++]!;
    const span = document.createElement('span');
    span.textContent = text;
    span.style.left = `${layout.fragmentX[first]}px`;
    if (text === endSign) span.className = 'end';
    element.append(span);
  }
  return element;
}
