import { statSync } from 'node:fs'
import type { Llama, LlamaModel, LlamaModelOptions } from 'node-llama-cpp'
import { importVendored } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { GgufEngineOptions } from './options.ts'

type NodeLlamaCpp = typeof import('node-llama-cpp')

export interface LoadedModel {
  llama: Llama
  model: LlamaModel
  library: NodeLlamaCpp
  close(): Promise<void>
}

/**
 * Loads llama.cpp and the model file. Never compiles or downloads anything. `onProgress` hears 0 to 1.
 * Throws Failure `worker_error` that names the file, or the signal's reason.
 */
export async function loadModel(
  { model: path, gpu, threads }: Pick<GgufEngineOptions, 'model' | 'gpu' | 'threads'>,
  { log, onProgress, signal }: { log: Log; onProgress: (progress: number) => void; signal: AbortSignal },
): Promise<LoadedModel> {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new Failure('worker_error', `There is no model file '${path}'.`)
  const library = await importVendored<NodeLlamaCpp>('node-llama-cpp')
  const llama = await attempt('llama.cpp cannot be started', () =>
    library.getLlama({
      gpu: gpu === 'auto' ? 'auto' : false,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: threads,
      logLevel: library.LlamaLogLevel.error,
      logger: (level, message) => log.warn('llama.cpp', { level: level, text: message.trim() }),
    }),
  )
  try {
    signal.throwIfAborted()
    const options: LlamaModelOptions = { modelPath: path, onLoadProgress: onProgress, loadSignal: signal }
    const model = await attempt(`The model file '${path}' cannot be loaded`, () => llama.loadModel(options), signal)
    return {
      llama,
      model,
      library,
      async close() {
        await model.dispose()
        await llama.dispose()
      },
    }
  } catch (error) {
    await llama.dispose()
    throw error
  }
}

/** Runs a step of the start; what goes wrong becomes a Failure that says which step it was. */
export async function attempt<T>(what: string, run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof Failure) throw cause
    throw new Failure('worker_error', `${what}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause })
  }
}
