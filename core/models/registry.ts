import type { RegionLabel } from '../schemas/region.ts'
import type { GenerationTask } from '../schemas/task.ts'
import { compareModels, type ModelChanges } from './change.ts'
import { offeredModels } from './defaults.ts'
import type { EngineTraits, ModelSet } from './engine-traits.ts'
import type { Model } from './model.ts'
import { slugTable } from './slugs.ts'

interface Offer {
  models: readonly Model[]
  byId: ReadonlyMap<string, Model>
  catalog: ModelSet
  slugs: ReadonlyMap<string, { model: Model; task: GenerationTask }>
  readAt: number
}

/**
 * Opens the models of this server with the data that the request path needs. `replace` swaps all of them at once; a model
 * or catalog that was returned before does not change.
 */
export function openRegistry(options: {
  /** The models in infer.yaml; without any, `defaults` are used. */
  models: readonly Model[]
  /** Whether `defaults` are offered besides; undefined for only where there are no others. */
  toys?: boolean | undefined
  defaults: () => Model[]
  traits: (model: Model) => EngineTraits
  /** The region of this machine. */
  region?: RegionLabel | undefined
}) {
  const { models: configured, toys, defaults, traits, region } = options
  let current = offerOf(offeredModels({ models: configured, toys }, defaults))

  function offerOf(models: readonly Model[]): Offer {
    return {
      models,
      byId: new Map(models.map(model => [model.id, model])),
      catalog: new Map(
        models
          .filter(model => model.enabled)
          .map(model => {
            const engineTraits = traits(model)
            return [
              model.id,
              {
                id: model.id,
                engine: model.engine,
                tasks: model.tasks,
                extraParams: model.extra_params,
                region: regionOf(model, engineTraits),
                traits: engineTraits,
                contextLength: model.context_length ?? null,
                embeddingPrefixes: model.embedding_prefixes,
              },
            ]
          }),
      ),
      slugs: slugTable(models),
      readAt: Date.now(),
    }
  }

  /** A server elsewhere is where its own label says; without one, its region is not known. */
  function regionOf(model: Model, { isElsewhere }: Pick<EngineTraits, 'isElsewhere'>): RegionLabel | undefined {
    return model.region ?? (isElsewhere ? undefined : region)
  }

  return {
    /** Returns every configured model, including disabled ones, in the order of the file. */
    all: (): readonly Model[] => current.models,
    find: (id: string): Model | undefined => current.byId.get(id),
    /** Returns the enabled models in the form that checks of requests need. */
    catalog: (): ModelSet => current.catalog,
    /** Returns the enabled model and the task of a path below /slug. */
    bySlug: (slug: string): { model: Model; task: GenerationTask } | undefined => current.slugs.get(slug),
    /** Returns every slug of the enabled models. */
    slugs: (): ReadonlyMap<string, { model: Model; task: GenerationTask }> => current.slugs,
    /** When this set of models was read, epoch milliseconds. */
    get readAt(): number {
      return current.readAt
    },
    /**
     * Replaces the models. A model that did not change stays the same object, so that others can detect this by
     * identity. Throws what `traits` throws, and then nothing has changed.
     */
    replace(next: readonly Model[], nextToys?: boolean): ModelChanges {
      const offered = offeredModels({ models: next, toys: nextToys }, defaults)
      const changes = compareModels(current.models, offered)
      const changed = new Set(Object.values(changes).flat())
      current = offerOf(offered.map(model => (changed.has(model.id) ? model : (current.byId.get(model.id) ?? model))))
      return changes
    },
  }
}
export type Registry = ReturnType<typeof openRegistry>
