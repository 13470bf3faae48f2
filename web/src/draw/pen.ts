// Something to draw with: a canvas or an SVG file. What is exported is then what is seen.

export interface ShapeStyle { fill?: string; stroke?: string; width?: number; alpha?: number; dash?: readonly number[] }
export interface LetterStyle {
  size: number; colour: string; weight?: number; align?: 'start' | 'middle' | 'end';
  middle?: boolean;  // the point is half a capital below the top, not on the baseline
  turned?: boolean;  // upwards
}
export type Point = readonly [number, number];

export interface Pen {
  rectangle(x: number, y: number, width: number, height: number, style: ShapeStyle): void;
  path(points: readonly Point[], style: ShapeStyle): void;
  circle(x: number, y: number, radius: number, style: ShapeStyle): void;
  letters(text: string, x: number, y: number, style: LetterStyle): void;
  widthOf(text: string, size: number, weight?: number): number;
  // Inside of a rectangle only.
  clipped(x: number, y: number, width: number, height: number, draw: () => void): void;
}

export class CanvasPen implements Pen {
  constructor(private readonly context: CanvasRenderingContext2D, private readonly family: string) {}

  rectangle(x: number, y: number, width: number, height: number, style: ShapeStyle): void {
    this.style(style);
    if (style.fill) this.context.fillRect(x, y, width, height);
    if (style.stroke) this.context.strokeRect(x, y, width, height);
    this.context.globalAlpha = 1;
  }

  path(points: readonly Point[], style: ShapeStyle): void {
    const {context} = this;
    this.style(style);
    context.lineJoin = 'round';
    context.beginPath();
    points.forEach(([x, y], index) => index === 0 ? context.moveTo(x, y) : context.lineTo(x, y));
    if (style.fill) context.fill();
    if (style.stroke) context.stroke();
    context.globalAlpha = 1;
  }

  circle(x: number, y: number, radius: number, style: ShapeStyle): void {
    this.style(style);
    this.context.beginPath();
    this.context.arc(x, y, radius, 0, 2 * Math.PI);
    if (style.fill) this.context.fill();
    if (style.stroke) this.context.stroke();
    this.context.globalAlpha = 1;
  }

  letters(text: string, x: number, y: number, style: LetterStyle): void {
    const {context} = this;
    context.save();
    context.font = this.font(style.size, style.weight);
    context.fillStyle = style.colour;
    context.textAlign = style.align === 'middle' ? 'center' : style.align ?? 'start';
    context.textBaseline = 'alphabetic';
    context.translate(x, y);
    if (style.turned) context.rotate(-Math.PI / 2);
    context.fillText(text, 0, style.middle ? style.size * 0.36 : 0);
    context.restore();
  }

  widthOf(text: string, size: number, weight?: number): number {
    this.context.font = this.font(size, weight);
    return this.context.measureText(text).width;
  }

  clipped(x: number, y: number, width: number, height: number, draw: () => void): void {
    this.context.save();
    this.context.beginPath();
    this.context.rect(x, y, width, height);
    this.context.clip();
    draw();
    this.context.restore();
  }

  private font(size: number, weight = 400): string {
    return `${weight} ${size}px ${this.family}`;
  }

  private style(style: ShapeStyle): void {
    const {context} = this;
    context.globalAlpha = style.alpha ?? 1;
    if (style.fill) context.fillStyle = style.fill;
    if (style.stroke) context.strokeStyle = style.stroke;
    context.lineWidth = style.width ?? 1;
    context.setLineDash(style.dash ? [...style.dash] : []);
  }
}
