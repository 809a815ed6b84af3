import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type TransformersShape, transformersShape } from '../../core/models/recognition/transformers-shape.ts'

/** A folder with more entries is not a model; then the files counted so far are used. */
const maxEntries = 10_000

/** Reads config.json of a local folder; null if there is none or it describes no transformer. */
export async function shapeOf(folder: string): Promise<TransformersShape | null> {
  try {
    return transformersShape(JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')))
  } catch {
    return null
  }
}

/** Weights that engines load: the usual files, else all safetensors files beside config.json, else those of PyTorch. */
const weightFiles = [/^(model|pytorch_model).*\.safetensors$/, /\.safetensors$/, /\.bin$/]

/** Bytes of the weights in a local folder, of which some have two copies in different formats; null if it has none. */
export async function weightsOf(folder: string): Promise<number | null> {
  const names = (await readdir(folder).catch(() => [])).slice(0, maxEntries)
  const loaded = weightFiles.map(pattern => names.filter(name => pattern.test(name))).find(some => some.length > 0)
  if (!loaded) return null
  const sizes = await Array.fromAsync(loaded, name => stat(join(folder, name)).catch(() => ({ size: 0 })))
  return sizes.reduce((sum, { size }) => sum + size, 0)
}

/** Bytes of a file, or of all files below a folder; null if there is none. Links are followed, because hub caches consist of them. */
export async function sizeOf(path: string, budget = { left: maxEntries }): Promise<number | null> {
  if (budget.left-- <= 0) return 0
  const found = await stat(path).catch(() => null)
  if (!found) return null
  if (!found.isDirectory()) return found.size
  let sum = 0
  for (const name of await readdir(path).catch(() => [])) sum += (await sizeOf(join(path, name), budget)) ?? 0
  return sum
}
