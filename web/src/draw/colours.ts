// The theme's colours for canvases and exported pictures, out of the style sheet that all else takes them from.
import {isDark} from '../ui/theme';
import {mix} from './colour_math';

export interface Palette {
  isDark: boolean; paper: string; panel: string; line: string; edge: string; ink: string; soft: string; accent: string;
  chosen: string; warn: string; bad: string; read: string; hues: string[];
}

const names = ['paper', 'panel', 'line', 'edge', 'ink', 'soft', 'accent', 'chosen', 'warn', 'bad', 'read'] as const;
export const hueCount = 8;
const kept = new Map<boolean, Palette>();

function readPalette(dark: boolean): Palette {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => {
    const text = style.getPropertyValue(`--${name}`).trim();
    const pair = /^light-dark\(\s*(#\w+)\s*,\s*(#\w+)\s*\)$/.exec(text);
    return pair ? pair[dark ? 2 : 1]! : /^#\w{6}$/.test(text) ? text : '#808080';
  };
  const single = Object.fromEntries(names.map((name) => [name, colour(name)])) as Record<(typeof names)[number], string>;
  const hues = Array.from({length: hueCount}, (_, index) => colour(`hue-${index}`));
  return {...single, isDark: dark, hues};
}

export function palette(dark = isDark()): Palette {
  let found = kept.get(dark);
  if (!found) kept.set(dark, found = readPalette(dark));
  return found;
}

// Groups, clusters, runs: eight hues, then the same nearer to the ink, then nearer to the paper; then all again.
export function groupColour(group: number, colours: Palette): string {
  const hue = colours.hues[group % hueCount]!;
  const round = Math.floor(group / hueCount) % 3;
  return round === 0 ? hue : round === 1 ? mix(hue, colours.ink, 0.42) : mix(hue, colours.paper, 0.45);
}

// A background for text, light enough that the ink on it can be read (tests/unit/contrast.test.ts).
export const tintShare = 0.34;
export function groupTint(group: number, colours: Palette): string {
  const hue = colours.hues[group % hueCount]!;
  const round = Math.floor(group / hueCount) % 3;
  return mix(colours.paper, hue, [tintShare, tintShare * 1.3, tintShare * 0.55][round]!);
}

// The same where only a few groups are shown.
export function strongTint(group: number, colours: Palette): string {
  return mix(colours.paper, colours.hues[group % hueCount]!, tintShare * 1.3);
}

// What a head reads: the root of a weight over the largest one, so that small weights are seen at all.
export function readTint(share: number, colours: Palette): string {
  return mix(colours.paper, colours.read, Math.sqrt(Math.max(0, Math.min(1, share))));
}
