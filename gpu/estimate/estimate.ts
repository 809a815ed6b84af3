import { engineFacts } from '../../core/models/engine-facts.ts'
import { readGgufHeader } from '../../core/models/gguf-header.ts'
import type { Model } from '../../core/models/model.ts'
import type { TransformersShape } from '../../core/models/recognition/transformers-shape.ts'
import type { CardSplit } from '../engines/gguf/card-split.ts'
import {
  type AvailableMemory,
  type Sizing,
  SizingRefusal,
  type SizingSettings,
  sizing,
  wantedContext,
  writes,
} from '../engines/gguf/sizing.ts'
import type { ModelShape } from '../engines/gguf/sizing-need.ts'
import { type AdaptersPlan, adapterBytes, planAdapters, reservedBytes } from './adapters.ts'
import { draftMemory, withDraftModel, withPagedDraft } from './draft-model.ts'
import { type LlamaOptions, llamaOptions } from './llama-options.ts'
import { shapeOf, sizeOf, weightsOf } from './model-files.ts'
import { type PagedPlan, type PagedShape, pagedPlanOn, requestCache } from './paged-plan.ts'
import type { PlacementTarget } from './target.ts'

/** Bytes that an engine uses besides the weights: its runtime (a CUDA context alone is half a gigabyte) and buffers. */
const overhead = { cpu: 256 * 2 ** 20, gpu: 2 ** 30, vulkan: 256 * 2 ** 20 }
/** The same for an engine on such a device; `backend`: the one by which the built-in engine uses cards, if it is known. */
export const overheadOf = ({ kind, backend }: Pick<PlacementTarget, 'kind' | 'backend'>): number =>
  overhead[kind === 'gpu' && backend === 'vulkan' ? 'vulkan' : kind]

/** Weights use a fifth more memory than their files: padding, dequantised parts, the cache of a few requests. */
const factor = 1.2

/** The fields of a model that decide its memory. */
export type Sized = Pick<Model, 'memory' | 'source'> & Partial<Pick<Model, 'comfyui'>> & EstimatedModel
/** The fields that decide the memory layout of a GGUF model. */
export type EstimatedModel = Pick<Model, 'tasks' | 'context_length'> &
  Partial<
    Pick<
      Model,
      | 'engine'
      | 'args'
      | 'env'
      | 'nodes'
      | 'concurrency'
      | 'gpu_layers'
      | 'flash_attention'
      | 'kv_type'
      | 'batch_size'
      | 'speculative'
      | 'adapters'
    >
  >

/** How an engine is to use the memory that is booked for it, so that the booking is true. */
export interface MemoryPlan {
  /** Layers, context and concurrency of a GGUF model. */
  layout?: Sizing
  /** For vLLM and SGLang. */
  paged?: PagedPlan
  /** Its LoRA adapters; absent if it has none. */
  adapters?: AdaptersPlan
  /** Bytes of weights and cache of its draft model; absent if it has none, or its files are not on this machine. */
  draftBytes?: number
}

/** What is known of a model, which is all there is if its files are not on this machine. */
export interface KnownModel {
  /** Reads the header of its GGUF file, if that is needed and not known. */
  readHeader?: typeof readGgufHeader
  /** The header of its GGUF file. */
  header?: ModelShape | undefined
  /** Its config.json, and the bytes of its weights. */
  shape?: TransformersShape | undefined
  bytes?: number | undefined
}

export interface MemoryEstimate {
  /** Bytes on the devices of the model; null when its size is unknown. */
  bytes: number | null
  plan: MemoryPlan
  /** On how many devices; absent: on as many as the target names. */
  devices?: number
  /** How its layers are divided among several cards; absent where they are not, or in equal parts. */
  split?: CardSplit
  /** The layout on more cards that has the context people need, where that on the fewest has not. */
  longer?: LayoutOnCards
}

/** A layout of a GGUF model and what it takes on so many cards, divided among them. */
export interface LayoutOnCards {
  devices: number
  bytes: number
  layout: Sizing
  split: CardSplit
}

/**
 * Estimates the device memory that a model needs: the configured value; for a GGUF file the weights, cache and buffers
 * by its header, computed as the engine does at its start; for vLLM and SGLang by config.json; else by the size of its
 * files. The size is unknown, for example, for a name on a hub: the model then gets a device of its own.
 */
