import { Failure } from '../../../core/failure.ts'
import type { AvailableMemory, Sizing, SizingChoice } from './sizing.ts'
import { kvTypes, type Need } from './sizing-need.ts'

/** Describes the choice and its memory as a sentence. `layers` includes the output. */
export function reasonOf(
  { gpuLayers, context, parallel, kvType, need }: Sizing,
  layers: number,
  memory: AvailableMemory,
) {
  const cache = need.cache > 0 ? `, ${bytesText(need.cache)} of ${kvType} cache` : ''
  const parts = `${bytesText(need.weights)} of weights${cache}, ${bytesText(need.buffers)} of buffers`
  const where =
    gpuLayers === 0
      ? `on the CPU: ${bytesText(need.cpu)} of ${bytesText(memory.cpu)}`
      : `${gpuLayers === layers ? `all ${layers}` : `${gpuLayers} of ${layers}`} layers on the GPU: ${bytesText(need.gpu)} of ${bytesText(memory.gpu)} there, ${bytesText(need.cpu)} of main memory`
  return `${parallel} × ${context} tokens, ${where} (${parts}).`
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
  const cache = need.cache > 0 ? ` and ${bytesText(need.cache)} for ${parallel} × ${context} tokens` : ''
  const short =
    need.gpu > memory.gpu
      ? `${gpuLayers} layers need ${bytesText(need.gpu)} on the GPU, of which ${bytesText(memory.gpu)} can be had`
      : `it needs ${bytesText(need.cpu)} of main memory, of which ${bytesText(memory.cpu)} can be had`
  const split = memory.gpu > 0 && gpuLayers === 0 ? `, and no split with ${bytesText(memory.gpu)} of the GPU does` : ''
  const ways = waysOf(least, fits)
  const advice =
    ways.length > 0
      ? `It would fit with ${ways.join(', or ')}.`
      : 'No setting makes it fit: take a smaller model, a stronger quantisation, or a machine with more memory.'
  return `The model does not fit: ${short}${split} (${bytesText(need.weights)} of weights${cache}). ${advice}`
}

/** Single changes that would make it fit. */
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
const bytesText = (bytes: number): string =>
  bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.ceil(bytes / 2 ** 20)} MiB`
