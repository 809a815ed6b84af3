import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Model } from '../core/models/model.ts'

/** What an engine takes besides the weights: its runtime (a CUDA context alone is half a gigabyte) and buffers. */
const besides = { cpu: 256 * 2 ** 20, nvidia: 2 ** 30 }

/** Weights take a fifth more than their files: padding, dequantised parts, the cache of a few requests. */
const factor = 1.2

/** A folder with more entries than this is no model; what was counted by then is taken. */
const mostEntries = 10_000

/**
 * The device memory that a model will need, in bytes: what its configuration says, else from the size of its files.
 * Null when neither is known (a name on a hub, say): whoever places it then gives it a device of its own.
 */
export async function estimate(
  model: Pick<Model, 'memory' | 'source'>,
  kind: 'nvidia' | 'cpu',
): Promise<number | null> {
  if (model.memory !== undefined) return model.memory
  if (model.source === undefined) return besides[kind]
  const files = await sizeOf(model.source, { left: mostEntries })
  return files === null ? null : Math.ceil(files * factor) + besides[kind]
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
