// Continues a text, token by token, or draws images.
import {useEffect} from 'preact/hooks';

import {chosenModel, kindOf} from '../../api/models';
import {ModelChoice, ModelState} from '../../ui/model_choice';
import {startDraft, stop} from './generation';
import {ImagePlayground} from './image_playground';
import {startSettings} from './settings';
import {TextPlayground} from './text_playground';

export function PlaygroundView() {
  useEffect(() => {
    startSettings();
    startDraft();
  }, []);
  const model = chosenModel.value;
  return (
    <>
      <div class="view-head"><h1 class="hidden-text">Playground</h1><ModelChoice onChange={stop} /></div>
      <ModelState />
      {kindOf(model) === 'image' ? <ImagePlayground model={model} /> : <TextPlayground model={model} />}
    </>
  );
}
