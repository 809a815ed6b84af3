import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { tasksBy } from '../schemas/task.ts'
import { engineFacts } from './engine-facts.ts'
import type { Model } from './model.ts'

/** The other entries in each example. */
const base = { id: 'qwen3-8b', source: '/models/qwen3-8b-q4_k_m.gguf' }
const support = { of: 'qwen3-8b', source: '/models/support-lora.gguf', scale: 0.8 }
const withBase = { models: [{ id: 'support-bot', adapter: support }, base] }

/** The key of an entry that makes it an adapter of another one. */
export const adapterField = {
  adapter: z
    .strictObject({
      of: z.string().meta({
        description: 'Id of the base model, another entry of this file.',
        example: 'qwen3-8b',
        with: withBase,
      }),
      source: z.string().min(1).meta({
        description:
          'The LoRA: a GGUF file for gguf and llama-server; a folder with adapter_config.json, or its name on the model hub, for vllm and sglang.',
        example: support.source,
        with: withBase,
      }),
      scale: z.number().min(-100).max(100).default(1).meta({
        description: 'How strongly it changes the base model; 0 does not. vllm and sglang know only 1.',
        unit: 'factor',
        example: 0.8,
        with: withBase,
      }),
    })
    .optional()
    .meta({
      description:
        'Makes this entry a LoRA adapter of another model that generates text: a model with its own name, price and access that shares the engine, the queue and the slots of its base. Besides it, an entry has only `id`, `aliases`, `profiles`, `fallbacks`, `description`, `enabled` and `price`.',
      example: support,
      with: withBase,
      absent: 'none: the entry is a model of its own',
    }),
}

/** A LoRA adapter of a model. What it leaves out is that of its base. */
export interface Adapter
  extends Pick<Model, 'id' | 'enabled'>,
    Partial<Pick<Model, 'aliases' | 'profiles' | 'fallbacks' | 'description' | 'price'>> {
  source: string
  scale: number
}

/** The keys of an entry for an adapter. */
const ownKeys: ReadonlySet<string> = new Set([
  'id',
  'adapter',
  'aliases',
  'profiles',
  'fallbacks',
  'description',
  'enabled',
  'price',
])

const generation: ReadonlySet<string> = new Set(tasksBy('chat', 'complete'))

/** The tasks of a model that its adapters do too. */
export const adapterTasks = ({ tasks }: Pick<Model, 'tasks'>): Model['tasks'] =>
  tasks.filter(task => generation.has(task))

/**
 * Returns what is wrong with the entry of an adapter, and the key that sets it; undefined without a fault. `written`: the
 * entry as the file has it.
 */
export function adapterFault(
  { id, adapter }: Model,
  written: unknown,
  entries: ReadonlyMap<string, Model>,
): { key: string[]; message: string } | undefined {
  if (!adapter) return undefined
  const { of } = adapter
  const foreign = Object.keys(written ?? {}).find(key => !ownKeys.has(key))
  if (foreign !== undefined)
    return {
      key: [foreign],
      message: `'${foreign}' cannot be set for the adapter '${id}': it has that of its base model '${of}'. Remove it here.`,
    }
  const model = entries.get(of)
  const able = [...entries.values()].filter(one => !one.adapter && adapterTasks(one).length > 0).map(one => one.id)
  const instead = able.length > 0 ? ` Name one of: ${able.join(', ')}.` : ''
  const message = !model
    ? `the adapter '${id}' names the base model '${of}', which is not in this file.${instead}`
    : model.adapter
      ? `'${of}' is an adapter itself, so '${id}' cannot be an adapter of it. Name its base model: '${model.adapter.of}'.`
      : adapterTasks(model).length === 0
        ? `the base model '${of}' of the adapter '${id}' does not generate text.${instead} A LoRA for images belongs into 'loras' of its model.`
        : undefined
  return message === undefined ? undefined : { key: ['adapter', 'of'], message }
}

/** Returns the models of valid entries, each with its adapters. `written`: the entries as the file has them. */
export function withAdapters(entries: readonly Model[], written: readonly unknown[]): Model[] {
  const adapters = new Map<string, Adapter[]>()
  for (const [at, { id, adapter, enabled, aliases, profiles, fallbacks, description, price }] of entries.entries()) {
    if (!adapter) continue
    // The schema completes a price that is left out, and then that of the base applies.
    const own = (written[at] as { price?: unknown } | undefined)?.price == null ? {} : { price }
    const { of, source, scale } = adapter
    const made = { id, source, scale, enabled, aliases, profiles, fallbacks, description, ...own }
    adapters.set(of, [...(adapters.get(of) ?? []), made])
  }
  if (adapters.size === 0) return [...entries]
  return entries.flatMap(model => {
    const own = adapters.get(model.id)
    return model.adapter ? [] : [own ? { ...model, adapters: own } : model]
  })
}

/** Returns the model as requests for one of its adapters use it: with the names, the price and the tasks of the adapter. */
export function modelOfAdapter(model: Model, adapter: Adapter): Model {
  const { source, scale, aliases, profiles, fallbacks, description, price = model.price } = adapter
  return {
    ...model,
    slug: undefined,
    adapter: { of: model.id, source, scale },
    enabled: model.enabled && adapter.enabled,
    tasks: adapterTasks(model),
    aliases,
    profiles,
    fallbacks,
    description,
    price,
  }
}

/** The adapters that an engine of the model serves. */
export const enabledAdapters = ({ adapters = [] }: Pick<Model, 'adapters'>): readonly Adapter[] =>
  adapters.filter(({ enabled }) => enabled)

const loaded = (model: Model) => enabledAdapters(model).map(({ id, source, scale }) => ({ id, source, scale }))

/**
 * Whether an engine with the adapters of one configuration can also serve the other: it has the same, or loads them while
 * it runs and can read them, which a sandbox decides when it starts.
 */
export function sameAdapters(before: Model, after: Model): boolean {
  const [old, now] = [loaded(before), loaded(after)]
  if (isDeepStrictEqual(old, now)) return true
  if (engineFacts(after.engine).loadsAdapters !== 'running' || (old.length === 0) !== (now.length === 0)) return false
  const { sandbox, sandbox_read: readable } = before
  const known = new Set(old.map(({ source }) => source))
  return now.every(
    ({ source }) =>
      sandbox === 'none' ||
      known.has(source) ||
      !source.startsWith('/') ||
      readable.some(path => source === path || source.startsWith(`${path}/`)),
  )
}
