import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readGgufHeader } from '../../core/models/gguf-header.ts'
import type { Model } from '../../core/models/model.ts'
import { type Sizing, SizingRefusal, sizing } from '../engines/gguf/sizing.ts'
import type { ModelShape } from '../engines/gguf/sizing-need.ts'

/** Bytes that an engine uses besides the weights: its runtime (a CUDA context alone is half a gigabyte) and buffers. */
export const overhead = { cpu: 256 * 2 ** 20, nvidia: 2 ** 30 }

/** Weights use a fifth more memory than their files: padding, dequantised parts, the cache of a few requests. */
const factor = 1.2

/** A folder with more entries is not a model; then the files counted so far are used. */
const maxEntries = 10_000

export interface PlacementTarget {
  kind: 'nvidia' | 'cpu'
  /** How many devices it is spread over. `capacity`: bytes that may be booked on each of them. */
  devices: number
  capacity: number
  slots: number
}

/** The fields of a model that decide its memory. */
export type Sized = Pick<Model, 'memory' | 'source'> & Partial<Pick<Model, 'comfyui'>> & EstimatedModel
/** The fields that decide the memory layout of a GGUF model. */
export type EstimatedModel = Pick<Model, 'tasks' | 'context_length'> &
  Partial<Pick<Model, 'gpu_layers' | 'flash_attention' | 'kv_type' | 'batch_size'>>

/**
 * Estimates the device memory that a model needs, in bytes: the configured value; for a GGUF file the weights, cache
 * and buffers by its header, computed as the engine does at its start; else by the size of its files. Null when the
 * size is unknown, for example for a name on a hub: the model then gets a device of its own.
 */
export async function estimate(model: Sized, target: PlacementTarget): Promise<number | null> {
  if (model.memory !== undefined) return model.memory
  if (model.source === undefined) return overhead[target.kind]
  // The source is a graph, whose size says nothing about the models in it.
  if (model.comfyui) return null
  if (/\.gguf$/i.test(model.source)) {
    // For an unreadable file the engine reports the error when it starts.
    const header = await readGgufHeader(model.source).catch(() => null)
    if (header) return ggufNeed(header, model, target).bytes
  }
  const files = await sizeOf(model.source, { left: maxEntries })
  return files === null ? null : filesNeed(files, target.kind)
}

/** Estimates the bytes that a model needs when only the size of its files is known. */
export const filesNeed = (bytes: number, kind: PlacementTarget['kind']): number =>
  Math.ceil(bytes * factor) + overhead[kind]

/**
 * Computes the bytes that a GGUF model and its engine need on this target, and the layout of the model there. When it
 * does not fit in any layout, `sizing` is null and `bytes` is the minimum that it needs.
 */
export function ggufNeed(
  header: ModelShape,
  layout: EstimatedModel,
  { kind, devices, capacity, slots }: PlacementTarget,
): { bytes: number; sizing: Sizing | null } {
  const own = overhead[kind] * devices
  const free = Math.max(0, capacity * devices - own)
  const memory =
    kind === 'cpu' ? { gpu: 0, cards: 0, cpu: free } : { gpu: free, cards: devices, cpu: Number.POSITIVE_INFINITY }
  const bytesOf = ({ gpu, cpu }: { gpu: number; cpu: number }) => (kind === 'cpu' ? cpu : gpu) + own
  try {
    const made = sizing(header, memory, {
      tasks: layout.tasks,
      context: layout.context_length,
      gpuLayers: layout.gpu_layers,
      flashAttention: layout.flash_attention,
      kvType: layout.kv_type,
      batch: layout.batch_size,
      parallel: slots,
    })
    return { bytes: bytesOf(made.need), sizing: made }
  } catch (thrown) {
    if (!(thrown instanceof SizingRefusal)) throw thrown
    return { bytes: bytesOf(thrown.need), sizing: null }
  }
}

/** Returns the least memory that a model can need, in bytes, without reading its files; 0 when nothing is known. */
export const leastBytes = async ({ memory, source }: Pick<Model, 'memory' | 'source'>): Promise<number> =>
  memory ?? (source === undefined ? null : await sizeOf(source, { left: maxEntries })) ?? 0

/** Bytes of a file, or of all files below a folder. Links are followed, because hub caches consist of them. */
async function sizeOf(path: string, budget: { left: number }): Promise<number | null> {
  if (budget.left-- <= 0) return 0
  const found = await stat(path).catch(() => null)
  if (!found) return null
  if (!found.isDirectory()) return found.size
  let sum = 0
  for (const name of await readdir(path).catch(() => [])) sum += (await sizeOf(join(path, name), budget)) ?? 0
  return sum
}
