import { isDeepStrictEqual } from 'node:util'
import type { Model } from './model.ts'

/**
 * Fields that concern how the server treats a model and not the engine that runs it. Whatever is not named here makes
 * a new engine when it changes: an engine that still runs by an old line of the file is worse than one load too many.
 */
const besidesTheEngine = new Set<keyof Model>([
  'slug',
  'description',
  'enabled',
  'replicas',
  'max_queue',
  'idle_ttl',
  'dispatch_wait_ms',
  'price',
  'extra_params',
  'resolutions',
  'features',
])

/** Whether a new value of a key of a model makes a new engine. */
export const needsNewEngine = (field: string): boolean => !besidesTheEngine.has(field as keyof Model)

/** Whether an engine that was started for one configuration of a model serves another one too. */
export function sameEngine(before: Model, after: Model): boolean {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)] as (keyof Model)[])
  return [...fields].every(field => !needsNewEngine(field) || isDeepStrictEqual(before[field], after[field]))
}

/** Ids, by what became of their models. One that was switched on or off counts as added or removed. */
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
  for (const gone of old.values()) if (gone.enabled) changes.removed.push(gone.id)
  return changes
}

export const anyChange = (changes: ModelChanges): boolean => Object.values(changes).some(ids => ids.length > 0)
