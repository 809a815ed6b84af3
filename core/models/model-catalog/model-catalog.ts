import { z } from 'zod'
import { nearestModels } from '../../nearest.ts'
import data from './catalog.json' with { type: 'json' }
import { CatalogModel } from './catalog-model.ts'

const Catalog = z.strictObject({ models: z.array(CatalogModel).min(1) })

let models: readonly CatalogModel[] | undefined

/** Well-known open models by short name. The data are in `catalog.json`. Parsed when first needed. */
export const modelCatalog = (): readonly CatalogModel[] => (models ??= Catalog.parse(data).models)

/** The alias of the model that is offered for a first start. */
export const starterName = 'starter'

/** Returns the model with this short name or alias, in any case; `qwen3:8b` is `qwen3-8b`. Undefined for others. */
export function findCatalogModel(name: string): CatalogModel | undefined {
  const wanted = name.toLowerCase().replace(':', '-')
  return modelCatalog().find(model => model.name === wanted || model.aliases.includes(wanted))
}

/** Returns the most similar short names and aliases, nearest first. */
export const nearestCatalogNames = (name: string): string[] =>
  nearestModels(
    name,
    modelCatalog().flatMap(model => [model.name, ...model.aliases]),
  )
