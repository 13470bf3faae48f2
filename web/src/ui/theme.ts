// Dark or light: the system's choice unless the reader made one.
import {signal} from '@preact/signals';

import {keptTheme, type Theme} from './kept_theme';
import {keep} from './storage';

export type {Theme};

export const theme = signal<Theme>('system');
// Counts changes of what is on the screen, so that canvases know when to draw anew.
export const themeChanges = signal(0);

export function startTheme(): void {
  theme.value = keptTheme();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => ++themeChanges.value);
}

export function setTheme(next: Theme): void {
  theme.value = next;
  keep('theme', next);
  if (next === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = next;
  ++themeChanges.value;
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset['theme'];
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}
