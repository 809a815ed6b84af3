import type { GrantedEngine, SlotGrants } from '../core/models/slot-grants.ts'
import type { EngineConnections, FailureListener } from './requests/connections.ts'
import { isServing, type Resident } from './residency/model-state.ts'
import type { Residency } from './residency/residency.ts'

export interface SlotGrantsOptions {
  residency: Pick<Residency, 'find' | 'residents' | 'takeOf' | 'release'>
  connections: (engineId: string) => EngineConnections
  /** Whether a request waits for the model. */
  waits: (modelId: string) => boolean
}

/** Grants free slots to other processes. Each counts as a lease of its engine, which is then neither idle nor evicted. */
export function openSlotGrants({ residency, connections, waits }: SlotGrantsOptions) {
  let waited: (modelId: string) => void = () => {}
  const watched = new WeakSet<EngineConnections>()
  let failed: (engineId: string, ...how: Parameters<FailureListener>) => void = () => {}

  const residentOf = (engineId: string): Resident | undefined =>
    residency.residents().find(resident => resident.engineId === engineId)

  /** The engine of a model whose slots may be granted: its only one, which treats all requests alike. */
  function grantable(modelId: string): Resident | undefined {
    const state = residency.find(modelId)
    const [resident, ...others] = state?.residents ?? []
    if (!state || !resident || others.length > 0) return undefined
    const { replicas, fallbacks, adapters } = state.model
    if ((replicas.max ?? 1) > 1 || fallbacks || adapters) return undefined
    return stays(resident) ? resident : undefined
  }

  const stays = (resident: Resident): boolean => {
    const { draining, pause, alone, serves } = resident
    return (
      isServing(resident) && draining === null && pause === null && !alone && !serves.retired && serves.model.enabled
    )
  }

  /** How another process reaches an engine; undefined if it needs to know of each request. */
  function engineOf({ engineId, devices, slots, serves }: Resident): GrantedEngine | undefined {
    const { endpoint, headers, isOwnProcess, sharesFolders, unreached, ...needs } = connections(engineId).options
    if (needs.convert || needs.slots || needs.ownerOf) return undefined
    const { origin, origins, socketPath, tls } = endpoint
    return {
      engineId,
      modelId: serves.model.id,
      endpoint: { origin, origins, socketPath, tls },
      headers,
      devices,
      slots,
      isOwnProcess,
      sharesFolders,
      isChecked: unreached !== undefined,
    }
  }

  function add(resident: Resident, slots: number): void {
    const { engineId } = resident
    const own = connections(engineId)
    if (!watched.has(own)) own.watchFailures((...how) => failed(engineId, ...how))
    watched.add(own)
    resident.granted = (resident.granted ?? 0) + slots
  }

  return {
    take(modelId, part) {
      const resident = waits(modelId) ? undefined : grantable(modelId)
      const engine = resident && engineOf(resident)
      if (!engine) return undefined
      const wanted = Math.ceil((resident.slots - resident.leases) * part)
      let taken = 0
      while (taken < wanted && residency.takeOf(resident)) taken++
      if (taken === 0) return undefined
      add(resident, taken)
      return { engine, slots: taken }
    },
    mayLend({ id, fallbacks, adapters }) {
      if (fallbacks || adapters) return false
      const residents = residency.find(id)?.residents ?? []
      return residents.every(resident => resident.state !== 'ready' || engineOf(resident) !== undefined)
    },
    lend(lease) {
      const resident = residentOf(lease.engineId)
      // It may have ended since it gave the lease. The first request after a pause shows control whether the engine serves again.
      if (resident?.state !== 'ready' || resident.unreachable !== null || resident.pause !== null || resident.alone)
        return undefined
      const engine = engineOf(resident)
      if (!engine || !lease.detach) return undefined
      lease.detach()
      add(resident, 1)
      const { modelId } = engine
      return { engine, keeps: !waits(modelId) && grantable(modelId) === resident }
    },
    giveBack(engineId, slots, ranMs) {
      const resident = residentOf(engineId)
      const count = Math.min(slots, resident?.granted ?? 0)
      if (!resident || count === 0) return
      resident.granted! -= count
      for (let given = 0; given < count; given++) residency.release(resident, ranMs)
    },
    mayStay(engineId) {
      const resident = residentOf(engineId)
      return resident !== undefined && stays(resident) && !waits(resident.serves.model.id)
    },
    report(engineId, fault) {
      const requests = residentOf(engineId) && connections(engineId)
      const { options, addresses } = requests ?? {}
      if (fault === 'stuck') requests?.stalled()
      else if (fault === 'unreached') options?.unreached?.()
      else if ('address' in fault) addresses?.told(fault.address)
      else options?.pauseRequested(fault.pauseMs)
    },
    progressed(engineId, agoMs) {
      if (residentOf(engineId)) connections(engineId).progressed(agoMs)
    },
    onWait: listener => void (waited = listener),
    onFailed: listener => void (failed = listener),
    /** A request waits for the model. */
    waited: (modelId: string): void => waited(modelId),
  } satisfies SlotGrants & { waited: (modelId: string) => void }
}
