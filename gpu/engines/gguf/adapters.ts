import { statSync } from 'node:fs'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { Native, NativeAdapter, NativeContext } from './native.ts'
import type { AdapterFile } from './options.ts'

/** A LoRA adapter that answers can be computed with. */
export interface LoadedAdapter {
  /** The same text only for the same file with the same scale: what one has computed is not that of another. */
  key: string
  native: NativeAdapter
  scale: number
}

/**
 * Returns the adapter that a request names as its model; undefined for the model itself. Throws Failure `model_not_found`,
 * and `model_load_failed` for one that could not be loaded.
 */
export type AdapterOf = (name: string) => LoadedAdapter | undefined

/** Loads adapters. One that cannot be loaded is logged, and refuses only its own requests. */
export async function loadAdapters(
  native: Pick<Native, 'loadAdapter'>,
  id: string,
  files: readonly AdapterFile[],
  log: Log,
): Promise<AdapterOf> {
  const loaded = new Map<string, LoadedAdapter | Failure>()
  for (const { name, scale, path } of files)
    try {
      const { size, mtimeMs } = statSync(path)
      loaded.set(name, { key: `${path} ${size} ${mtimeMs} ${scale}`, native: await native.loadAdapter(path), scale })
    } catch (cause) {
      log.error('An adapter cannot be loaded', { adapter: name, file: path }, cause)
      const message = `The adapter '${name}' cannot be loaded: llama.cpp refuses its file for this model.`
      loaded.set(name, new Failure('model_load_failed', message, { cause }))
    }
  return name => {
    const adapter = loaded.get(name)
    if (adapter instanceof Failure) throw adapter
    if (adapter === undefined && loaded.size > 0 && name !== id)
      throw new Failure('model_not_found', `This engine has no adapter '${name}'.`)
    return adapter
  }
}

/** Returns a function that makes the context compute with an adapter, or without one. Call it between two batches. */
export function openAdapterUse(context: Pick<NativeContext, 'setLoras'>): (adapter: LoadedAdapter | undefined) => void {
  let used: LoadedAdapter | undefined
  return adapter => {
    if (adapter === used) return
    used = adapter
    context.setLoras(adapter ? [adapter.native] : [], adapter ? [adapter.scale] : [])
  }
}
