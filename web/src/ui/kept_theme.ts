// The theme that the reader chose; without signals, because it is read before all else (theme.ts).
import {recall} from './storage';

export type Theme = 'system' | 'light' | 'dark';

const isTheme = (value: unknown): value is Theme => value === 'system' || value === 'light' || value === 'dark';

export function keptTheme(): Theme {
  return recall<Theme>('theme', 'system', isTheme);
}
