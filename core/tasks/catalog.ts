import { Failure } from '../failure.ts'
import type { Catalog, CatalogEntry } from '../models/catalog.ts'
import type { Feature } from '../models/model.ts'
import { didYouMean, nearestModels } from '../nearest.ts'
import type { TaskName } from './task.ts'

/** The model for the task. Throws Failure `model_not_found` or `unsupported_task`, naming what would do instead. */
export function modelFor({ id: task, title }: TaskName, id: string, catalog: Catalog): CatalogEntry {
  const entry = catalog.get(id)
  if (entry?.tasks.includes(task)) return entry
  const able = [...catalog.values()].filter(other => other.tasks.includes(task)).map(other => other.id)
  const named = able.slice(0, 5).map(other => `'${other}'`)
  const instead = able.length
    ? `For ${title} there is ${named.join(', ')}${able.length > 5 ? ', …' : ''}.`
    : `No model here does ${title}.`
  if (entry)
    throw new Failure('unsupported_task', `The model '${id}' does not do ${title}. ${instead}`, {
      param: 'model',
    })
  const meant = didYouMean(nearestModels(id, able))
  throw new Failure('model_not_found', `The model '${id}' does not exist here.${meant} ${instead}`, { param: 'model' })
}

/** Throws Failure `unsupported_parameter` that names the first of these which the engine lacks. */
export function checkFeatures(used: readonly [Feature, param: string][], entry: CatalogEntry): void {
  const lacking = used.find(([feature]) => !entry.traits.features.has(feature))
  if (!lacking) return
  const [feature, param] = lacking
  throw new Failure(
    'unsupported_parameter',
    `The engine of '${entry.id}' (${entry.engine}) cannot do '${feature}'. Leave '${param}' out or choose another model.`,
    { param },
  )
}

/** Of the raw body, the fields that the model's configuration lets through to its engine besides the known ones. */
export function extraFields(raw: unknown, entry: Pick<CatalogEntry, 'extraParams'>): Record<string, unknown> {
  if (entry.extraParams.length === 0) return {}
  const body = raw as Record<string, unknown>
  return Object.fromEntries(entry.extraParams.filter(name => Object.hasOwn(body, name)).map(name => [name, body[name]]))
}
