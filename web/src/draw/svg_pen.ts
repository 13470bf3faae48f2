// Writes what it is told to draw as an SVG file, with text as text.
import type {LetterStyle, Pen, Point, ShapeStyle} from './pen';

export function escapeXml(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;')
      // Signs that XML knows no way to write.
      .replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F]/g, '\uFFFD');
}

// Two digits after the point are a hundredth of a pixel.
const short = (value: number): string => String(Math.round(value * 100) / 100);

function attributes(style: ShapeStyle): string {
  const parts = [`fill="${style.fill ?? 'none'}"`];
  if (style.stroke) parts.push(`stroke="${style.stroke}" stroke-width="${short(style.width ?? 1)}" stroke-linejoin="round"`);
  if (style.alpha !== undefined && style.alpha < 1) parts.push(`opacity="${short(style.alpha)}"`);
  if (style.dash?.length) parts.push(`stroke-dasharray="${style.dash.map(short).join(' ')}"`);
  return parts.join(' ');
}

export class SvgPen implements Pen {
  private readonly parts: string[] = [];
  private clips = 0;

  // `measure` knows how wide letters are, which a file cannot.
  constructor(private readonly family: string, private readonly measure: Pen['widthOf']) {}

  rectangle(x: number, y: number, width: number, height: number, style: ShapeStyle): void {
    this.parts.push(
        `<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" ${attributes(style)}/>`);
  }

  path(points: readonly Point[], style: ShapeStyle): void {
    if (points.length === 0) return;
    const d = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${short(x)} ${short(y)}`).join('');
    this.parts.push(`<path d="${d}" ${attributes(style)}/>`);
  }

  circle(x: number, y: number, radius: number, style: ShapeStyle): void {
    this.parts.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}" ${attributes(style)}/>`);
  }

  letters(text: string, x: number, y: number, style: LetterStyle): void {
    const at = style.turned ? `transform="translate(${short(x)} ${short(y)}) rotate(-90)"` : `x="${short(x)}" y="${short(y)}"`;
    const shift = style.middle ? ` dy="${short(style.size * 0.36)}"` : '';
    const weight = style.weight ? ` font-weight="${style.weight}"` : '';
    this.parts.push(`<text ${at}${shift} font-size="${short(style.size)}"${weight} fill="${style.colour}" ` +
                    `text-anchor="${style.align ?? 'start'}">${escapeXml(text)}</text>`);
  }

  widthOf(text: string, size: number, weight?: number): number {
    return this.measure(text, size, weight);
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    const id = `clip-${++this.clips}`;
    this.parts.push(`<clipPath id="${id}"><rect x="${short(x)}" y="${short(y)}" width="${short(width)}" ` +
                    `height="${short(height)}"/></clipPath><g clip-path="url(#${id})">`);
    draw();
    this.parts.push('</g>');
  }

  document(width: number, height: number, title: string): string {
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" ` +
        `viewBox="0 0 ${short(width)} ${short(height)}" font-family="${escapeXml(this.family)}">\n` +
        `<title>${escapeXml(title)}</title>\n${this.parts.join('\n')}\n</svg>\n`;
  }
}
