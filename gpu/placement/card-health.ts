import type { Log } from '../../core/log.ts'
import { type Device, type Discovery, noReadings } from '../devices/device.ts'

/** Why a card is not used. */
export interface CardFault {
  /** A sentence that does not name the card. */
  reason: string
  /** Whether programs on the card cannot work any more: they are killed. Otherwise they end their requests. */
  isFatal: boolean
}

interface Known extends CardFault {
  retryAt: number
}

/** Milliseconds until a card with a fault is tried again; doubled with each further fault within the hour. */
const firstPauseMs = { gone: 5_000, faulty: 60_000 }
const longestPauseMs = 30 * 60_000
const forgottenAfterMs = 60 * 60_000

/**
 * The faults of the cards. A card with a fault gets no engine until it has answered again after a pause, which grows with
 * each fault. `changed` is called with the cards that have got one.
 */
export function openCardHealth(
  log: Pick<Log, 'warn' | 'info'>,
  changed: (id: string, fault: CardFault) => void,
  now: () => number = () => performance.now(),
) {
  const faults = new Map<string, Known>()
  const counted = new Map<string, { count: number; at: number }>()
  /** The models that failed on each card by an error of the GPU, since an engine was last ready there. */
  const failedModels = new Map<string, Set<string>>()

  function fail(id: string, fault: CardFault, firstMs: number): void {
    const known = faults.get(id)
    if (known) {
      // Still the same fault: it is tried again later, and is said once.
      known.retryAt = Math.max(known.retryAt, now() + firstMs)
      return
    }
    const before = counted.get(id)
    const count = before && now() - before.at < forgottenAfterMs ? before.count + 1 : 1
    counted.set(id, { count, at: now() })
    faults.set(id, { ...fault, retryAt: now() + Math.min(longestPauseMs, firstMs * 2 ** (count - 1)) })
    log.warn('A GPU is not used any more', { device: id, reason: fault.reason })
    changed(id, fault)
  }

  /** The card answers. */
  function answers(id: string): void {
    const known = faults.get(id)
    if (!known || now() < known.retryAt) return
    faults.delete(id)
    failedModels.delete(id)
    log.info('A GPU is used again', { device: id })
  }

  return {
    /**
     * Returns the cards after a measurement. Those that were known and are missing stay, without readings.
     */
    seen(before: readonly Device[], found: Discovery): Device[] {
      // A card that falls off may renumber the others.
      const devices = found.devices.map(card => {
        const same = card.uuid === null ? undefined : before.find(({ uuid }) => uuid === card.uuid)
        return same ? { ...card, id: same.id } : card
      })
      const lost = new Map(found.lost?.map(({ id, reason }) => [id, reason]))
      const missing = before.filter(({ id }) => !devices.some(card => card.id === id))
      for (const { id } of missing)
        fail(id, { reason: lost.get(id) ?? 'nvidia-smi does not list it any more.', isFatal: true }, firstPauseMs.gone)
      for (const { id } of devices) {
        const report = found.faulty?.find(one => one.id === id || id.startsWith(`${one.id}.`))
        if (report) fail(id, { reason: report.reason, isFatal: report.isFatal ?? false }, firstPauseMs.faulty)
        else answers(id)
      }
      const gone = missing.map(card => ({ ...card, ...noReadings, usedBytes: null }))
      const order = before.map(({ id }) => id)
      return [...devices, ...gone].toSorted((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
    },
    /** Why a card is not used, as a sentence that does not name it; undefined if it is. */
    faultOf: (id: string): string | undefined => faults.get(id)?.reason,
    /**
     * An engine has ended by an error of the GPU. The card is at fault if engines of two models have, and no engine works
     * there: the error of one model may be its own. `works`: whether another engine is ready there.
     */
    engineFailed(id: string, modelId: string, { works }: { works: boolean }): void {
      const models = (failedModels.get(id) ?? new Set()).add(modelId)
      failedModels.set(id, models)
      if (models.size > 1 && !works)
        fail(
          id,
          { reason: `Engines of ${models.size} models have failed on it by errors of the GPU.`, isFatal: true },
          firstPauseMs.faulty,
        )
    },
    /** An engine is ready on these cards. */
    engineReady(ids: readonly string[]): void {
      for (const id of ids) failedModels.delete(id)
    },
  }
}
export type CardHealth = ReturnType<typeof openCardHealth>
