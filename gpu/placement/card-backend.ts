import type { Log } from '../../core/log.ts'
import type { Model } from '../../core/models/model.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import type { Device } from '../devices/device.ts'
import { type BackendName, backendNames, useOf } from '../engines/gguf/backend.ts'
import { backendsFolder, cacheKey, searchBackends } from '../engines/gguf/backend-search.ts'
import type { Backend } from '../presets/preset.ts'
import type { Wrapper } from '../sandbox/wrapper.ts'
import type { Memory } from './memory.ts'
import { namedCards } from './named-cards.ts'

type Wants = Pick<Model, 'gpu'> & Partial<Pick<Model, 'id' | 'devices'>>

/**
 * Returns whether an engine can be limited to this card by a backend. Vulkan ignores CUDA_VISIBLE_DEVICES and numbers cards
 * differently, and an engine that uses another engine's card ends both; a card that is alone needs no limit.
 */
export const canLimitTo = (card: Device, gpu: Backend['gpu'], cards: readonly Device[]): boolean =>
  gpu === 'cuda' ? card.cudaId !== null : card.vulkanId !== undefined || cards.length === 1

/** For how long the names are not read again that tell of new builds and drivers, milliseconds. */
const keptMs = 1_000

/**
 * Finds the backend (CUDA or Vulkan) by which the built-in engine can use the cards. It is tried when the first such model
 * may get a card, and again when the cards, their drivers or the builds have changed; results of earlier runs are reused.
 */
export function openCardBackends(options: {
  dataDir: string
  environment: Readonly<Record<string, string | undefined>>
  wrapper: Wrapper
  memory: Pick<Memory, 'devices'> & Partial<Pick<Memory, 'settled'>>
  log: Log
  /** Milliseconds; tests pass their own. */
  now?: () => number
}) {
  const { dataDir, environment, wrapper, memory, log, now = () => performance.now() } = options
  const folder = backendsFolder(dataDir, environment)
  let kept = { key: '', until: Number.NEGATIVE_INFINITY, cards: '' }
  const searches = new Map<string, { key: string; search: Promise<Backend | null> }>()
  const found = new Map<string, Backend | null>()
  /** Why a search has found none, as a part of a sentence. */
  const faults = new Map<string, string>()

  const cardsOf = () => memory.devices().filter(({ kind }) => kind !== 'cpu')

  /** What the results depend on, read again after a moment: that takes 0.4 ms, and `find` is called for every model. */
  function keyOf(devices: readonly Device[]): string {
    const at = now()
    const cards = devices.map(({ id }) => id).join()
    if (at >= kept.until || cards !== kept.cards)
      kept = { key: cacheKey({ folder, devices, environment }), until: at + keptMs, cards }
    return kept.key
  }

  /** The backends that may be tried: those by which the named cards, else any card, can be used. */
  function namesFor({ gpu: use = 'auto', id = '', devices }: Wants): BackendName[] {
    const cards = cardsOf()
    const named = Array.isArray(devices) ? namedCards(id, devices, cards) : undefined
    const own = named && 'ids' in named ? cards.filter(card => named.ids.includes(card.id)) : undefined
    return backendNames.filter(name => {
      const gpu = useOf[name]
      if (gpu === 'off' || (use !== 'auto' && use !== gpu)) return false
      return own ? own.every(card => canLimitTo(card, gpu, cards)) : cards.some(card => canLimitTo(card, gpu, cards))
    })
  }

  async function search(names: readonly BackendName[]): Promise<Backend | null> {
    faults.delete(names.join())
    for await (const { name, state, detail, advice, folder: at } of searchBackends({
      folder,
      devices: cardsOf(),
      environment,
      wrapper,
      names,
    })) {
      const gpu = useOf[name]
      if (state === 'works' && gpu !== 'off' && at !== null) {
        log.info('The built-in engine can use the GPUs', { backend: name, detail })
        return { gpu, folder: at, linked: folder }
      }
      if (state !== 'fails') continue
      log.warn('A backend for GPUs does not work on this machine', { backend: name, reason: detail, advice })
      const of = names.join()
      if (!faults.has(of)) faults.set(of, `the backend '${name}' does not work (${withoutLocations(detail)})`)
    }
    return null
  }

  return {
    /** Resolves with null when the model must run on the processor. May take minutes the first time. */
    async find(model: Wants): Promise<Backend | null> {
      await memory.settled?.()
      const names = model.gpu === 'off' ? [] : namesFor(model)
      if (names.length === 0) return null
      const of = names.join()
      const key = keyOf(cardsOf())
      let searching = searches.get(of)
      if (searching?.key !== key) {
        const begun = search(names).catch((thrown: unknown) => {
          // For example a full disk: the model can still run on the processor.
          log.warn('The backends for GPUs cannot be tried, so the built-in engine runs on the processor', {}, thrown)
          return null
        })
        searching = { key, search: begun }
        searches.set(of, searching)
        found.set(of, await begun)
      }
      return searching.search
    },
    /** The result of a finished search; null before. */
    found: (model: Wants): Backend | null =>
      (model.gpu === 'off' ? undefined : found.get(namesFor(model).join())) ?? null,
    /** Why a finished search has found none, as a part of a sentence; null if it has found one, and before. */
    fault(model: Wants): string | null {
      if (model.gpu === 'off') return null
      const of = namesFor(model).join()
      if (of === '' && cardsOf().length > 0) return 'no backend of the built-in engine can be limited to one of them'
      return found.get(of) === null ? (faults.get(of) ?? 'the built-in engine has no backend for them') : null
    },
  }
}
