import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { LlamaOptions } from 'node-llama-cpp'
import { assetPath, importVendored } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import { noCudaDriver, noVulkanDriver } from './backend.ts'
import type { NodeLlamaCpp } from './model.ts'
import type { GpuUse } from './options.ts'

/**
 * Loads one backend, loads a tiny model onto its devices and computes one token. Run it in a separate process: a
 * backend that is incompatible with the driver crashes the process instead of throwing. Throws Failure `worker_error`.
 */
export async function tryBackend(gpu: Exclude<GpuUse, 'auto'>, backends: string | undefined) {
  // Log to stderr unbuffered: the last line explains a crash.
  const { llama } = await startBackend(gpu, backends, () => ({ debug: true }))
  try {
    const model = await llama.loadModel({
      modelPath: assetPath('models/tiny-chat.gguf'),
      gpuLayers: gpu === 'off' ? 0 : 'max',
    })
    const context = await model.createContext({ contextSize: 256, threads: 1, failedCreationRemedy: false })
    for await (const _token of context.getSequence().evaluate([model.tokens.bos!])) break
    const { release } = llama.llamaCppRelease
    return { release, /** Their names. */ devices: gpu === 'off' ? [] : await llama.getGpuDeviceNames() }
  } finally {
    await llama.dispose()
  }
}

/** What it means that a backend whose libraries can be loaded does not start. */
const silentReasons: Partial<Record<GpuUse, string>> = { cuda: noCudaDriver, vulkan: noVulkanDriver }

/** Starts llama.cpp with this backend on one thread. Throws Failure `worker_error`, which says why that is not possible. */
export async function startBackend(
  gpu: Exclude<GpuUse, 'auto'>,
  backends: string | undefined,
  options: (library: NodeLlamaCpp) => Pick<LlamaOptions, 'debug' | 'logger' | 'logLevel'>,
) {
  const library = await importVendored<NodeLlamaCpp>('node-llama-cpp', backends)
  const llama = await library
    .getLlama({
      gpu: gpu === 'off' ? false : gpu,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: 1,
      ...options(library),
    })
    .catch((cause: Error) => {
      const why = whyNotLoaded(gpu, backends) ?? silentReasons[gpu] ?? cause.message
      throw new Failure('worker_error', `llama.cpp cannot be started: ${why}.`, { cause })
    })
  return { library, llama }
}

/**
 * The dynamic linker's error for the backend's library, which node-llama-cpp does not report: usually a missing library
 * of the driver. Undefined if it can be loaded.
 */
function whyNotLoaded(gpu: Exclude<GpuUse, 'auto'>, backends: string | undefined): string | undefined {
  if (gpu === 'off' || backends === undefined) return undefined
  const bins = join(backends, 'node_modules/@node-llama-cpp', `linux-x64-${gpu}`, 'bins')
  const older = join(backends, 'node_modules/@node-llama-cpp', `linux-x64-${gpu}-ext`, 'bins')
  // Loads the libraries that those below depend on, and stays loaded.
  for (const addon of librariesBelow(bins, 'llama-addon.node')) loadError(addon)
  const libraries = [bins, older].flatMap(folder => librariesBelow(folder, `libggml-${gpu}.so`))
  const reasons = libraries.map(loadError)
  return reasons.every(reason => reason !== undefined) ? reasons[0] : undefined
}

function loadError(path: string): string | undefined {
  try {
    process.dlopen({ exports: {} }, path)
    return undefined
  } catch (thrown) {
    const message = (thrown as Error).message.split('\n')[0]!
    return message.includes('did not self-register') ? undefined : message
  }
}

function librariesBelow(folder: string, name: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith(`/${name}`))
      .map(path => join(folder, path))
  } catch {
    return []
  }
}
