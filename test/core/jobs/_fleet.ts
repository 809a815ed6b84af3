import type { Failure } from '../../../core/failure.ts'
import type { Fleet, FleetSnapshot, Lease } from '../../../core/fleet.ts'
import { Model } from '../../../core/models/model.ts'

interface Waiter {
  give(): void
  leave(): void
  refuse(failure: Failure): void
}
interface Line {
  slots: number
  held: number
  waiting: Set<Waiter>
}

/** Slots without engines: given first come, first served, and counted. */
export function slotsOnly({ slots = 32 } = {}) {
  const lines = new Map<string, Line>()
  const configured = new Map<string, Model>()
  const refusals = new Map<string, Failure>()
  let engines = 0

  function lineOf(modelId: string): Line {
    let line = lines.get(modelId)
    if (!line) lines.set(modelId, (line = { slots, held: 0, waiting: new Set() }))
    return line
  }

  function give(modelId: string): void {
    const line = lineOf(modelId)
    for (const waiter of line.waiting) {
      if (line.held >= line.slots) return
      line.waiting.delete(waiter)
      line.held++
      waiter.give()
    }
  }

  function leaseOf(modelId: string): Lease {
    let back = false
    const release = () => {
      if (back) return
      back = true
      lineOf(modelId).held--
      give(modelId)
    }
    return {
      engineId: `wkr_${++engines}`,
      modelId,
      waitedMs: 0,
      loadedMs: 0,
      open() {
        throw new Error('There is no engine here')
      },
      release,
      [Symbol.dispose]: release,
    }
  }

  function find(id: string): Model {
    const model = configured.get(id) ?? Model.parse({ id })
    configured.set(id, model)
    return model
  }
  const gone = new Set<string>()

  return {
    fleet: {
      lease(model, { signal }) {
        const refusal = refusals.get(model.id)
        if (refusal) return Promise.reject(refusal)
        return new Promise<Lease>((resolve, reject) => {
          const waiter: Waiter = {
            give: () => resolve(leaseOf(model.id)),
            refuse: reject,
            leave() {
              lineOf(model.id).waiting.delete(waiter)
              reject(signal!.reason)
            },
          }
          signal?.addEventListener('abort', () => waiter.leave(), { once: true })
          lineOf(model.id).waiting.add(waiter)
          give(model.id)
        })
      },
      spare(modelId) {
        const line = lineOf(modelId)
        if (refusals.has(modelId) || line.waiting.size > 0 || line.held >= line.slots) return undefined
        line.held++
        return leaseOf(modelId)
      },
      snapshot: (): FleetSnapshot => ({
        devices: [],
        residents: [...lines].map(([modelId, line]) => ({
          engineId: `wkr_${modelId}`,
          modelId,
          state: 'ready',
          pid: null,
          command: [],
          devices: [],
          bytes: 0,
          slots: line.slots,
          leases: line.held,
          startedAt: 0,
          lastUsedAt: 0,
        })),
        models: Object.fromEntries(
          [...lines].map(([modelId, line]) => [
            modelId,
            {
              status: 'warm',
              waiting: line.waiting.size,
              reason: null,
              etaMs: null,
              engineStarts: 1,
              engineFailures: 0,
            } as const,
          ]),
        ),
      }),
    } satisfies Pick<Fleet, 'lease' | 'spare' | 'snapshot'>,
    models: { find: (id: string) => (gone.has(id) ? undefined : find(id)) },
    /** From now on asking for the model fails with this; undefined: no more. */
    refuse(modelId: string, failure: Failure | undefined): void {
      if (failure) refusals.set(modelId, failure)
      else refusals.delete(modelId)
      if (failure) for (const waiter of lineOf(modelId).waiting) waiter.refuse(failure)
      if (failure) lineOf(modelId).waiting.clear()
    },
    enable(modelId: string, enabled: boolean): void {
      configured.set(modelId, Model.parse({ id: modelId, enabled }))
    },
    remove: (modelId: string): void => void gone.add(modelId),
    setSlots(modelId: string, count: number): void {
      lineOf(modelId).slots = count
      give(modelId)
    },
    held: (modelId?: string): number =>
      modelId === undefined ? [...lines.values()].reduce((sum, line) => sum + line.held, 0) : lineOf(modelId).held,
    waiting: (modelId: string): number => lineOf(modelId).waiting.size,
  }
}
export type SlotsOnly = ReturnType<typeof slotsOnly>
