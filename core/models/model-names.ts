import { modelAllowed } from '../accounts/model-allowed.ts'
import type { FallbackReason } from '../schemas/fallback-reason.ts'
import { tasksBy } from '../schemas/task.ts'
import { type Adapter, modelOfAdapter } from './adapter.ts'
import { engineFacts } from './engine-facts.ts'
import type { ModelSet, ModelSetEntry } from './engine-traits.ts'
import type { Feature, Model } from './model.ts'
import type { Profile } from './name-fields.ts'
import { peerOfName } from './peers/settings.ts'

/** A name by which requests choose a model. */
export interface ModelName {
  name: string
  kind: 'id' | 'alias' | 'profile' | 'adapter'
  /**
   * The model as requests under this name use it: with the id of the model, the price of the profile, and all that an
   * adapter has of its own.
   */
  model: Model
  /** Only of profiles. */
  profile?: Profile
  /** The same for lists of models. */
  listed: ListedModel
}

/** A model under one of its names, as lists show it: `id` is the name. Never pass it to the fleet. */
export interface ListedModel extends Model {
  modelId: string
  kind: ModelName['kind']
  /** The adapter of the model that has this name. */
  adapterId?: string | undefined
}

type Named = Pick<Model, 'id' | 'aliases' | 'profiles' | 'adapters'>

/** Returns every name of a model: its id, its aliases and those of its profiles, then the same of its adapters. */
export const namesOf = ({ id, aliases = [], profiles = {}, adapters = [] }: Named): string[] => [
  id,
  ...aliases,
  ...Object.keys(profiles),
  ...adapters.flatMap(adapter => namesOf(adapter)),
]

/** Returns the names of a model with what each stands for, in the order of `namesOf`. */
export const modelNames = (model: Model): ModelName[] => [
  ...ownNames(model),
  ...(model.adapters ?? []).flatMap(adapter => ownNames(modelOfAdapter(model, adapter), adapter)),
]

/** The names of a model, or of its adapter if one is given, without those of further adapters. */
function ownNames(model: Model, adapter?: Adapter): ModelName[] {
  const { id, aliases = [], profiles = {} } = model
  const named = (name: string, kind: ModelName['kind'], of: Model) => {
    // The slug of the model is not that of a profile, whose work has other defaults and another price.
    const slug = kind === 'profile' ? undefined : of.slug
    return { name, kind, model: of, listed: { ...of, slug, id: name, modelId: id, kind, adapterId: adapter?.id } }
  }
  return [
    adapter ? named(adapter.id, 'adapter', model) : named(id, 'id', model),
    ...aliases.map(name => named(name, 'alias', model)),
    ...Object.entries(profiles).map(([name, profile]) => {
      const { description = model.description, price = model.price } = profile
      return { ...named(name, 'profile', { ...model, description, price }), profile }
    }),
  ]
}

/** Whether a token with these allowed models may use a name. An alias is allowed with its model or adapter too. */
export const nameAllowed = (
  patterns: readonly string[] | null,
  { id, kind, modelId, adapterId = modelId }: Pick<ListedModel, 'id' | 'kind' | 'modelId' | 'adapterId'>,
): boolean => modelAllowed(patterns, id) || (kind === 'alias' && modelAllowed(patterns, adapterId))

/** Keys of a profile for models that generate text. */
const textKeys = (profile: Profile): string[] =>
  Object.keys(profile).filter(key => key !== 'description' && key !== 'price')

/** Returns what is wrong with a name of the model, and the key that sets it; undefined without a fault. `taken`: the ids of models by the names before. */
export function nameFault(
  model: Pick<Model, 'id' | 'aliases' | 'profiles' | 'tasks'>,
  taken: ReadonlyMap<string, string>,
): { key: (string | number)[]; message: string } | undefined {
  const { id, aliases = [], profiles = {} } = model
  const own = new Set([id])
  const names = [
    ...aliases.map((name, at) => ({ name, key: ['aliases', at], kind: 'alias' })),
    ...Object.keys(profiles).map(name => ({ name, key: ['profiles', name], kind: 'profile' })),
  ]
  for (const { name, key, kind } of names) {
    const other = taken.get(name)
    if (other !== undefined)
      return {
        key,
        message: `the ${kind} '${name}' of '${id}' is already a name of the model '${other}'; choose another.`,
      }
    if (own.has(name))
      return { key, message: `the ${kind} '${name}' of '${id}' is already a name of that model; choose another.` }
    own.add(name)
    const texts = kind === 'profile' ? textKeys(profiles[name]!) : []
    if (texts.length > 0 && !model.tasks.some(task => generatesText.has(task)))
      return {
        key: [...key, texts[0]!],
        message: `the profile '${name}' sets '${texts[0]}', and the model '${id}' does not generate text. Remove that key.`,
      }
  }
  return undefined
}

