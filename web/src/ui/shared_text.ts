// The text that one view hands to another.
import {signal} from '@preact/signals';

import {isString, keep, recall} from './storage';

export const sharedText = signal('');

export function startSharedText(): void {
  if (sharedText.value === '') sharedText.value = recall('text', '', isString);
}

export function setSharedText(text: string): void {
  sharedText.value = text;
  keep('text', text);
}
