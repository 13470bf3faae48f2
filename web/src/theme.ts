// Runs before the first paint, so that a page in the chosen theme never flashes in the other.
import {keptTheme} from './ui/kept_theme';

const theme = keptTheme();
if (theme !== 'system') document.documentElement.dataset['theme'] = theme;
