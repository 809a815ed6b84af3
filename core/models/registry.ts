import type { RegionLabel } from '../schemas/region.ts'
import { compareModels, type ModelChanges } from './change.ts'
import { offeredModels } from './defaults.ts'
import type { EngineTraits, ModelSet, ModelSetEntry } from './engine-traits.ts'
import type { Model } from './model.ts'
import { type ModelName, modelNames } from './model-names.ts'
import { type PeerOffer, withPeerModels } from './peers/offered-peer-models.ts'
import { type SlugTable, slugTable } from './slugs.ts'

interface Offer {
  models: readonly Model[]
  byId: ReadonlyMap<string, Model>
  names: ReadonlyMap<string, ModelName>
  catalog: ModelSet
  slugs: SlugTable<Model>
  hasFallbacks: boolean
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
  const { defaults, traits, region } = options
  let configured: { models: readonly Model[]; toys?: boolean | undefined } = options
  let peers: readonly PeerOffer[] = []
  let current = offerOf(offered())

  function offered(): readonly Model[] {
    return withPeerModels(offeredModels(configured, defaults), peers, hasTasks)
  }

  /** Whether the engine of a model supports its tasks. A peer may list others: it may be newer, or have other engines. */
  function hasTasks(model: Model): boolean {
    try {
      traits(model)
      return true
    } catch {
      return false
    }
  }

  function offerOf(models: readonly Model[]): Offer {
    const names = models.flatMap(modelNames)
    return {
      models,
      byId: new Map(models.map(model => [model.id, model])),
      names: new Map(names.map(one => [one.name, one])),
      catalog: new Map(models.filter(({ enabled }) => enabled).flatMap(entriesOf)),
      slugs: slugTable(models),
      hasFallbacks: names.some(({ model: { enabled, fallbacks } }) => enabled && fallbacks !== undefined),
      readAt: Date.now(),
    }
  }

  /** The entry of each name of a model. */
  function entriesOf(model: Model): (readonly [string, ModelSetEntry])[] {
    const engineTraits = traits(model)
    return modelNames(model).flatMap(({ name, kind, profile, model: { enabled, tasks }, listed: { adapterId } }) => {
      const adapter = adapterId === undefined ? {} : { adapterId }
      const entry: ModelSetEntry = {
        id: name,
        ...(kind === 'id' ? {} : { named: { kind, modelId: model.id, ...adapter } }),
        ...(profile ? { profile } : {}),
        engine: model.engine,
        tasks,
        extraParams: model.extra_params,
        region: regionOf(model, engineTraits),
        traits: adapterId === undefined ? engineTraits : traitsOfAdapter(engineTraits, adapterId),
        contextLength: model.context_length ?? null,
        embeddingPrefixes: model.embedding_prefixes,
      }
      return enabled ? [[name, entry] as const] : []
    })
  }

  /** A server elsewhere is where its own label says; without one, its region is not known. */
  function regionOf(model: Model, { isElsewhere }: Pick<EngineTraits, 'isElsewhere'>): RegionLabel | undefined {
    return model.region ?? (isElsewhere ? undefined : region)
  }

  function swap(): ModelChanges {
    const next = offered()
    const changes = compareModels(current.models, next)
    const changed = new Set(Object.values(changes).flat())
    current = offerOf(next.map(model => (changed.has(model.id) ? model : (current.byId.get(model.id) ?? model))))
    return changes
  }

  return {
    /** Returns every configured model, including disabled ones, in the order of the file. */
    all: (): readonly Model[] => current.models,
    /**
     * Returns the model with this name, disabled ones included: for a profile with the price of the profile. `id` is that of
     * the model whatever the name.
     */
    find: (name: string): Model | undefined => current.names.get(name)?.model,
    /** Returns every name of every configured model, in the order of the file. */
    names: (): Iterable<ModelName> => current.names.values(),
    named: (name: string): ModelName | undefined => current.names.get(name),
    /** Returns the enabled models by name, in the form that checks of requests need. */
    catalog: (): ModelSet => current.catalog,
    /** Returns the enabled model, its name and the task of a path below /slug. */
    bySlug: (slug: string) => current.slugs.get(slug),
    /** Returns every slug of the enabled models. */
    slugs: (): SlugTable<Model> => current.slugs,
    /** Whether any enabled model has fallbacks. */
    get hasFallbacks(): boolean {
      return current.hasFallbacks
    },
    /** When this set of models was read, epoch milliseconds. */
    get readAt(): number {
      return current.readAt
    },
    /**
     * Replaces the models of infer.yaml. A model that did not change stays the same object, so that others can detect this by
     * identity. Throws what `traits` throws, and then nothing has changed.
     */
    replace(models: readonly Model[], toys?: boolean): ModelChanges {
      const before = configured
      configured = { models, toys }
      try {
        return swap()
      } catch (thrown) {
        configured = before
        throw thrown
      }
    },
    /** Replaces the models of the peers, which stand behind those of infer.yaml. */
    replacePeers(next: readonly PeerOffer[]): ModelChanges {
      peers = next
      return swap()
    },
  }
}
/** Requests for an adapter name it to the engine in place of the model. */
const traitsOfAdapter = (traits: EngineTraits, adapterId: string): EngineTraits => ({
  ...traits,
  upstreamId: `${traits.adapterPrefix ?? ''}${adapterId}`,
})

export type Registry = ReturnType<typeof openRegistry>