/**
 * Returns what is wrong with a fallback of the model, and its index; undefined without a fault. `offered`: all models by id.
 * Models of peers are known only while the server runs: a fallback that the peer does not list is skipped. Fallbacks of fallbacks
 * are not used, so two models may be fallbacks of each other.
 */
export function fallbackFault(
  { id, tasks, local_only, fallbacks = [] }: Model,
  offered: ReadonlyMap<string, Named & Pick<Model, 'tasks' | 'engine'>>,
  peers: Readonly<Record<string, unknown>> = {},
): { at: number; message: string } | undefined {
  const before = new Set<string>()
  for (const [at, { model }] of fallbacks.entries()) {
    const other = offered.get(model)
    const isOfPeer = !other && peerOfName(model, peers) !== undefined
    const missing = other && tasks.find(task => !other.tasks.includes(task))
    const fault =
      model === id
        ? `the model '${id}' is its own fallback. Name another model.`
        : before.has(model)
          ? `the fallback '${model}' of '${id}' is listed twice. Remove one.`
          : !other && !isOfPeer
            ? `the fallback '${model}' of '${id}' is not the id of a model here${ownerText(model, offered)}.`
            : missing
              ? `the fallback '${model}' does not do ${missing}, which '${id}' does. Name a model with the same tasks.`
              : local_only && (isOfPeer || engineFacts(other?.engine).isElsewhere)
                ? `the fallback '${model}' runs elsewhere, and '${id}' is 'local_only'. Name a model of this machine.`
                : undefined
    if (fault !== undefined) return { at, message: fault }
    before.add(model)
  }
  return undefined
}

/** Of which model a name is that is no id, for a message. */
function ownerText(name: string, offered: ReadonlyMap<string, Named>): string {
  const owner = [...offered.values()].find(model => namesOf(model).includes(name))
  return owner ? `, but another name of '${owner.id}' or of its adapter. Name '${owner.id}'` : ''
}

/** Keys of profiles that need a feature of the engine. */
const featureOf: Partial<Record<keyof Profile, Feature>> = {
  top_k: 'top_k',
  min_p: 'min_p',
  presence_penalty: 'penalties',
  frequency_penalty: 'penalties',
  repetition_penalty: 'repetition_penalty',
  chat_template_kwargs: 'chat_template_kwargs',
}

/** Returns which key of a profile the engine of the model cannot do, as a sentence, with its place in the model. */
export function lackedByProfile({ engine, profiles = {} }: Model, features: ReadonlySet<Feature>) {
  for (const [name, profile] of Object.entries(profiles))
    for (const key of Object.keys(profile) as (keyof Profile)[]) {
      const feature = featureOf[key]
      if (feature !== undefined && !features.has(feature))
        return {
          key: ['profiles', name, key],
          message: `the engine ${engine} cannot do '${key}', which the profile '${name}' sets. Remove that key.`,
        }
    }
  return undefined
}

const generatesText: ReadonlySet<string> = new Set(tasksBy('chat', 'complete'))

/** How work names its model. `fallbackReason`: why another model than the requested one does it; null if it does not. */
export interface NamedWork {
  modelId: string
  /** The name in the request; null or absent if it is `modelId`. */
  requestedModel?: string | null
  fallbackReason?: FallbackReason | null
}

/**
 * Returns the model of work with the price that applies to it. Undefined if the model or the requested name is no longer
 * offered. An alias that was moved to another model does not move work that was accepted; an adapter that was is no longer
 * offered for it.
 */
export function modelOfWork(
  find: (name: string) => Model | undefined,
  { modelId, requestedModel = null, fallbackReason = null }: NamedWork,
): Model | undefined {
  const own = find(modelId)
  if (requestedModel === null || fallbackReason !== null) return own
  const named = find(requestedModel)
  if (named === undefined || named.id === modelId) return named
  // Without the adapter, which has another base now, the model would give other answers.
  return named.adapter ? undefined : own
}

/**
 * Returns the catalog for work: in it, the requested name stands for the model that does the work. A fallback keeps the
 * defaults of the requested profile, and answers under its own id.
 */
export function catalogOfWork(
  catalog: ModelSet,
  { modelId, requestedModel = null, fallbackReason = null }: NamedWork,
): ModelSet {
  const own = requestedModel === null ? undefined : catalog.get(modelId)
  if (requestedModel === null || own === undefined) return catalog
  const named = catalog.get(requestedModel)
  const isKept = named === undefined || named.named?.modelId === modelId || named.named?.adapterId !== undefined
  if (fallbackReason === null && isKept) return catalog
  const profile = fallbackReason === null ? own.profile : named?.profile
  const entry: ModelSetEntry = { ...own, profile, id: fallbackReason === null ? requestedModel : modelId }
  return new Map([
    [requestedModel, entry],
    [modelId, entry],
  ])
}
