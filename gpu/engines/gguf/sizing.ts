import { Failure, invalid } from '../../../core/failure.ts'
import { isFor, type Task } from '../../../core/schemas/task.ts'
import { type CardSplit, divideLayers } from './card-split.ts'
import { type ContextShape, type KvType, kvTypes, type ModelShape, type Need, needOf } from './sizing-need.ts'

/** Bytes that the model may use, without the process itself. */
export interface AvailableMemory {
  /** On all GPUs together; 0 if there is none to use. */
  gpu: number
  /** How many GPUs the model is divided among. */
  cards: number
  /** Bytes on each of them, where the layers must fit on each, and how they are divided; absent: they are even. */
  split?: { by: CardSplit['by']; free: readonly number[] }
  cpu: number
  /** Total memory of the GPUs, or of the machine without any, if the above is only a part of it. */
  whole?: number | undefined
}

export const flashUses = ['auto', 'on', 'off'] as const

/** Settings by the administrator; omitted ones are chosen automatically. */
export interface SizingSettings {
  tasks: readonly Task[]
  /** Layers on the GPU, the output counted as one more. */
  gpuLayers?: number
  flashAttention?: (typeof flashUses)[number]
  kvType?: KvType
  /** Maximum tokens of one request, prompt and answer together; at most the trained context length. */
  context?: number
  /** Concurrent requests, 1 to 256; each has a separate context. */
  parallel?: number
  /** Tokens per batch, 32 to 4096. */
  batch?: number
  /** The model runs in llama-server: one context of `parallel` sequences for every task. */
  isServer?: boolean
}

export interface SizingChoice {
  gpuLayers: number
  /** Tokens of one chat. */
  context: number
  parallel: number
  kvType: KvType
}

export interface Sizing extends SizingChoice {
  /** All layers of the model, the output counted as one. */
  layers: number
  flashAttention: (typeof flashUses)[number]
  /** Maximum tokens of one text to rank or embed. */
  encoderContext: number
  batch: number
  need: Need
  /** The choice and its memory, as one sentence for the log. */
  why: string
}

/** Context lengths for the automatic choice, down to the minimum for a short chat. */
const ladder = [65_536, 32_768, 16_384, 8192, 4096, 2048, 1024, 512]
/**
 * The context that people need, in tokens, as far as the model was trained for it: for a long conversation or a document;
 * twice as much for a coder, whose agent sends files.
 */
export const wantedContext = ({ codes, contextLength }: Pick<ModelShape, 'codes' | 'contextLength'>): number =>
  Math.min(codes ? 65_536 : 32_768, contextLength ?? Number.POSITIVE_INFINITY)
const defaultContext = 4096
const defaultEncoderContext = 2048
const defaultBatch = 512
const defaultParallel = [4, 2, 1]

/**
 * Shares of the memory that a cache may take for a context above the default, which other models then lack: for the
 * single request that has the context people need more than for several.
 */
const maxCacheShare = { one: 0.5, several: 0.25 }

/**
 * Chooses layers, context length and concurrency of a model. Pure: the fleet reserves memory by the same result that
 * the engine then uses. Order of preference: all layers on the GPUs with the context that people need for four requests,
 * for two, for one; then with shorter ones down to the default; then as many layers as fit, then none, and an even
 * shorter context last. Settings are kept, except for a context above the trained length. Throws SizingRefusal, with the
 * numbers and what would fit.
 */
export function sizing(shape: ModelShape, memory: AvailableMemory, settings: SizingSettings): Sizing {
  const { flashAttention = 'auto', batch = defaultBatch } = settings
  const flash = usesFlash(shape, settings)
  const fault = cacheFault(shape, settings)
  if (fault) throw invalid(fault.param, `A cache of ${settings.kvType} ${fault.why}`)
  const chats = writes(settings.tasks)
  const total = shape.blockCount + 1

  const plan = (choice: SizingChoice): Sizing => {
    const { context, parallel } = choice
    const encoderContext = Math.min(settings.context ?? defaultEncoderContext, context)
    const contexts = contextsOf(shape, settings, { context, encoderContext, parallel, batch })
    const need = needOf(shape, { ...choice, contexts, flash, cards: memory.cards })
    return { ...choice, layers: total, flashAttention, encoderContext, batch, need, why: '' }
  }
  const { split } = memory
  const fits = ({ need }: Sizing) =>
    need.gpu <= memory.gpu &&
    need.cpu <= memory.cpu &&
    (split === undefined || divideLayers({ ...need.onCards, by: split.by }, split.free) !== undefined)
  const whole = memory.whole ?? (memory.gpu > 0 ? memory.gpu : memory.cpu)
  const hasModestCache = ({ context, parallel, need }: Sizing) =>
    context <= defaultContext ||
    (settings.context !== undefined && (parallel === 1 || settings.parallel !== undefined)) ||
    need.cache <= maxCacheShare[parallel === 1 ? 'one' : 'several'] * whole

  for (const choice of choices(shape, memory, settings, chats)) {
    const made = plan(choice)
    if (fits(made) && hasModestCache(made)) return { ...made, why: reasonOf(made, shape, memory) }
  }
  const least = plan([...choices(shape, memory, settings, chats)].at(-1)!)
  throw new SizingRefusal(
    least,
    memory,
    change => cacheFault(shape, { ...settings, ...change }) === null && fits(plan({ ...least, ...change })),
  )
}

