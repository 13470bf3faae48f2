// The colour of a cluster's share: none for empty, half way for its fair share, full from four times that on.
import type {Palette} from '../../draw/colours';
import {mix} from '../../draw/colour_math';

// `share` of all memberships of a head with `clusters` clusters, as multiples of what each would have if all were equal.
export const timesFair = (share: number, clusters: number): number => share * clusters;

export function strengthOf(times: number): number {
  if (!(times > 0)) return 0;
  // 1/4 is a quarter of the way, 1 half, 4 all of it: as loudness, the eye reads ratios.
  return Math.max(0.06, Math.min(1, 0.5 + 0.25 * Math.log2(times)));
}

export function isDead(times: number, deadShare: number): boolean {
  return times < Math.max(deadShare, 1e-9);
}

// Where the scale has its own hue; below it fades into the paper, above it darkens, or lightens on dark.
const middle = 0.65;

export function heatColour(times: number, deadShare: number, colours: Palette): string {
  if (!Number.isFinite(times)) return colours.panel;
  if (isDead(times, deadShare)) return mix(colours.paper, colours.bad, colours.isDark ? 0.6 : 0.9);
  const strength = strengthOf(times);
  const far = colours.isDark ? '#e4f0ff' : '#0b2748';
  return strength <= middle ? mix(colours.panel, colours.hues[0]!, strength / middle) :
                              mix(colours.hues[0]!, far, (strength - middle) / (1 - middle));
}
