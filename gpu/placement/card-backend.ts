import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import { type BackendName, backendNames, useOf } from '../engines/gguf/backend.ts'
import { backendsFolder, searchBackends } from '../engines/gguf/backend-search.ts'
import type { Backend } from '../presets/preset.ts'
import type { Wrapper } from '../sandbox/wrapper.ts'
import type { Memory } from './memory.ts'

/**
 * Finds the backend (CUDA or Vulkan) by which the built-in engine can use the cards. Each value of the model's `gpu`
 * setting is tried once, when the first such model may get a card; results of earlier runs are reused.
 */
export function openCardBackends(options: {
  dataDir: string
  environment: Readonly<Record<string, string | undefined>>
  wrapper: Wrapper
  memory: Pick<Memory, 'devices'>
  log: Log
}) {
  const { dataDir, environment, wrapper, memory, log } = options
  const searches = new Map<string, Promise<Backend | null>>()
  const found = new Map<string, Backend | null>()
  /** Why a search has found none, as a part of a sentence. */
  const faults = new Map<string, string>()

  async function search(use: 'auto' | 'cuda' | 'vulkan'): Promise<Backend | null> {
    const cards = memory.devices().filter(({ kind }) => kind === 'nvidia')
    // Vulkan cannot be restricted to one of several cards, and an engine that uses another engine's card ends both.
    const usable = (name: BackendName) => name !== 'cpu' && (name !== 'vulkan' || cards.length === 1)
    const names = backendNames.filter(name => usable(name) && (use === 'auto' || useOf[name] === use))
    const folder = backendsFolder(dataDir, environment)
    const search = { folder, devices: cards, environment, wrapper, names }
    for await (const { name, state, detail, advice, folder: at } of searchBackends(search)) {
      const gpu = useOf[name]
      if (state === 'works' && gpu !== 'off' && at !== null) {
        log.info('The built-in engine can use the GPUs', { backend: name, detail })
        return { gpu, folder: at, linked: folder }
      }
      if (state !== 'fails') continue
      log.warn('A backend for GPUs does not work on this machine', { backend: name, reason: detail, advice })
      if (!faults.has(use)) faults.set(use, `the backend '${name}' does not work (${withoutLocations(detail)})`)
    }
    return null
  }

  return {
    /** Resolves with null when the model must run on the processor. May take minutes the first time. */
    async find({ gpu = 'auto' }: Pick<Model, 'gpu'>): Promise<Backend | null> {
      if (gpu === 'off' || !memory.devices().some(({ kind }) => kind === 'nvidia')) return null
      let searching = searches.get(gpu)
      if (!searching) {
        searching = search(gpu).catch((thrown: unknown) => {
          // For example a full disk: the model can still run on the processor.
          log.warn('The backends for GPUs cannot be tried, so the built-in engine runs on the processor', {}, thrown)
          return null
        })
        searches.set(gpu, searching)
        found.set(gpu, await searching)
      }
      return searching
    },
    /** The result of a finished search; null before. */
    found: ({ gpu = 'auto' }: Pick<Model, 'gpu'>): Backend | null => found.get(gpu) ?? null,
    /** Why a finished search has found none, as a part of a sentence; null if it has found one, and before. */
    fault: ({ gpu = 'auto' }: Pick<Model, 'gpu'>): string | null =>
      found.get(gpu) === null ? (faults.get(gpu) ?? 'the built-in engine has no backend for them') : null,
  }
}