/** The reason why llama.cpp would refuse a cache type, which it does not report, and the field to change; else null. */
function cacheFault({ keyLength, valueLength }: ModelShape, { kvType = 'f16', flashAttention }: SizingSettings) {
  if (kvType === 'f16') return null
  if (flashAttention === 'off')
    return { param: 'flash_attention', why: 'needs flash attention, which is switched off.' }
  if ((keyLength ?? 0) % 32 === 0 && (valueLength ?? 0) % 32 === 0) return null
  return { param: 'kv_type', why: `holds numbers in blocks of 32, and the heads of this model have ${keyLength}.` }
}

/** Yields the choices in order of preference. */
function* choices(shape: ModelShape, memory: AvailableMemory, settings: SizingSettings, chats: boolean) {
  const { kvType = 'f16' } = settings
  const trained = shape.contextLength ?? Number.POSITIVE_INFINITY
  const wanted = chats ? wantedContext(shape) : defaultEncoderContext
  const most = Math.min(settings.context ?? wanted, trained)
  const contexts = settings.context === undefined ? [most, ...ladder.filter(rung => rung < most)] : [most]
  const usual = settings.context === undefined ? Math.min(defaultContext, most) : most
  const long = contexts.filter(context => context >= usual)
  const short = contexts.filter(context => context < usual)
  const parallels = settings.parallel === undefined ? (chats ? defaultParallel : [1]) : [settings.parallel]
  const all = memory.gpu > 0 ? shape.blockCount + 1 : 0
  const layers = Math.min(settings.gpuLayers ?? all, all)
  const fewer = settings.gpuLayers === undefined ? Array.from({ length: all }, (_, less) => all - 1 - less) : []

  for (const context of long) for (const parallel of parallels) yield { gpuLayers: layers, context, parallel, kvType }
  for (const gpuLayers of fewer) for (const parallel of parallels) yield { gpuLayers, context: usual, parallel, kvType }
  for (const context of short)
    for (const parallel of parallels) yield { gpuLayers: fewer.at(-1) ?? layers, context, parallel, kvType }
}

/** Whether the engine generates text, for which the number of requests at a time can be chosen. */
export const writes = (tasks: readonly Task[]): boolean => isFor(tasks, 'chat', 'complete')

function contextsOf(
  { classifier }: ModelShape,
  { tasks, isServer }: SizingSettings,
  { context, encoderContext, parallel, batch }: Pick<Sizing, 'context' | 'encoderContext' | 'parallel' | 'batch'>,
): ContextShape[] {
  if (isServer)
    return writes(tasks)
      ? [{ tokens: context, sequences: parallel, batch }]
      : [{ tokens: encoderContext, sequences: parallel, batch: encoderContext }]
  const contexts: ContextShape[] = []
  if (writes(tasks)) contexts.push({ tokens: context, sequences: parallel, batch: Math.max(batch, parallel), spare: 1 })
  // An encoder must compute a text in one batch, and a text must be shorter than its context.
  const encoder = { tokens: encoderContext + 1, sequences: 1, batch: encoderContext + 1 }
  const scores = isFor(tasks, 'score')
  if (isFor(tasks, 'embed') || (scores && !classifier)) contexts.push(encoder)
  if (isFor(tasks, 'rerank') || (scores && classifier)) contexts.push(encoder)
  return contexts
}

/**
 * If flash attention is uncertain, memory is counted without it. llama-server uses it wherever the model allows it; of
 * node-llama-cpp 3.22 this is known for fewer models.
 */
const hasFlash = ({ architecture, keyLength, valueLength }: ModelShape, { isServer }: SizingSettings): boolean =>
  architecture !== 'grok' && (isServer === true || (architecture !== 'gemma2' && keyLength === valueLength))

