import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { type BackendName, backendNames, useOf } from './engines/gguf/backend.ts'
import { backendsFolder } from './engines/gguf/backend-choice.ts'
import { searchBackends } from './engines/gguf/backend-search.ts'
import type { Wrapper } from './launcher/wrapper.ts'
import type { Memory } from './memory.ts'
import type { Backend } from './presets/preset.ts'

/**
 * What the built-in engine can use the cards of this machine with. Found out by trying, once for each thing that a
 * model may ask for, when a model first may get a card; what was found out by an earlier run is believed.
 */
export function openCardBackends({
  dataDir,
  environment,
  wrapper,
  memory,
  log,
}: {
  dataDir: string
  environment: Readonly<Record<string, string | undefined>>
  wrapper: Wrapper
  memory: Pick<Memory, 'devices'>
  log: Log
}) {
  const searches = new Map<string, Promise<Backend | null>>()
  const found = new Map<string, Backend | null>()

  async function search(use: 'auto' | 'cuda' | 'vulkan'): Promise<Backend | null> {
    const cards = memory.devices().filter(({ kind }) => kind === 'nvidia')
    // Vulkan cannot be held to one of several cards, and an engine on cards of another engine ends both.
    const usable = (name: BackendName) => name !== 'cpu' && (name !== 'vulkan' || cards.length === 1)
    const names = backendNames.filter(name => usable(name) && (use === 'auto' || useOf[name] === use))
    const folder = backendsFolder(dataDir, environment)
    for await (const { name, state, detail, advice, folder: at } of searchBackends({
      folder,
      devices: cards,
      environment,
      wrapper,
      names,
    })) {
      const gpu = useOf[name]
      if (state === 'works' && gpu !== 'off' && at !== null) {
        log.info('The built-in engine can use the GPUs', { backend: name, detail })
        return { gpu, folder: at, linked: folder }
      }
      if (state === 'fails') log.warn('A backend does not work here', { backend: name, reason: detail, advice })
    }
    return null
  }

  return {
    /** Resolves with null where the model has to be computed on the processor. May take minutes the first time. */
    async of({ gpu = 'auto' }: Pick<Model, 'gpu'>): Promise<Backend | null> {
      if (gpu === 'off' || !memory.devices().some(({ kind }) => kind === 'nvidia')) return null
      let searching = searches.get(gpu)
      if (!searching) {
        searching = search(gpu).catch((thrown: unknown) => {
          // No room in the cache, say: that must not keep a model from being computed at all.
          log.warn(
            'The backends for GPUs cannot be tried, so the built-in engine computes on the processor',
            {},
            thrown,
          )
          return null
        })
        searches.set(gpu, searching)
        found.set(gpu, await searching)
      }
      return searching
    },
    /** What has been found out before. */
    known: ({ gpu = 'auto' }: Pick<Model, 'gpu'>): Backend | null => found.get(gpu) ?? null,
  }
}
