import type { Log } from '../core/log.ts'
import type { Model } from '../core/models/model.ts'
import { optionalNames } from '../core/optional-file.ts'
import type { Clock } from './clock.ts'
import { type BackendSearch, backendsFolder, cacheKey } from './engines/gguf/backend-search.ts'
import type { openCardBackends } from './placement/card-backend.ts'
import type { Memory } from './placement/memory.ts'
import { presetOf } from './presets/presets.ts'
import type { Residency } from './residency/residency.ts'

/**
 * What changes when a driver, a card or a backend is installed or removed: what the searches for backends and devices depend
 * on, and the files of cards. Reads a few names and starts no process.
 */
const cardFacts = (search: Pick<BackendSearch, 'folder' | 'environment'>): string =>
  `${cacheKey(search)} ${optionalNames('/dev')
    .filter(name => name.startsWith('nvidia'))
    .join(' ')}`

/** Milliseconds between two looks. */
const everyMs = 5_000

/**
 * Looks whether a driver, a card or a backend has come or gone; then the cards are measured, and models of the built-in
 * engine that run on the processor and can use the cards now are placed anew: their engines end after their requests.
 * Returns the function that ends it.
 */
export function followCards(options: {
  dataDir: string
  environment: Readonly<Record<string, string | undefined>>
  memory: Pick<Memory, 'measure' | 'devices'>
  backends: Pick<ReturnType<typeof openCardBackends>, 'find'>
  models: () => readonly Model[]
  residency: Pick<Residency, 'find' | 'tick' | 'refresh'>
  /** Places a model anew. */
  stateOf: (modelId: string, anew: true) => Promise<unknown>
  log: Log
  clock: Pick<Clock, 'after'>
  /** Tests pass their own. */
  facts?: () => string
}): () => void {
  const { memory, backends, models, residency, stateOf, log, clock } = options
  const folder = backendsFolder(options.dataDir, options.environment)
  // A card may be found long after its driver, which may hang at first.
  const ids = () => memory.devices().map(({ id, name }) => `${id} ${name}`)
  const { facts = () => cardFacts({ folder, environment: options.environment }) } = options
  const allFacts = () => `${facts()} ${ids().join()}`
  let known = allFacts()
  let before = known
  let cancel = clock.after(everyMs, () => void look())
  let closed = false

  async function look(): Promise<void> {
    const now = allFacts()
    // An installation takes a while: it is over when two looks see the same.
    if (now !== known && now === before) {
      known = now
      await changed()
    }
    before = now
    if (!closed) cancel = clock.after(everyMs, () => void look())
  }

  async function changed(): Promise<void> {
    await memory.measure()
    for (const model of models()) {
      const { residents = [], placement } = residency.find(model.id) ?? {}
      const mayMove = model.enabled && presetOf(model).needsBackend && model.devices !== 'cpu'
      if (!mayMove || residents.length === 0 || placement?.kind !== 'cpu' || !(await backends.find(model))) continue
      log.info('A model moves from the processor to the GPUs', { model: model.id })
      await stateOf(model.id, true).catch((thrown: unknown) =>
        log.warn('A model cannot be moved to the GPUs', { model: model.id }, thrown),
      )
    }
    residency.tick()
    residency.refresh()
  }

  return () => {
    closed = true
    cancel()
  }
}
