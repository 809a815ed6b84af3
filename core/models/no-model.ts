import { noModelId } from '../schemas/task-table.ts'
import { Model } from './model.ts'

/** Stands for the model of work that needs none, which is free and always enabled. It is in no list of models. */
export const noModel: Model = { ...Model.parse({ id: 'none' }), id: noModelId }

/** Returns `find` extended by the model of work that needs none. */
export const orNoModel =
  (find: (name: string) => Model | undefined) =>
  (name: string): Model | undefined =>
    name === noModelId ? noModel : find(name)
