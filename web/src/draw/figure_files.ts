// A figure as a file: drawn once more, larger for PNG, into text for SVG.
import {fontOf, type Size} from './canvas';
import {palette, type Palette} from './colours';
import {download} from './download';
import {CanvasPen, type Pen} from './pen';
import {pngOf} from './pixels';
import {SvgPen} from './svg_pen';

export type Paint = (pen: Pen, size: Size, colours: Palette) => void;

function familyOf(): string {
  return fontOf('sans', 1).replace(/^\d+ 1px /, '');
}

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext('2d');
  if (!context) throw new Error('this browser gives no canvas to draw on');
  return context;
}

// Two pixels for each unit, as the figures of routing analyze have.
const pixelsPerUnit = 2;

export async function savePng(name: string, size: Size, paint: Paint): Promise<void> {
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(size.width * pixelsPerUnit);
  canvas.height = Math.round(size.height * pixelsPerUnit);
  const context = contextOf(canvas);
  context.scale(pixelsPerUnit, pixelsPerUnit);
  const colours = palette();
  const pen = new CanvasPen(context, familyOf());
  pen.rectangle(0, 0, size.width, size.height, {fill: colours.paper});
  paint(pen, size, colours);
  download(`${name}.png`, await pngOf(canvas));
}

export function svgOf(title: string, size: Size, paint: Paint): string {
  const measuring = new CanvasPen(contextOf(document.createElement('canvas')), familyOf());
  const pen = new SvgPen(familyOf(), (text, letters, weight) => measuring.widthOf(text, letters, weight));
  const colours = palette();
  pen.rectangle(0, 0, size.width, size.height, {fill: colours.paper});
  paint(pen, size, colours);
  return pen.document(size.width, size.height, title);
}

export function saveSvg(name: string, title: string, size: Size, paint: Paint): void {
  download(`${name}.svg`, svgOf(title, size, paint), 'image/svg+xml');
}