const usesFlash = (shape: ModelShape, settings: SizingSettings): boolean => {
  const { flashAttention = 'auto' } = settings
  return flashAttention === 'on' || (flashAttention === 'auto' && hasFlash(shape, settings))
}

/** Whether a cache with numbers of fewer bits surely works: with flash attention, and heads of whole blocks of numbers. */
export const takesSmallCache = (shape: ModelShape, settings: SizingSettings): boolean =>
  usesFlash(shape, settings) && cacheFault(shape, { ...settings, kvType: 'q8_0' }) === null

/** Describes the choice and its memory as a sentence. */
function reasonOf(made: Sizing, { blockCount, contextLength }: ModelShape, memory: AvailableMemory) {
  const { gpuLayers, context, parallel, kvType, need } = made
  const layers = blockCount + 1
  const trained = contextLength !== null && context < contextLength ? ` (trained for ${contextLength})` : ''
  const cache = need.cache > 0 ? `, ${formatBytes(need.cache)} of ${kvType} cache` : ''
  const parts = `${formatBytes(need.weights)} of weights${cache}, ${formatBytes(need.buffers)} of buffers`
  const where =
    gpuLayers === 0
      ? `on the CPU: ${formatBytes(need.cpu)} of ${formatBytes(memory.cpu)}`
      : `${gpuLayers === layers ? `all ${layers}` : `${gpuLayers} of ${layers}`} layers on the GPU: ${formatBytes(need.gpu)} of ${formatBytes(memory.gpu)} there, ${formatBytes(need.cpu)} of main memory`
  return `${parallel} × ${context} tokens${trained}, ${where} (${parts}).`
}

/** The Failure for a model that does not fit, with the numbers of the smallest choice that the settings allow. */
export class SizingRefusal extends Failure {
  readonly need: Need

  /** `fits` checks another choice. */
  constructor(least: Sizing, memory: AvailableMemory, fits: (change: Partial<SizingChoice>) => boolean) {
    super('invalid_value', sentence(least, memory, fits), { param: 'context_length' })
    this.need = least.need
  }
}

function sentence(least: Sizing, memory: AvailableMemory, fits: (change: Partial<SizingChoice>) => boolean): string {
  const { need, gpuLayers, context, parallel } = least
  const cache = need.cache > 0 ? ` and ${formatBytes(need.cache)} for ${parallel} × ${context} tokens` : ''
  const short =
    need.gpu > memory.gpu
      ? `${gpuLayers} layers need ${formatBytes(need.gpu)} on the GPU, of which ${formatBytes(memory.gpu)} can be had`
      : `it needs ${formatBytes(need.cpu)} of main memory, of which ${formatBytes(memory.cpu)} can be had`
  const split =
    memory.gpu > 0 && gpuLayers === 0 ? `, and no split with ${formatBytes(memory.gpu)} of the GPU does` : ''
  const ways = waysOf(least, fits)
  const advice =
    ways.length > 0
      ? `It would fit with ${ways.join(', or ')}.`
      : 'No setting makes it fit: take a smaller model, a stronger quantisation, or a machine with more memory.'
  return `The model does not fit: ${short}${split} (${formatBytes(need.weights)} of weights${cache}). ${advice}`
}

function waysOf(least: Sizing, fits: (change: Partial<SizingChoice>) => boolean): string[] {
  const ways: string[] = []
  const context = greatest(1, Math.floor(least.context / 256) - 1, units => fits({ context: units * 256 })) * 256
  if (context > 0) ways.push(`context_length: ${context}`)
  const parallel = greatest(1, least.parallel - 1, count => fits({ parallel: count }))
  if (parallel > 0) ways.push(`concurrency: ${parallel}`)
  const type = kvTypes.find(kvType => kvType !== 'f16' && kvType !== least.kvType && fits({ kvType }))
  if (type && least.need.cache > 0) ways.push(`kv_type: ${type}`)
  const layers = greatest(0, least.gpuLayers - 1, gpuLayers => fits({ gpuLayers }))
  if (least.gpuLayers > 0 && fits({ gpuLayers: layers })) ways.push(`gpu_layers: ${layers}`)
  return ways
}

/** Binary search: the greatest number from `low` to `high` for which `holds` is true; `low - 1` if there is none. */
function greatest(low: number, high: number, holds: (value: number) => boolean): number {
  let [good, bad] = [low - 1, high + 1]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (holds(middle)) good = middle
    else bad = middle
  }
  return good
}

/** Formats bytes for a sentence. */
export const formatBytes = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.ceil(bytes / 2 ** 20)} MiB`
