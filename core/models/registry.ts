import type { GenerationTask } from '../schemas/task.ts'
import type { Catalog } from './catalog.ts'
import { compareModels, type ModelChanges } from './change.ts'
import { offeredModels } from './defaults.ts'
import type { EngineTraits } from './fleet.ts'
import type { Model } from './model.ts'
import { slugTable } from './slugs.ts'

interface Offer {
  models: readonly Model[]
  byId: ReadonlyMap<string, Model>
  catalog: Catalog
  slugs: ReadonlyMap<string, { model: Model; task: GenerationTask }>
  readAt: number
}

/**
 * The models that this server offers, and what the request path needs to know of them. They change as a whole and at
 * once; whoever was given a model or the catalog before keeps what he has.
 */
export function openRegistry({
  models: configured,
  toys,
  defaults,
  traits,
}: {
  /** As infer.yaml lists them; where it lists none, `defaults` are offered. */
  models: readonly Model[]
  /** Whether `defaults` are offered besides; undefined for only where there are no others. */
  toys?: boolean | undefined
  defaults: () => Model[]
  traits: (model: Model) => EngineTraits
}) {
  let now = offerOf(offeredModels({ models: configured, toys }, defaults))

  function offerOf(models: readonly Model[]): Offer {
    return {
      models,
      byId: new Map(models.map(model => [model.id, model])),
      catalog: new Map(
        models
          .filter(model => model.enabled)
          .map(model => [
            model.id,
            {
              id: model.id,
              engine: model.engine,
              tasks: model.tasks,
              extraParams: model.extra_params,
              traits: traits(model),
            },
          ]),
      ),
      slugs: slugTable(models),
      readAt: Date.now(),
    }
  }

  return {
    /** Every configured model, disabled ones too, in the order of the file. */
    all: (): readonly Model[] => now.models,
    find: (id: string): Model | undefined => now.byId.get(id),
    /** The enabled ones, in the form that request bodies are checked against. */
    catalog: (): Catalog => now.catalog,
    /** What is asked for under this path below /slug, of the enabled models. */
    bySlug: (slug: string): { model: Model; task: GenerationTask } | undefined => now.slugs.get(slug),
    /** Every slug that reaches an enabled model. */
    slugs: (): ReadonlyMap<string, { model: Model; task: GenerationTask }> => now.slugs,
    /** When this set of models was read, epoch milliseconds. */
    get readAt(): number {
      return now.readAt
    },
    /**
     * Offers other models from now on. A model that did not change stays the same object, which is how others know
     * that nothing is to be done about it. Throws what `traits` throws, and then nothing has changed.
     */
    replace(next: readonly Model[], nextToys?: boolean): ModelChanges {
      const wanted = offeredModels({ models: next, toys: nextToys }, defaults)
      const changes = compareModels(now.models, wanted)
      const touched = new Set(Object.values(changes).flat())
      now = offerOf(wanted.map(model => (touched.has(model.id) ? model : (now.byId.get(model.id) ?? model))))
      return changes
    },
  }
}
export type Registry = ReturnType<typeof openRegistry>
