import { isDeepStrictEqual } from 'node:util'
import { sameAdapters } from './adapter.ts'
import type { Model } from './model.ts'

/**
 * Fields that concern the server and not the engine of a model. A change of any other field starts a new engine: an
 * unnecessary load is better than an engine that runs with old settings.
 */
const serverFields = new Set<keyof Model>([
  'aliases',
  'profiles',
  'fallbacks',
  'slug',
  'description',
  'enabled',
  'replicas',
  'max_queue',
  'idle_ttl',
  'schedule',
  'dispatch_wait_ms',
  'order_bound',
  'price',
  'local_only',
  'extra_params',
  'resolutions',
  'generation_defaults',
  'region',
  'features',
  'input_images',
  'embedding_prefixes',
  'comfyui',
])

/** Whether a new value of a model's key needs a new engine. */
export const needsNewEngine = (field: string): boolean => !serverFields.has(field as keyof Model)

/** The fields of a model that concern its engine, by name and in a fixed order. */
export const engineFields = (model: Model): [field: string, value: unknown][] =>
  Object.entries(model)
    .filter(([field]) => needsNewEngine(field))
    .toSorted(([one], [other]) => (one < other ? -1 : 1))

/** Whether an engine that was started with one configuration of a model can also serve the other. */
export function sameEngine(before: Model, after: Model): boolean {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof Model)[])
  return [...fields].every(
    field =>
      !needsNewEngine(field) ||
      (field === 'adapters' ? sameAdapters(before, after) : isDeepStrictEqual(before[field], after[field])),
  )
}

/** Ids of models by the kind of change. Enabling or disabling a model counts as added or removed. */
export interface ModelChanges {
  added: string[]
  removed: string[]
  /** Changed so that they need a new engine. */
  replaced: string[]
  /** Changed otherwise. */
  updated: string[]
}

export function compareModels(before: readonly Model[], after: readonly Model[]): ModelChanges {
  const changes: ModelChanges = { added: [], removed: [], replaced: [], updated: [] }
  const old = new Map(before.map(model => [model.id, model]))
  for (const model of after) {
    const known = old.get(model.id)
    old.delete(model.id)
    if (known && isDeepStrictEqual(known, model)) continue
    if (!known?.enabled) (model.enabled ? changes.added : changes.updated).push(model.id)
    else if (!model.enabled) changes.removed.push(model.id)
    else (sameEngine(known, model) ? changes.updated : changes.replaced).push(model.id)
  }
  for (const removed of old.values()) if (removed.enabled) changes.removed.push(removed.id)
  return changes
}

export const anyChange = (changes: ModelChanges): boolean => Object.values(changes).some(ids => ids.length > 0)
