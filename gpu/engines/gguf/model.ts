import { readFileSync, statSync } from 'node:fs'
import type { Llama, LlamaModel, LlamaModelOptions, Token } from 'node-llama-cpp'
import { importVendored } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import { readGgufHeader } from '../../../core/models/gguf-header.ts'
import { cpuDevice } from '../../devices/cpu.ts'
import type { GgufEngineSettings, GpuUse } from './options.ts'
import { type AvailableMemory, type Sizing, sizing } from './sizing.ts'

export type NodeLlamaCpp = typeof import('node-llama-cpp')

export type LoadedModel = Awaited<ReturnType<typeof loadModel>>

/**
 * Loads llama.cpp and the model file. Never compiles or downloads anything. `onProgress` receives 0 to 1. Throws
 * Failure `worker_error` with the file's name, `invalid_value` if the settings do not fit, or the signal's reason.
 */
export async function loadModel(
  settings: GgufEngineSettings,
  { log, onProgress, signal }: { log: Log; onProgress: (progress: number) => void; signal: AbortSignal },
) {
  const path = settings.model
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new Failure('worker_error', `There is no model file '${path}'.`)
  const header = await readGgufHeader(path).catch((cause: unknown) => {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Failure('worker_error', `The model file '${path}' cannot be loaded: ${why}`, { cause })
  })
  const library = await importVendored<NodeLlamaCpp>('node-llama-cpp', settings.backends)
  const llama = await startLlama(library, settings, log)
  try {
    signal.throwIfAborted()
    const memory = await availableMemory(llama, settings.memory)
    const sized = sizing(header, memory, settings)
    log.info('The model is sized', { model: settings.id, gpu: String(llama.gpu), why: sized.why })
    const options: LlamaModelOptions = {
      modelPath: path,
      gpuLayers: llama.gpu === false ? 0 : sized.gpuLayers,
      useMmap: settings.mmap ?? true,
      useMlock: settings.mlock ?? false,
      defaultContextFlashAttention: { auto: 'auto' as const, on: true, off: false }[sized.flashAttention],
      ...cacheOf(sized),
      onLoadProgress: onProgress,
      loadSignal: signal,
    }
    const model = await attemptNative(
      `The model file '${path}' cannot be loaded`,
      () => llama.loadModel(options),
      signal,
    )
    return {
      llama,
      model,
      library,
      sizing: sized,
      async close(): Promise<void> {
        await model.dispose()
        await llama.dispose()
      },
    }
  } catch (error) {
    await llama.dispose()
    throw error
  }
}

/** A token to test a context with. */
export const firstToken = ({ tokens }: LlamaModel): Token => tokens.bos ?? tokens.eos ?? (0 as Token)

/** Starts llama.cpp with the given backend; `auto` leaves the choice to node-llama-cpp. */
function startLlama(library: NodeLlamaCpp, { gpu, threads }: { gpu: GpuUse; threads: number }, log: Log) {
  return attemptNative('llama.cpp cannot be started', () =>
    library.getLlama({
      gpu: gpu === 'off' ? false : gpu,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: threads,
      logLevel: library.LlamaLogLevel.error,
      logger: (level, message) => log.warn('llama.cpp', { level: level, text: message.trim() }),
    }),
  )
}

/** Options for a quantized cache. The library calls them experimental, so a 16-bit cache sets none. */
const cacheOf = ({ kvType }: Sizing): Partial<LlamaModelOptions> => {
  if (kvType === 'f16') return {}
  const type = kvType === 'q8_0' ? 'Q8_0' : 'Q4_0'
  return { experimentalDefaultContextKvCacheKeyType: type, experimentalDefaultContextKvCacheValueType: type }
}

/** Runs a step of the start and converts errors to a Failure that names the step. */
export async function attemptNative<T>(what: string, run: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof Failure) throw cause
    throw new Failure('worker_error', `${what}: ${cause instanceof Error ? cause.message : String(cause)}.`, { cause })
  }
}

/** Usable share of the free memory: drivers and libraries allocate some more at run time. */
const usable = { gpu: 0.97, cpu: 0.9 }

/**
 * Returns the memory in bytes that this engine may use. `booked` is the memory reserved for it, on the GPUs if there
 * are any, else in main memory; without it, the memory that is free now.
 */
async function availableMemory(llama: Llama, booked: number | undefined): Promise<AvailableMemory> {
  const cpu = Math.floor(Math.min(available(), cpuDevice().totalBytes) * usable.cpu)
  const cards = llama.gpu === false ? 0 : (await llama.getGpuDeviceNames()).length
  // All of a booking is for this model: how much of the machine its cache may take was decided with it.
  const whole = booked === undefined ? undefined : Number.POSITIVE_INFINITY
  if (cards === 0) return { gpu: 0, cards, cpu: booked ?? cpu, whole }
  const { free, total } = await llama.getVramState()
  return { gpu: booked ?? Math.floor(free * usable.gpu), cards, cpu, whole: whole ?? total }
}

/** Main memory available without swapping, including the file cache, into which a model file is mapped. */
function available(): number {
  const kibibytes = /^MemAvailable:\s+(\d+) kB/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]
  return kibibytes === undefined ? Number.POSITIVE_INFINITY : Number(kibibytes) * 1024
}
