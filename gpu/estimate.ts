import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readGgufHeader } from '../core/models/gguf-header.ts'
import type { Model } from '../core/models/model.ts'
import { type Sizing, sizing } from './engines/gguf/sizing.ts'
import type { Shape } from './engines/gguf/sizing-need.ts'
import { SizingRefusal } from './engines/gguf/sizing-text.ts'

/** What an engine takes besides the weights: its runtime (a CUDA context alone is half a gigabyte) and buffers. */
export const overhead = { cpu: 256 * 2 ** 20, nvidia: 2 ** 30 }

/** Weights take a fifth more than their files: padding, dequantised parts, the cache of a few requests. */
const factor = 1.2

/** A folder with more entries than this is no model; what was counted by then is taken. */
const maxEntries = 10_000

/** Where a model is to be placed. */
export interface PlacementTarget {
  kind: 'nvidia' | 'cpu'
  /** How many devices it is spread over, and the bytes that may be booked on each of them. */
  devices: number
  capacity: number
  /** Requests that its engine works on at once. */
  slots: number
}

/** What the configuration says about a model's memory, and where its files are. */
export type Sized = Pick<Model, 'memory' | 'source'> & Layout
/** What of it decides how a GGUF model is laid out. */
export type Layout = Pick<Model, 'tasks' | 'context_length'> &
  Partial<Pick<Model, 'gpu_layers' | 'flash_attention' | 'kv_type' | 'batch_size'>>

/**
 * The device memory that a model will need, in bytes: what its configuration says; of a GGUF file what its header
 * says about weights, cache and buffers, by the same decision that the engine takes when it starts; else from the size
 * of its files. Null when nothing is known (a name on a hub, say): whoever places it then gives it a device of its own.
 */
export async function estimate(model: Sized, room: PlacementTarget): Promise<number | null> {
  if (model.memory !== undefined) return model.memory
  if (model.source === undefined) return overhead[room.kind]
  if (/\.gguf$/i.test(model.source)) {
    // A file that cannot be read is refused by the engine, with its own words.
    const header = await readGgufHeader(model.source).catch(() => null)
    if (header) return ggufNeed(header, model, room).bytes
  }
  const files = await sizeOf(model.source, { left: maxEntries })
  return files === null ? null : filesNeed(files, room.kind)
}

/** What a model takes of which only the size of its files is known, in bytes. */
export const filesNeed = (bytes: number, kind: PlacementTarget['kind']): number =>
  Math.ceil(bytes * factor) + overhead[kind]

/**
 * What a GGUF model takes in this room, in bytes with the engine itself, and how it is laid out there; null where it
 * does not fit in any way, and then the bytes are what it takes at the least.
 */
export function ggufNeed(
  header: Shape,
  layout: Layout,
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

/** Bytes of a file, or of all files below a folder; links are followed, for hub caches are made of them. */
async function sizeOf(path: string, budget: { left: number }): Promise<number | null> {
  if (budget.left-- <= 0) return 0
  const found = await stat(path).catch(() => null)
  if (!found) return null
  if (!found.isDirectory()) return found.size
  let sum = 0
  for (const name of await readdir(path).catch(() => [])) sum += (await sizeOf(join(path, name), budget)) ?? 0
  return sum
}
