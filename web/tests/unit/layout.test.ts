import assert from 'node:assert/strict';
import test from 'node:test';

import {boxOfToken, fragmentsOf, layOut, lineOfToken, tokenAt, type TextLayout} from '../../src/views/attention/text_layout';

const widths = {cell: 10, other: (text: string) => 10 * [...text].length};

function linesOf(layout: TextLayout): string[] {
  return Array.from({length: layout.lines}, (_, line) =>
    layout.fragmentText.slice(layout.lineFirst[line], layout.lineFirst[line + 1]).join(''));
}

test('pieces are cut at spaces and ends of lines, and nothing is lost', () => {
  assert.deepEqual(fragmentsOf(' the\n\n cat'), [' ', 'the', '↵', '↵', ' ', 'cat']);
  assert.deepEqual(fragmentsOf(''), ['·']);
  assert.deepEqual(fragmentsOf('\u0001\t'), ['·', '    ']);
  assert.deepEqual(fragmentsOf('\r\n'), ['↵']);
});

test('lines break at spaces, which may hang over the edge', () => {
  const layout = layOut(['The', ' quick', ' brown', ' fox'], widths, 90);
  assert.deepEqual(linesOf(layout), ['The quick ', 'brown fox']);
  assert.equal(lineOfToken(layout, 1), 0);
  // The space of ' brown' hangs on line 0, its word begins line 1.
  assert.deepEqual(boxOfToken(layout, 2), {x: 0, line: 1, width: 50});
});

test('a word of several tokens moves to the next line as a whole', () => {
  const layout = layOut([...'one three'], widths, 60);
  assert.deepEqual(linesOf(layout), ['one ', 'three']);
  assert.deepEqual([...layout.fragmentX.slice(4)], [0, 10, 20, 30, 40]);
});

test('a word longer than a line is cut', () => {
  assert.deepEqual(linesOf(layOut(['abcdefghij'], widths, 40)), ['abcd', 'efgh', 'ij']);
  assert.deepEqual(linesOf(layOut([...'abcdefghij'], widths, 40)), ['abcd', 'efgh', 'ij']);
});

test('ends of lines end lines, and a last one adds none', () => {
  assert.deepEqual(linesOf(layOut(['a\n', '\n', 'b\n'], widths, 100)), ['a↵', '↵', 'b↵']);
  assert.equal(layOut([], widths, 100).lines, 0);
});

test('every fragment lies on its own line, after the one before, and no word over the edge', () => {
  const pieces = Array.from({length: 5000}, (_, index) => index % 37 === 0 ? '\n' : ` ${'abcdefghijkl'.slice(0, 1 + (index * 7) % 12)}`);
  const layout = layOut(pieces, widths, 333);
  for (let line = 0; line < layout.lines; ++line) {
    let at = 0;
    for (let index = layout.lineFirst[line]!; index < layout.lineFirst[line + 1]!; ++index) {
      assert.equal(layout.fragmentLine[index], line);
      assert.equal(layout.fragmentX[index], at);
      at += layout.fragmentWidth[index]!;
      if (/\w/.test(layout.fragmentText[index]!)) assert.ok(at <= 333, `line ${line} ends at ${at}`);
    }
  }
  assert.equal(layout.fragmentText.join('').replaceAll('↵', '\n'), pieces.join(''));
});

test('the token under the pointer is the one there, or the last of the line', () => {
  const layout = layOut(['The', ' quick', ' brown'], widths, 90);
  assert.equal(tokenAt(layout, 0, 0), 0);
  assert.equal(tokenAt(layout, 0, 29), 0);
  assert.equal(tokenAt(layout, 0, 41), 1);
  assert.equal(tokenAt(layout, 1, 500), 2);
  assert.equal(tokenAt(layout, 7, 0), undefined);
});

test('letters without spaces between words break anywhere', () => {
  assert.deepEqual(linesOf(layOut([...'ab 漢字漢字'], widths, 50)), ['ab 漢字', '漢字']);
});
