import {render} from 'preact';

import {readModels} from './api/models';
import {startPlace} from './ui/place';
import {Shell} from './ui/shell';
import {startTheme} from './ui/theme';
import {AttentionView} from './views/attention/attention_view';
import {PatternsView} from './views/patterns/patterns_view';
import {PlaygroundView} from './views/playground/playground_view';
import {TrainingView} from './views/training/training_view';

const views = {playground: PlaygroundView, attention: AttentionView, training: TrainingView, patterns: PatternsView};

startTheme();
startPlace();
void readModels();
const page = document.getElementById('page');
if (page) {
  page.replaceChildren();
  render(<Shell views={views} />, page);
}
