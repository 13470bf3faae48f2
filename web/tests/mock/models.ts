// Made-up models of every kind, and the tokens of each.
import {hashOf} from './chance';
import {wordsOf} from './made_up_text';

export interface MockModel {
  id: string; object: 'model'; kind: 'text' | 'image' | 'symbols'; validity: string; data_label?: string;
  parameters: number; tokens: string; sequence_length: number; vocabulary: number; max_tokens: number;
  width?: number; height?: number; problem?: string;
}

const model = (id: string, more: Partial<MockModel>): MockModel => ({
  id, object: 'model', kind: 'text', validity: 'causal', parameters: 471_552, tokens: 'bytes', sequence_length: 512,
  vocabulary: 256, max_tokens: 4096, ...more,
});

export const models: MockModel[] = [
  model('island/words', {tokens: 'words', parameters: 5_812_736, sequence_length: 2048, vocabulary: 33_278}),
  model('quickstart', {}),
  model('island/published', {tokens: 'words', parameters: 5_812_736, vocabulary: 33_278,
                             validity: 'selection reads the future'}),
  model('pictures', {kind: 'image', tokens: 'images', parameters: 1_204_224, width: 32, height: 32, sequence_length: 3072,
                     data_label: 'partial data'}),
  model('reverse', {kind: 'symbols', tokens: 'symbols', parameters: 212_480, sequence_length: 128, vocabulary: 66}),
  model('exp/torn', {problem: 'the checkpoint of step 4000 is damaged: model.safetensors ends after 1,204 of 2,891,376 bytes'}),
];

// Pieces that joined are the text; a character of several bytes stands at its first one.
export function piecesOf(found: MockModel, text: string): string[] {
  if (found.tokens !== 'bytes') return wordsOf(text);
  const pieces: string[] = [];
  for (const character of text) {
    pieces.push(character);
    for (let rest = Buffer.byteLength(character) - 1; rest > 0; --rest) pieces.push('');
  }
  return pieces;
}

export const idsOf = (found: MockModel, pieces: readonly string[]): number[] =>
    pieces.map((piece) => found.tokens === 'bytes' ? Buffer.from(piece)[0] ?? 128 : hashOf(piece) % found.vocabulary);

export interface MockHead { head: number; pattern: string; routed: boolean; clusters: number }

export function layersOf(found: MockModel): {layer: number; heads: MockHead[]}[] {
  const [layers, heads, clusters] = found.tokens === 'bytes' ? [4, 4, 12] : [6, 8, 24];
  return Array.from({length: layers}, (_, layer) => ({
    layer,
    heads: Array.from({length: heads}, (_, head) => {
      const routed = layer >= layers / 2 && head >= heads / 2;
      return {head, pattern: routed ? 'routing' : layer === 0 && head === 0 ? 'strided' : 'local', routed,
              clusters: routed ? clusters : 0};
    }),
  }));
}
