import assert from 'node:assert/strict';
import test from 'node:test';

import {csvOf} from '../../src/draw/csv';
import {fileName} from '../../src/draw/download';
import {base64OfBytes, bytesOfBase64, putRow} from '../../src/draw/pixels';
import {escapeXml, SvgPen} from '../../src/draw/svg_pen';

test('CSV quotes what needs it, and no spreadsheet runs a value', () => {
  assert.equal(csvOf(['run', 'a,b'], [['x "y"', 1.5], ['=1+1', null], ['a\nb', NaN], ['-5', -5]]),
               'run,"a,b"\r\n"x ""y""",1.5\r\n\'=1+1,\r\n"a\nb",\r\n\'-5,-5\r\n');
});

test('names of files hold nothing that a system refuses', () => {
  assert.equal(fileName('exp/a', 'bits per byte: "x"'), 'exp-a-bits-per-byte-x');
});

test('SVG has what was drawn, escaped', () => {
  const pen = new SvgPen('"A" sans', (text, size) => text.length * size);
  pen.rectangle(0, 1.005, 2, 3, {fill: '#123456'});
  pen.path([[0, 0], [1.234, 5]], {stroke: '#000000', width: 2, dash: [2, 1]});
  pen.circle(1, 2, 3, {fill: '#ffffff', alpha: 0.5});
  pen.letters('a < b & "c"', 4, 5, {size: 12, colour: '#222222', align: 'end'});
  pen.clipped(0, 0, 9, 9, () => pen.letters('up', 1, 2, {size: 9, colour: '#333333', turned: true}));
  const text = pen.document(100, 50, 'loss & <more>');
  assert.ok(text.startsWith('<svg xmlns="http://www.w3.org/2000/svg" width="100" height="50" viewBox="0 0 100 50"'));
  assert.ok(text.includes('font-family="&quot;A&quot; sans"'));
  assert.ok(text.includes('<title>loss &amp; &lt;more&gt;</title>'));
  assert.ok(text.includes('<path d="M0 0L1.23 5" fill="none" stroke="#000000" stroke-width="2" stroke-linejoin="round" stroke-dasharray="2 1"/>'));
  assert.ok(text.includes('<circle cx="1" cy="2" r="3" fill="#ffffff" opacity="0.5"/>'));
  assert.ok(text.includes('>a &lt; b &amp; &quot;c&quot;</text>'));
  assert.ok(text.includes('transform="translate(1 2) rotate(-90)"'));
  assert.equal(text.match(/<g /g)?.length, text.match(/<\/g>/g)?.length);
  assert.equal(pen.widthOf('abc', 10), 30);
  assert.equal(escapeXml('\u0000a\n'), '\uFFFDa\n');
});

test('rows of pictures go to their places, and no further', () => {
  const pixels = new Uint8ClampedArray(2 * 2 * 4);
  putRow(pixels, 2, 1, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual([...pixels], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 255, 4, 5, 6, 255]);
});

test('base64 and back is the same, for long pictures too', () => {
  const bytes = Uint8Array.from({length: 100_000}, (_, index) => (index * 7919) % 256);
  assert.deepEqual(bytesOfBase64(base64OfBytes(bytes)), bytes);
});