export async function planMemory(
  model: Sized,
  target: PlacementTarget,
  known: KnownModel = {},
): Promise<MemoryEstimate> {
  const { memory, source } = model
  if (source === undefined) return { bytes: memory ?? overheadOf(target), ...(await onlyAdapters(model)) }
  // The source is a graph, whose size says nothing about the models in it.
  if (model.comfyui) return { bytes: memory ?? null, plan: {} }
  const isGguf = known.header !== undefined || /\.gguf$/i.test(source)
  if (isGguf) {
    // For an unreadable file the engine reports the error when it starts.
    const header = known.header ?? (await (known.readHeader ?? readGgufHeader)(source).catch(() => null))
    if (header) {
      const adapters = await planAdapters(model, { header }, known.readHeader)
      const draft = await draftHeader(model, known.readHeader ?? readGgufHeader)
      const shape = draft ? withDraftModel(header, draft) : header
      const companions = (await companionBytes(model)) + adapterBytes(adapters)
      const made = ggufNeedOn(shape, model, target, companions, memory)
      const { bytes, sizing: layout, devices, split, longer } = made
      return {
        bytes: memory ?? bytes,
        plan: { ...(layout && { layout }), ...beside(adapters, draft && layout && draftMemory(draft, layout)) },
        devices,
        ...(split && { split }),
        ...(longer && { longer }),
      }
    }
  }
  if (engineFacts(model.engine).pagesCache) {
    const shape = known.shape ?? (await shapeOf(source))
    const weights = known.bytes ?? (await weightsOf(source))
    if (shape && weights !== null) {
      const { kind, devices: least, capacity } = target
      const cards = target.cards ?? Array.from({ length: least }, () => capacity)
      const adapters = await planAdapters(model, { shape })
      const draft = model.speculative?.draft_model
      const [drafts, draftWeights] = draft ? [await shapeOf(draft), await weightsOf(draft)] : []
      const own = pagedShape(shape, weights, model)
      const guesses = drafts && draftWeights ? pagedShape(drafts, draftWeights, model) : undefined
      const whole = guesses ? withPagedDraft(own, guesses) : own
      const loaded = adapters ? { ...whole, weights: whole.weights + reservedBytes(shape, adapters, model) } : whole
      const made = pagedPlanOn(loaded, model, target, kind === 'cpu' ? [] : cards)
      const plan = {
        paged: made.plan,
        ...beside(adapters, guesses && guesses.weights + requestCache(guesses, model, made.plan)),
      }
      return { bytes: made.bytes, plan, devices: made.devices }
    }
  }
  const rest = await onlyAdapters(model)
  if (memory !== undefined) return { bytes: memory, ...rest }
  const files = known.bytes ?? (await sizeOf(source))
  const all = files === null ? null : files + adapterBytes(rest.plan.adapters)
  return { bytes: all === null ? null : filesNeed(all, target.kind, target.backend), ...rest }
}

/** The plan of a model of which only its adapters are known. */
const onlyAdapters = async (model: EstimatedModel) => ({ plan: beside(await planAdapters(model, {})) })

/** What is loaded besides the model. */
const beside = (adapters?: AdaptersPlan, draftBytes?: number | null): MemoryPlan => ({
  ...(adapters && { adapters }),
  ...(draftBytes && { draftBytes }),
})

/** The header of the GGUF file that guesses tokens for the model; undefined for a file that the engine will refuse. */
async function draftHeader({ speculative }: EstimatedModel, read: typeof readGgufHeader) {
  const file = speculative?.draft_model
  return file === undefined ? undefined : await read(file).catch(() => undefined)
}

/** Engines store weights of 32 bits in 16, unless an option names a type. */
const pagedShape = (shape: TransformersShape, weights: number, { args = [] }: EstimatedModel): PagedShape => ({
  ...shape,
  weights: shape.isWide && !args.some(arg => arg.startsWith('--dtype')) ? weights / 2 : weights,
})

/** Estimates the bytes that a model needs on its devices, as `planMemory` does. */
export const estimate = async (model: Sized, target: PlacementTarget): Promise<number | null> =>
  (await planMemory(model, target)).bytes

