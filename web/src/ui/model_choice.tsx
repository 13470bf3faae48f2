// Which model a view asks, with what must be known about it beside its name.
import {chosenModel, kindOf, models, modelsProblem, readModels, rememberModel} from '../api/models';
import type {Model} from '../api/types';
import {Problem, Validity} from './controls';
import {compact, whole} from './format';
import {setValues} from './place';

const kinds = {text: 'text', image: 'images', symbols: 'symbols to symbols'} as const;

function facts(model: Model): string {
  const parts: string[] = [model.tokens ?? kinds[kindOf(model)]];
  if (model.parameters) parts.push(`${compact(model.parameters)} weights`);
  if (model.width && model.height) parts.push(`${model.width} × ${model.height}`);
  else if (model.sequence_length) parts.push(`trained on ${whole(model.sequence_length)} tokens`);
  return parts.join(' · ');
}

export function ModelChoice(props: {onChange?: () => void}) {
  const all = models.value;
  const model = chosenModel.value;
  const choose = (id: string) => {
    rememberModel(id);
    setValues({model: id}, {replace: false});
    props.onChange?.();
  };
  return (
    <div class="model-choice">
      <label for="model" class="hidden-text">Model</label>
      <select id="model" value={model?.id ?? ''} disabled={!all?.length} onFocus={() => void readModels()}
              onChange={(event) => choose(event.currentTarget.value)}>
        {all?.length ? null : <option value="">{all ? 'no models yet' : 'looking for models'}</option>}
        {all?.map((each) => <option key={each.id} value={each.id}>{each.id}{each.problem ? ' (problem)' : ''}</option>)}
      </select>
      {model ? <span class="label">{facts(model)}</span> : null}
      <Validity label={model?.validity} />
      {model?.data_label ? <span class="label bad">{model.data_label}</span> : null}
    </div>
  );
}

// What stands in a view as long as there is no model to ask.
export function ModelState() {
  const model = chosenModel.value;
  if (modelsProblem.value) return <Problem error={modelsProblem.value} onRetry={() => void readModels()} />;
  if (models.value && !model) {
    return (
      <p class="empty">
        There is no model in this folder yet. A run appears here with its first checkpoint; <a href="#/training">
        Training</a> shows it from its first step. To make one: <code>make quickstart</code>.
      </p>
    );
  }
  if (model?.problem) {
    return <div class="notice mild" role="status"><p><strong>{model.id}:</strong> {model.problem}</p></div>;
  }
  return null;
}
