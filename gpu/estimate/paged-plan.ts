import type { Model } from '../../core/models/model.ts'
import type { TransformersShape } from '../../core/models/recognition/transformers-shape.ts'
import { nodesOf } from '../../core/models/spanned-nodes.ts'
import { bookable } from '../devices/device.ts'
import { formatBytes } from '../engines/gguf/sizing.ts'
import type { PlacementTarget } from './target.ts'

/** The memory of an engine that reserves its cache when it starts, for one request of the full length at least. */
export interface PagedPlan {
  /** Tokens of one request, if the memory has no room for those of the model. */
  maxLength?: number
  /** Why, as a sentence. */
  reason?: string
  /** Bytes on all devices besides weights and cache. */
  runtimeBytes: number
  /** Bytes that it may have on each card for a larger cache; absent if the configuration names an amount. */
  most?: number
  /** How it is divided among several cards: parts of each layer, and groups of layers. */
  parallel?: ParallelSizes
}

export interface ParallelSizes {
  tensor: number
  pipeline: number
}

/** What weights and cache depend on; `weights`: bytes on the devices. */
export type PagedShape = Omit<TransformersShape, 'isWide'> & { weights: number }

/** Bytes on each card for CUDA, its libraries and CUDA graphs; on the processor for the process. */
const runtime = { gpu: 1.5 * 2 ** 30, cpu: 2 ** 30 }
/** Tokens of one step while the engine measures itself. Source: vLLM 0.26 on cards of 70 GB and more. */
const stepTokens = 8192
/** Requests of that step whose next token is chosen, with 32-bit logits and a copy of them. */
const stepRequests = 256
/** Bytes of an activation. */
const activation = 2
/** Tokens of a block of the cache, and the part of it that alignment and tables take. */
const pageTokens = 16
const cacheMargin = 1.02
/** Their presets give them 0.95 of a card at most. */
const usable = { gpu: 0.95 / bookable.gpu, cpu: 1 }
/** A context below this serves no chat; multiples of this are chosen. */
const leastLength = 2048
const lengthStep = 1024

/** Tokens for which a model without `context_length` gets further cards. */
const usualLength = 8192

/**
 * The parts of a layer must have the same number of attention heads and be on one of the `nodes`; what is left of the cards gets
 * groups of layers.
 */
function parallelSizes(cards: number, heads: number, nodes: number): ParallelSizes {
  const each = cards / nodes
  const fits = (tensor: number) => each % tensor === 0 && (heads === 0 || heads % tensor === 0)
  const tensor = Array.from({ length: each }, (_, less) => each - less).find(fits) ?? 1
  return { tensor, pipeline: cards / tensor }
}

/**
 * Plans the memory on the fewest cards that have room for the context that the model names, or a usual one. Each card gets
 * an equal part, so the smallest counts. Numbers of cards that divide the attention heads come first, because a pipeline
 * works on one request with one card at a time. `cards`: bytes of each card, largest first.
 */
export function pagedPlanOn(
  shape: PagedShape,
  model: Parameters<typeof pagedPlan>[1],
  target: PlacementTarget,
  cards: readonly number[],
): ReturnType<typeof pagedPlan> & { devices: number } {
  const counts = Array.from({ length: Math.max(1, cards.length - target.devices + 1) }, (_, at) => target.devices + at)
  const nodes = nodesOf(model)
  const pipelines = (count: number) => Number(parallelSizes(count, shape.heads, nodes).pipeline > 1)
  const wished = model.context_length ?? Math.min(shape.contextLength ?? usualLength, usualLength)
  const plans = counts
    .toSorted((a, b) => pipelines(a) - pipelines(b) || a - b)
    .map(devices => {
      const capacity = cards[devices - 1] ?? target.capacity
      return { devices, capacity, ...pagedPlan(shape, model, { ...target, devices, capacity }) }
    })
  const fitting = plans.filter(({ fits, bytes, devices, capacity }) => fits && bytes <= devices * capacity)
  const { capacity: _, ...best } =
    fitting.find(({ plan }) => (plan.maxLength ?? wished) >= wished) ?? fitting[0] ?? plans[0]!
  const parallel = best.devices > 1 ? { parallel: parallelSizes(best.devices, shape.heads, nodes) } : {}
  return { ...best, plan: { ...best.plan, ...parallel } }
}

/**
 * Plans the memory of vLLM and SGLang: weights, the cache of one request of full length, and what one step takes. If the
 * devices have no room for it, the longest context that fits is chosen, unless the model's configuration names one. Pure.
 */
