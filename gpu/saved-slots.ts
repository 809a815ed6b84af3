import { createHash } from 'node:crypto'
import { stat } from 'node:fs/promises'
import type { Log } from '../core/log.ts'
import type { Caches } from './caches/caches.ts'
import { usableAdapters } from './estimate/adapters.ts'
import type { MemoryPlan } from './estimate/estimate.ts'
import type { Endpoint } from './launcher/launcher.ts'
import { type EngineSlots, openEngineSlots } from './requests/engine-slots.ts'
import { openSlotFiles } from './requests/slot-files.ts'
import { slotRoutesAt } from './requests/slot-routes.ts'
import type { Resident } from './residency/model-state.ts'

/** A model of which nothing is known, bytes: an 8B model has as much. */
const usualTokenBytes = 128 << 10

export interface SavedSlotsOptions {
  resident: Pick<Resident, 'engineId' | 'serves' | 'slots' | 'placement'>
  endpoint: Endpoint
  headers: readonly string[]
  /** Folder of its model in the caches, and that in it which the engine sees. */
  folder: string
  exchange: string
  usesCards: boolean
  caches: Pick<Caches, 'markKey' | 'ownerIn' | 'savesNothingIn'>
  log: Log
}

/** The adapters by whose places requests name them, as their files are now. */
const adapterFiles = ({ adapters }: MemoryPlan = {}) =>
  Array.fromAsync(usableAdapters(adapters), async ({ source, scale }) => {
    const file = await stat(source).catch(() => undefined)
    return [source, scale, file?.size, file?.mtimeMs]
  })

/**
 * Opens the slots of an engine that has just started. Undefined for a build that cannot do it, or that has fewer slots than
 * infer gives it requests: it is then used as any other engine.
 */
export async function openSavedSlots(options: SavedSlotsOptions): Promise<EngineSlots | undefined> {
  const { resident, endpoint, headers, folder, exchange, usesCards, caches, log } = options
  const { model } = resident.serves
  const fields = { model: model.id, engine: resident.engineId }
  const routes = slotRoutesAt(endpoint, headers)
  try {
    // With a draft model nothing is saved, so this one guesses from texts.
    const { count, build } = await routes.probe(model.speculative !== undefined)
    if (count < resident.slots) throw new Error(`It has ${count} slots and gets ${resident.slots} requests at a time.`)
    const settings = createHash('sha256')
      .update(JSON.stringify([build, usesCards, ...(await adapterFiles(resident.placement.plan))]))
      .digest('hex')
      .slice(0, 12)
    const files = openSlotFiles({ folder, exchange, settings })
    await files.read()
    const { need, context, parallel } = resident.placement.plan?.layout ?? {}
    return openEngineSlots({
      count,
      files,
      routes,
      markKey: caches.markKey,
      ownerOf: organizationId => caches.ownerIn(folder, organizationId),
      tokenBytes: need && context && parallel ? need.cache / context / parallel : usualTokenBytes,
      useless() {
        log.warn('The engine restores conversations without an effect, so none of this model is saved any more', fields)
        caches.savesNothingIn(folder)
      },
      log,
    })
  } catch (thrown) {
    log.info('The engine cannot save conversations', { ...fields, reason: (thrown as Error).message })
    return undefined
  }
}