/** Whether llama-server runs the model: it gets its layout as options. */
const isServed = ({ engine }: EstimatedModel): boolean => {
  const { reads, isBuiltIn } = engineFacts(engine)
  return reads === 'gguf' && !isBuiltIn
}

/**
 * Bytes of the buffers in which an image encoder computes. For the 4096 patches of SigLIP So400m, with 1152 numbers each
 * and 4304 in its feed-forward part, they have 254 MB.
 */
const imageBuffers = 256 * 2 ** 20
/** Estimates the bytes of an image encoder on the device of its model, by the size of its file. */
export const projectorNeed = (fileBytes: number): number => fileBytes + imageBuffers

/** Bytes of the image encoder, the adapters and the further models that llama-server loads besides the model. */
export async function companionBytes(model: EstimatedModel): Promise<number> {
  if (!isServed(model)) return 0
  const { projector, further } = llamaOptions(model)
  const sizes = await Array.fromAsync(further, path => sizeOf(path))
  const image = projector === undefined ? null : await sizeOf(projector)
  return sizes.reduce((sum: number, size) => sum + (size ?? 0), image === null ? 0 : projectorNeed(image))
}

/** Estimates the bytes that a model needs when only the size of its files is known. */
export const filesNeed = (bytes: number, kind: PlacementTarget['kind'], backend?: PlacementTarget['backend']): number =>
  Math.ceil(bytes * factor) + overheadOf({ kind, backend })

/**
 * Computes what a GGUF model needs on the fewest cards that hold all of its layers with a usual context, else on those that
 * hold most of them; and on the fewest that hold it with the context that people need, where these are more. `limit`: bytes
 * on all cards that it may use.
 */
export function ggufNeedOn(
  header: ModelShape,
  model: EstimatedModel,
  target: PlacementTarget,
  beside = 0,
  limit = Number.POSITIVE_INFINITY,
): ReturnType<typeof ggufNeed> & { devices: number; longer?: LayoutOnCards } {
  const cards = target.cards ?? Array.from({ length: target.devices }, () => target.capacity)
  const hasAll = ({ sizing }: ReturnType<typeof ggufNeed>) =>
    sizing !== null && (sizing.gpuLayers > header.blockCount || model.gpu_layers !== undefined)
  let best: (ReturnType<typeof ggufNeed> & { devices: number }) | undefined
  for (let devices = target.devices; devices <= Math.max(target.devices, cards.length); devices++) {
    const used = cards.slice(0, devices)
    const all = used.length < devices ? target.capacity * devices : used.reduce((sum, bytes) => sum + bytes, 0)
    if (all < limit && limit < Number.POSITIVE_INFINITY && devices < cards.length) continue
    const of = {
      ...target,
      devices,
      cards: used,
      capacity: Math.min(limit, all) / devices,
      whole: target.whole ?? all / devices,
    }
    const made = { devices, ...ggufNeed(header, model, of, beside) }
    if (best && hasAll(best)) {
      const { bytes, sizing: layout, split } = made
      if (layout && split && hasAll(made) && layout.context >= wantedContext(header))
        return { ...best, longer: { devices, bytes, layout, split } }
      continue
    }
    const layers = ({ sizing }: typeof made) => sizing?.gpuLayers ?? -1
    if (best === undefined || layers(made) > layers(best)) best = made
    const isLong = !choosesContext(model) || (best.sizing?.context ?? 0) >= wantedContext(header)
    if (hasAll(best) && (isLong || limit < Number.POSITIVE_INFINITY)) break
  }
  return best!
}

/** Whether infer chooses the context of a model that generates text. */
const choosesContext = (model: EstimatedModel): boolean =>
  model.context_length === undefined &&
  writes(model.tasks) &&
  !(isServed(model) && llamaOptions(model).context !== undefined)

/**
 * Computes the bytes that a GGUF model and its engine need on this target, and the layout of the model there. When it
 * does not fit in any layout, `sizing` is null and `bytes` is the minimum that it needs. `beside`: bytes of what the
 * engine loads on the device besides the model.
 */
