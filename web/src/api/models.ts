// Which models can be asked. Read at the start, and again when a list is opened: runs appear while they train.
import {computed, signal} from '@preact/signals';

import {place} from '../ui/place';
import {isString, keep, recall} from '../ui/storage';
import {getJson} from './http';
import type {Model} from './types';

export const models = signal<Model[] | undefined>(undefined);
export const modelsProblem = signal<unknown>(undefined);

let reading: Promise<void> | undefined;

export function readModels(): Promise<void> {
  reading ??= getJson<{data: Model[]}>('v1/models')
                  .then(
                      (answer) => {
                        models.value = answer.data;
                        modelsProblem.value = undefined;
                      },
                      (error: unknown) => {
                        modelsProblem.value = error;
                      })
                  .finally(() => {
                    reading = undefined;
                  });
  return reading;
}

// The model of this view: named in the address, or the one used last, or the first that can be read.
export const chosenModel = computed<Model | undefined>(() => {
  const all = models.value;
  if (!all || all.length === 0) return undefined;
  const named = place.value.values['model'] ?? recall('model', '', isString);
  return all.find((model) => model.id === named) ?? all.find((model) => !model.problem) ?? all[0];
});

export function rememberModel(id: string): void {
  keep('model', id);
}

export function kindOf(model: Model | undefined): NonNullable<Model['kind']> {
  return model?.kind ?? 'text';
}
