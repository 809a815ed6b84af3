import type { Config } from '../config.ts'
import type { EngineTraits } from '../fleet.ts'
import type { Catalog, CatalogEntry } from '../tasks/catalog.ts'
import type { Model } from './model.ts'

/** The models that this server offers, and what the request path needs to know of them. */
export function openRegistry({
  config,
  defaults,
  traits,
}: {
  config: Config
  defaults: () => Model[]
  traits: (model: Model) => EngineTraits
}) {
  const models = config.models.length > 0 ? config.models : defaults()
  const byId = new Map(models.map(model => [model.id, model]))
  const catalog: Map<string, CatalogEntry> = new Map(
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
  )
  return {
    /** Every configured model, disabled ones too, in the order of the file. */
    all: (): readonly Model[] => models,
    find: (id: string): Model | undefined => byId.get(id),
    /** The enabled ones, in the form that request bodies are checked against. */
    catalog: (): Catalog => catalog,
    /** When this set of models was read, epoch milliseconds. */
    readAt: Date.now(),
  }
}
export type Registry = ReturnType<typeof openRegistry>