export function ggufNeed(
  header: ModelShape,
  model: EstimatedModel,
  { kind, devices, capacity, slots, backend, whole = capacity, cards }: PlacementTarget,
  beside = 0,
): { bytes: number; sizing: Sizing | null; split?: CardSplit } {
  const each = overheadOf({ kind, backend })
  const own = each * devices + beside
  const free = Math.max(0, capacity * devices - own)
  const by = kind === 'gpu' && devices > 1 ? splitBy(model) : undefined
  // What is loaded besides is on the first card.
  const onCards = cards?.map((bytes, at) => Math.max(0, bytes - each - (at === 0 ? beside : 0)))
  const memory: AvailableMemory =
    kind === 'cpu'
      ? { gpu: 0, cards: 0, cpu: free, whole: Math.max(free, whole - own) }
      : {
          gpu: free,
          cards: devices,
          cpu: Number.POSITIVE_INFINITY,
          whole: Math.max(free, whole * devices - own),
          ...(by && onCards?.length === devices ? { split: { by, free: onCards } } : {}),
        }
  const bytesOf = ({ gpu, cpu }: { gpu: number; cpu: number }) => (kind === 'cpu' ? cpu : gpu) + own
  try {
    const made = sizing(header, memory, sizingSettings(model, slots, kind))
    const { each: buffers, layers } = made.need.onCards
    const [first = 0, ...others] = layers
    const parts = { each: buffers + each, layers: [first + beside, ...others] }
    const divides = kind === 'gpu' && layers.length > 1 && splitBy(model)
    return {
      bytes: bytesOf(made.need),
      sizing: made,
      ...(divides && { split: { ...parts, by: divides } }),
    }
  } catch (thrown) {
    if (!(thrown instanceof SizingRefusal)) throw thrown
    return { bytes: bytesOf(thrown.need), sizing: null }
  }
}

/** How its engine divides a GGUF model among cards; undefined where the model's own options decide that. */
function splitBy(model: EstimatedModel): CardSplit['by'] | undefined {
  if (!isServed(model)) return 'free'
  const { tensorSplit, splitMode = 'layer', keepsTensors } = llamaOptions(model)
  return tensorSplit === undefined && splitMode === 'layer' && !keepsTensors ? 'booked' : undefined
}

/** Requests at a time: the configured number; chosen for a model that generates text, unless one is configured. */
const parallelOf = ({ concurrency, tasks }: EstimatedModel, slots: number): number | undefined =>
  concurrency ?? (writes(tasks) ? undefined : slots)

/** The settings by which a GGUF model is sized on such a device. */
export const sizingSettings = (model: EstimatedModel, slots: number, kind: PlacementTarget['kind']): SizingSettings =>
  isServed(model) ? serverSettings(model, llamaOptions(model), slots, kind) : ownSettings(model, slots)

const ownSettings = (model: EstimatedModel, slots: number): SizingSettings => ({
  tasks: model.tasks,
  context: model.context_length,
  gpuLayers: model.gpu_layers,
  flashAttention: model.flash_attention,
  kvType: model.kv_type,
  batch: model.batch_size,
  parallel: parallelOf(model, slots),
})

/** Stands for the context of the training, which is the most that is chosen. */
const trained = 2 ** 31
/** Tokens that llama-server computes at once: its own maximum, and what its preset sets on a processor. */
const microBatch = { gpu: 512, cpu: 64 }

/** The settings of llama-server: what its options say, else what its preset will set by this estimate. */
function serverSettings(
  model: EstimatedModel,
  given: LlamaOptions,
  slots: number,
  kind: PlacementTarget['kind'],
): SizingSettings {
  const parallel = given.parallel || (given.context === undefined ? parallelOf(model, slots) : slots)
  const batch = given.batch ?? (given.projector === undefined ? microBatch[kind] : 512)
  return {
    tasks: model.tasks,
    isServer: true,
    context:
      given.context === undefined ? model.context_length : Math.floor(given.context / (parallel ?? slots)) || trained,
    gpuLayers: given.gpuLayers,
    flashAttention: given.flash,
    kvType: given.kvType,
    batch: given.microBatch ?? Math.min(batch, 512),
    parallel,
  }
}

/** Returns the least memory that a model can need, in bytes, without reading its files; 0 when nothing is known. */
export const leastBytes = async ({ memory, source }: Pick<Model, 'memory' | 'source'>): Promise<number> =>
  memory ?? (source === undefined ? null : await sizeOf(source)) ?? 0
