import type { Failure } from '../../../core/failure.ts'
import type { Fleet, FleetSnapshot, Lease, ModelActivity, SlotQueue } from '../../../core/models/fleet.ts'
import { Model } from '../../../core/models/model.ts'

interface Slots {
  count: number
  held: number
  /** The number of slots once loaded; set while it is loading. */
  planned?: number
  /** When a waiting request should get a slot. */
  etaMs?: number
}

/** What a model does whose engine is ready. */
export const warm: ModelActivity = {
  status: 'warm',
  reason: null,
  paused: false,
  etaMs: null,
  retryMs: null,
  etaIsMeasured: false,
  engineStarts: 1,
  engineFailures: 0,
}

/** Slots without engines: counted, and offered to the queue whenever one is free. */
export function slotsOnly({ slots = 32 } = {}) {
  const models = new Map<string, Slots>()
  const configured = new Map<string, Model>()
  const refusals = new Map<string, Failure>()
  let engines = 0
  let queue: SlotQueue | undefined

  function of(modelId: string): Slots {
    let one = models.get(modelId)
    if (!one) models.set(modelId, (one = { count: slots, held: 0 }))
    return one
  }

  function leaseOf(modelId: string, waitedMs: number): Lease {
    let back = false
    const release = () => {
      if (back) return
      back = true
      of(modelId).held--
      if (queue?.waits(modelId)) queue.serve(modelId)
    }
    return {
      engineId: `wkr_${++engines}`,
      modelId,
      sharesFolders: true,
      waitedMs,
      loadedMs: 0,
      othersAtEnd: undefined,
      open() {
        throw new Error('There is no engine here')
      },
      followProgress() {},
      connect() {
        throw new Error('There is no engine here')
      },
      abandoned() {},
      used: () => ({ gpuMs: 0, energyMj: null }),
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

  function demandChanged(modelId: string): void {
    const refusal = refusals.get(modelId)
    if (refusal && queue?.demand(modelId)) queue.refuse(modelId, () => refusal, Number.POSITIVE_INFINITY)
    else queue?.serve(modelId)
  }

  return {
    fleet: {
      connect: connected => void (queue = connected),
      take(modelId, waitedMs = 0) {
        const one = of(modelId)
        if (refusals.has(modelId) || one.held >= one.count) return undefined
        one.held++
        return leaseOf(modelId, waitedMs)
      },
      demandChanged,
      activity: modelId => ({
        ...warm,
        status: of(modelId).planned === undefined ? 'warm' : 'loading',
        etaMs: of(modelId).etaMs ?? null,
        retryMs: of(modelId).etaMs ?? null,
        etaIsMeasured: of(modelId).etaMs !== undefined,
      }),
      slots: modelId => {
        const { count, planned } = of(modelId)
        return planned === undefined ? { ready: count, planned: slots } : { ready: 0, planned }
      },
      snapshot: (): FleetSnapshot => ({
        devices: [],
        pools: [],
        leftDevices: [],
        saved: { conversations: 0, bytes: 0, limitBytes: 0, fault: null, models: {} },
        residents: [...models].map(([modelId, one]) => ({
          engineId: `wkr_${modelId}`,
          modelId,
          adapters: [],
          state: 'ready',
          pid: null,
          command: [],
          devices: [],
          addresses: [],
          placement: { on: 'processor', layers: null, detail: 'on the processor', advice: null, longerContext: [] },
          bytes: 0,
          shares: [],
          bookedBytes: 0,
          usedBytes: null,
          slots: one.count,
          leases: one.held,
          startedAt: 0,
          takenOverAt: null,
          lastUsedAt: 0,
          endsAt: null,
          queuedMs: null,
          parking: null,
          upcoming: null,
        })),
        models: Object.fromEntries([...models.keys()].map(modelId => [modelId, warm])),
      }),
    } satisfies Pick<Fleet, 'take' | 'demandChanged' | 'connect' | 'activity' | 'slots' | 'snapshot'>,
    models: { find: (id: string) => (gone.has(id) ? undefined : find(id)) },
    /** From now on the model gives no slot and refuses with this; undefined: it serves again. */
    refuse(modelId: string, failure: Failure | undefined): void {
      if (failure) refusals.set(modelId, failure)
      else refusals.delete(modelId)
      demandChanged(modelId)
    },
    enable(modelId: string, enabled: boolean): void {
      configured.set(modelId, Model.parse({ id: modelId, enabled }))
    },
    remove: (modelId: string): void => void gone.add(modelId),
    /** The model has no engine; one with this many slots is loading until `setSlots`. */
    load(modelId: string, { planned }: { planned: number }): void {
      Object.assign(of(modelId), { count: 0, planned })
    },
    expect: (modelId: string, etaMs: number): void => void (of(modelId).etaMs = etaMs),
    setSlots(modelId: string, count: number): void {
      of(modelId).count = count
      delete of(modelId).planned
      queue?.serve(modelId)
    },
    /** The reference order begins its next entry at this time. */
    beginReference(at: number): void {
      queue!.reference.next()
      queue!.reference.begin(at, 0)
    },
    resetReference: (): void => queue!.reference.reset(),
    free: (modelId: string): number => Math.max(0, of(modelId).count - of(modelId).held),
    held: (modelId?: string): number =>
      modelId === undefined ? [...models.values()].reduce((sum, one) => sum + one.held, 0) : of(modelId).held,
  }
}
export type SlotsOnly = ReturnType<typeof slotsOnly>
