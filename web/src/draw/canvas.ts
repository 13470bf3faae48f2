// A canvas that is as sharp as the screen.
import {useEffect, useRef, useState} from 'preact/hooks';

import {themeChanges} from '../ui/theme';

export interface Size { width: number; height: number }

// Its context, in units of CSS pixels; undefined where the browser gives none.
export function sharpContext(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | undefined {
  const ratio = devicePixelRatio || 1;
  const width = Math.max(1, Math.round(size.width * ratio));
  const height = Math.max(1, Math.round(size.height * ratio));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext('2d');
  context?.setTransform(width / size.width, 0, 0, height / size.height, 0, 0);
  context?.clearRect(0, 0, size.width, size.height);
  return context ?? undefined;
}

// The size of an element, kept up to date.
export function useSize<T extends HTMLElement>(): [preact.RefObject<T | null>, Size] {
  const element = useRef<T>(null);
  const [size, setSize] = useState<Size>({width: 0, height: 0});
  useEffect(() => {
    if (!element.current) return;
    const observer = new ResizeObserver((entries) => {
      const box = entries.at(-1)?.contentRect;
      if (box) setSize((old) => old.width === box.width && old.height === box.height ? old : {width: box.width, height: box.height});
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, size];
}

// Draws on a canvas whenever something it depends on changed, the theme included.
export function useDrawing(
    size: Size, draw: (context: CanvasRenderingContext2D) => void, dependencies: readonly unknown[]) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const themes = themeChanges.value;
  useEffect(() => {
    if (!canvas.current || size.width <= 0 || size.height <= 0) return;
    const context = sharpContext(canvas.current, size);
    if (context) draw(context);
  }, [size.width, size.height, themes, ...dependencies]);
  return canvas;
}

// One CSS rem in pixels: what canvases size their letters by.
export function rem(): number {
  return parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
}

export function fontOf(kind: 'sans' | 'mono', pixels: number, weight = 400): string {
  const family = getComputedStyle(document.documentElement).getPropertyValue(`--${kind}`).trim() || 'sans-serif';
  return `${weight} ${pixels}px ${family}`;
}
