import { invalid } from '../failure.ts'
import type { ModelSet, ModelSetEntry } from '../models/engine-traits.ts'
import type { Feature } from '../models/model.ts'
import { didYouMean, nearestModels } from '../nearest.ts'
import type { TaskName } from './task.ts'

/** Returns the model for the task. Throws Failure `model_not_found` or `unsupported_task`, which names suitable models. */
export function modelFor({ id: task, title }: TaskName, id: string, catalog: ModelSet): ModelSetEntry {
  const entry = catalog.get(id)
  if (entry?.tasks.includes(task)) return entry
  const able = [...catalog.values()].filter(other => other.tasks.includes(task)).map(other => other.id)
  const named = able.slice(0, 5).map(other => `'${other}'`)
  const instead = able.length
    ? `For ${title} there is ${named.join(', ')}${able.length > 5 ? ', …' : ''}.`
    : `No model here does ${title}.`
  if (entry) throw invalid('model', `The model '${id}' does not do ${title}. ${instead}`, 'unsupported_task')
  const meant = didYouMean(nearestModels(id, able))
  throw invalid('model', `The model '${id}' does not exist here.${meant} ${instead}`, 'model_not_found')
}

/**
 * Throws Failure `unsupported_parameter` if a feature is used that the engine lacks. `param`: the field by which the
 * request uses it.
 */
export type RequireFeature = (isUsed: unknown, feature: Feature, param?: string) => void

/** Returns the check of the features that a request uses. */
export const featureCheck =
  ({ id, engine, traits: { features } }: Pick<ModelSetEntry, 'id' | 'engine' | 'traits'>): RequireFeature =>
  (isUsed, feature, param = feature) => {
    if (!isUsed || features.has(feature)) return
    throw invalid(
      param,
      `The engine of '${id}' (${engine}) cannot do '${feature}'. Leave '${param}' out or choose another model.`,
      'unsupported_parameter',
    )
  }

/** Returns the fields of the raw body that the model's `extra_params` allow in addition to the known fields. */
export function extraFields(raw: unknown, entry: Pick<ModelSetEntry, 'extraParams'>): Record<string, unknown> {
  if (entry.extraParams.length === 0) return {}
  const body = raw as Record<string, unknown>
  return Object.fromEntries(entry.extraParams.filter(name => Object.hasOwn(body, name)).map(name => [name, body[name]]))
}
