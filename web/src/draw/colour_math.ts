// Colours as numbers: mixing, and the contrast of WCAG 2.
export type Rgb = readonly [number, number, number];

export function parseHex(text: string): Rgb {
  const match = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text.trim());
  if (!match) throw new Error(`${text} is no colour of the form #rrggbb`);
  return [parseInt(match[1]!, 16), parseInt(match[2]!, 16), parseInt(match[3]!, 16)];
}

export function hexOf(colour: Rgb): string {
  return `#${colour.map((channel) => Math.round(channel).toString(16).padStart(2, '0')).join('')}`;
}

// Share 0 is `from`, share 1 is `to`.
export function mix(from: string, to: string, share: number): string {
  const [a, b] = [parseHex(from), parseHex(to)];
  return hexOf([a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share]);
}

export function luminance(colour: Rgb): number {
  const linear = (channel: number) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
}

// From 1, the same, to 21, black on white.
export function contrast(one: string, other: string): number {
  const [a, b] = [luminance(parseHex(one)), luminance(parseHex(other))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

// The custom properties of a style sheet that are light-dark() pairs.
export function themePairs(css: string): Map<string, {light: string; dark: string}> {
  const pairs = new Map<string, {light: string; dark: string}>();
  for (const match of css.matchAll(/--([\w-]+):\s*light-dark\(\s*(#\w+)\s*,\s*(#\w+)\s*\)/g)) {
    pairs.set(match[1]!, {light: match[2]!, dark: match[3]!});
  }
  return pairs;
}