export function pagedPlan(
  shape: PagedShape,
  model: Partial<Pick<Model, 'context_length' | 'args' | 'memory' | 'nodes'>>,
  target: PlacementTarget,
): { bytes: number; fits: boolean; plan: PagedPlan } {
  const { kind, devices, capacity } = target
  const given = pagedOptions(model.args ?? [])
  const tokens = given.stepTokens ?? stepTokens
  const step =
    tokens * (2 * shape.feedForwardLength + 4 * shape.embeddingLength) * activation +
    Math.min(stepRequests, tokens) * shape.vocabularySize * 8
  const runtimeBytes = Math.ceil(runtime[kind] * devices + step)
  const need = (length: number) =>
    Math.ceil(shape.weights + runtimeBytes + cacheBytes(shape, length, tokens, given.cacheBytes) * cacheMargin)
  const share = givenShare(given, target, runtimeBytes)
  const room = model.memory ?? (share === undefined ? Math.floor(capacity * devices * usable[kind]) : share * devices)
  const booked = (bytes: number) => model.memory ?? (share === undefined ? bytes : Math.ceil(share * devices))
  const fixed = given.length ?? model.context_length
  const isOurs = kind === 'gpu' && shape.causal && model.memory === undefined && share === undefined
  const own = { runtimeBytes, ...(isOurs ? { most: Math.floor(capacity * usable.gpu) } : {}) }
  const wanted = fixed ?? shape.contextLength ?? leastLength
  if (need(wanted) <= room) return { bytes: booked(need(wanted)), fits: true, plan: own }
  const units = greatest(Math.floor(wanted / lengthStep), count => need(count * lengthStep) <= room)
  const longest = units * lengthStep
  const fits = longest >= Math.min(leastLength, wanted)
  const why = `A context of ${wanted} tokens needs ${formatBytes(need(wanted))}, and ${formatBytes(room)} can be had`
  if (fixed !== undefined || !fits) {
    const instead = fits ? `; context_length: ${longest} would fit.` : '.'
    const bytes = booked(need(fits ? wanted : Math.min(leastLength, wanted)))
    return { bytes, fits: false, plan: { ...own, reason: `${why}${instead}` } }
  }
  return {
    bytes: booked(need(longest)),
    fits,
    plan: { ...own, maxLength: longest, reason: `${why}, so requests have at most ${longest} tokens.` },
  }
}

/**
 * Bytes that an engine takes of each device by a share in its arguments; undefined without one. vLLM takes that share of the
 * whole memory, whatever others use, and does not start where less is free. SGLang takes that share of what is free when it
 * starts for weights and cache, and activations and CUDA graphs besides. Source: `request_memory` of vLLM 0.26;
 * `pre_model_load_memory` of SGLang 0.5.23.
 */
function givenShare(
  { ofWhole, ofFree }: PagedOptions,
  { kind, devices, capacity, sizes }: PlacementTarget,
  runtimeBytes: number,
): number | undefined {
  const whole = capacity / bookable[kind]
  const { total, free } = sizes?.[devices - 1] ?? { total: whole, free: whole }
  // More than may be booked counts as all of it: the engine starts on a device of its own.
  if (ofWhole !== undefined) return Math.min(ofWhole, bookable[kind]) * total
  if (ofFree === undefined) return undefined
  return Math.min(free - (1 - bookable[kind]) * total, ofFree * free + runtimeBytes / devices)
}

/** Bytes of the cache of the longest request in a plan. */
export function requestCache(
  shape: PagedShape,
  { context_length, args = [] }: Partial<Pick<Model, 'context_length' | 'args'>>,
  { maxLength }: Pick<PagedPlan, 'maxLength'>,
): number {
  const given = pagedOptions(args)
  const length = maxLength ?? given.length ?? context_length ?? shape.contextLength ?? leastLength
  return Math.ceil(cacheBytes(shape, length, given.stepTokens ?? stepTokens, given.cacheBytes) * cacheMargin)
}

/** Bytes of the cache of one request; what a window keeps includes the tokens of one step. */
function cacheBytes({ causal, blockMemory }: PagedShape, length: number, step: number, bytes: number): number {
  if (!causal) return 0
  const pages = (tokens: number) => Math.ceil(tokens / pageTokens) * pageTokens
  return blockMemory.reduce((sum, { window, keys, values, state }) => {
    const kept = window === null ? length : Math.min(length, window + step)
    return sum + (keys + values) * bytes * pages(kept) + state * 4
  }, 0)
}

/** The options of vLLM and SGLang that decide memory, as the model's arguments name them. */
interface PagedOptions {
  length?: number | undefined
  /** Part of each device's whole memory. */
  ofWhole?: number | undefined
  /** Part of what is free on each device, for weights and cache. */
  ofFree?: number | undefined
  stepTokens?: number | undefined
  /** Bytes of one number of the cache. */
  cacheBytes: number
}

function pagedOptions(args: readonly string[]): PagedOptions {
  const last = (...names: string[]): string | undefined => {
    for (let at = args.length - 1; at >= 0; at--) {
      const [name, value] = /^(--[a-z-]+)=(.*)$/.exec(args[at]!)?.slice(1) ?? [args[at], args[at + 1]]
      if (names.includes(name!)) return value
    }
    return undefined
  }
  const number = (text: string | undefined): number | undefined => {
    const [, digits, unit = ''] = /^([\d.]+)([kKmM]?)$/.exec(text ?? '') ?? []
    // vLLM writes 16k for 16,000 and 16K for 16,384.
    return digits === undefined ? undefined : Number(digits) * { '': 1, k: 1000, K: 1024, m: 1e6, M: 2 ** 20 }[unit]!
  }
  return {
    length: number(last('--max-model-len', '--context-length')),
    ofWhole: number(last('--gpu-memory-utilization')),
    ofFree: number(last('--mem-fraction-static')),
    stepTokens: number(last('--max-num-batched-tokens', '--chunked-prefill-size')),
    cacheBytes: /fp8|int8/.test(last('--kv-cache-dtype') ?? '') ? 1 : 2,
  }
}

/** Binary search: the greatest count from 0 to `most` for which `holds` is true. */
function greatest(most: number, holds: (count: number) => boolean): number {
  let [good, bad] = [0, most + 1]
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2)
    if (holds(middle)) good = middle
    else bad = middle
  }
  return good
}
