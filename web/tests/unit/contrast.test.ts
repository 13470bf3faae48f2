// Every pair of colours that the page shows together, in both themes.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import test from 'node:test';

import {contrast, hexOf, mix, parseHex, themePairs} from '../../src/draw/colour_math';
import {groupColour, groupTint, hueCount, readTint, strongTint, type Palette} from '../../src/draw/colours';
import {heatColour} from '../../src/views/training/heat_scale';

const pairs = themePairs(readFileSync('src/styles/theme.css', 'utf8'));
const themes = ['light', 'dark'] as const;

function paletteOf(theme: (typeof themes)[number]): Palette {
  const colour = (name: string) => pairs.get(name)![theme];
  const names = ['paper', 'panel', 'line', 'edge', 'ink', 'soft', 'accent', 'chosen', 'warn', 'bad', 'read'] as const;
  return {...Object.fromEntries(names.map((name) => [name, colour(name)])) as Omit<Palette, 'hues' | 'isDark'>,
          isDark: theme === 'dark', hues: Array.from({length: hueCount}, (_, index) => colour(`hue-${index}`))};
}

test('contrast is that of WCAG 2', () => {
  assert.equal(contrast('#000000', '#ffffff'), 21);
  assert.ok(Math.abs(contrast('#777777', '#ffffff') - 4.478) < 0.001);
  assert.equal(hexOf(parseHex('#0a8BfF')), '#0a8bff');
  assert.equal(mix('#000000', '#ffffff', 0.5), '#808080');
});

test('the style sheet has every colour for both themes', () => {
  assert.ok(pairs.size >= 30, `${pairs.size} colours`);
  assert.equal(pairs.get('ink')!.light, '#1b1d1f');
});

for (const theme of themes) {
  const of = (name: string) => pairs.get(name)![theme];

  test(`${theme}: text has a contrast of 4.5 on every background it stands on`, () => {
    const grounds = ['paper', 'panel', 'raised', 'chosen'];
    const texts = ['ink', 'soft', 'accent', 'warn', 'bad', 'good'];
    for (const ground of grounds) {
      for (const text of texts) {
        const found = contrast(of(text), of(ground));
        assert.ok(found >= 4.5, `${text} on ${ground}: ${found.toFixed(2)}`);
      }
    }
    assert.ok(contrast(of('on-accent'), of('accent')) >= 4.5);
  });

  test(`${theme}: tokens can be read on every colour of their probability, their reads and their clusters`, () => {
    const colours = paletteOf(theme);
    for (let level = 0; level < 10; ++level) {
      const found = contrast(of('ink'), of(`heat-${level}`));
      assert.ok(found >= 4.5, `heat ${level}: ${found.toFixed(2)}`);
    }
    for (let share = 0; share <= 1; share += 0.1) {
      const found = contrast(colours.ink, readTint(share, colours));
      assert.ok(found >= 4.5, `read ${share}: ${found.toFixed(2)}`);
    }
    for (let group = 0; group < 3 * hueCount; ++group) {
      for (const tint of [groupTint(group, colours), strongTint(group, colours)]) {
        const found = contrast(colours.ink, tint);
        assert.ok(found >= 4.5, `cluster ${group}: ${found.toFixed(2)}`);
      }
    }
  });

  test(`${theme}: controls, lines and marks have a contrast of 3`, () => {
    for (const ground of ['paper', 'panel', 'raised']) {
      for (const mark of ['edge', 'accent']) {
        const found = contrast(of(mark), of(ground));
        assert.ok(found >= 3, `${mark} on ${ground}: ${found.toFixed(2)}`);
      }
    }
    for (let hue = 0; hue < hueCount; ++hue) {
      const found = contrast(of(`hue-${hue}`), of('paper'));
      assert.ok(found >= 3, `hue ${hue}: ${found.toFixed(2)}`);
    }
  });

  test(`${theme}: groups differ, levels grow stronger, dead clusters stand out`, () => {
    const colours = paletteOf(theme);
    const groups = Array.from({length: 3 * hueCount}, (_, group) => groupColour(group, colours));
    assert.equal(new Set(groups).size, groups.length);
    const steps = Array.from({length: 10}, (_, level) => contrast(of(`heat-${level}`), of('paper')));
    steps.forEach((step, level) => assert.ok(level === 0 || step > steps[level - 1]!, `level ${level}`));
    const dead = heatColour(0, 0.1, colours);
    assert.notEqual(dead, heatColour(0.2, 0.1, colours));
    assert.equal(heatColour(0.05, 0.1, colours), dead);
    assert.ok(contrast(heatColour(4, 0, colours), colours.panel) > contrast(heatColour(1, 0, colours), colours.panel));
  });
}
