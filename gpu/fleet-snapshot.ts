import { enabledAdapters } from '../core/models/adapter.ts'
import type { FleetSnapshot, ModelActivity, ReferenceOrder, SlotQueue } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import type { Caches } from './caches/caches.ts'
import type { Clock } from './clock.ts'
import type { openEngineEffects } from './engine-effects.ts'
import type { FleetPools } from './fleet-pools.ts'
import type { DevicePauses } from './pauses/pauses.ts'
import type { Memory } from './placement/memory.ts'
import { upcomingText } from './residency/load-ahead.ts'
import {
  type Booking,
  isServing,
  type ModelState,
  type Resident,
  type RunsNext,
  slotsOf,
} from './residency/model-state.ts'
import { bookingNow } from './residency/parking.ts'
import { savesConversations } from './saved-conversations.ts'

/** What is known of a model that was not requested yet. */
export const noActivity: ModelActivity = {
  status: 'cold',
  reason: null,
  paused: false,
  etaMs: null,
  etaIsMeasured: false,
  retryMs: null,
  engineStarts: 0,
  engineFailures: 0,
}

/** The order of a queue that is not connected yet. */
export const nothingWaits: ReferenceOrder = { next: () => undefined, begin() {}, reset() {} }

/** How many slots of the model are ready, and how many are planned. `each`: those of one engine. */
export function countSlots(model: Model, each: number, residents: readonly Resident[]) {
  // Slots of engines that accept no new requests do not count.
  const takesRequests = (one: Resident) => one.serves.model.id === model.id && isServing(one) && !one.serves.retired
  return { ready: slotsOf(residents.filter(takesRequests)), planned: each * Math.max(1, model.replicas.min) }
}

/** Copies the state of the devices and the engines. */
export function copyState(
  residents: readonly Resident[],
  {
    memory,
    pools,
    engines,
    pauses,
    clock,
    runsNext,
  }: {
    memory: Pick<Memory, 'snapshot' | 'left'>
    pools: Pick<FleetPools, 'devices' | 'snapshot'>
    engines: Pick<ReturnType<typeof openEngineEffects>, 'pid' | 'command' | 'placement' | 'addresses' | 'parking'>
    pauses: Pick<DevicePauses, 'of'>
    clock: Pick<Clock, 'epoch' | 'now'>
    runsNext: RunsNext
  },
): Omit<FleetSnapshot, 'models' | 'saved'> {
  const epoch = (at: number) => Math.round(clock.epoch() - (clock.now() - at))
  return {
    pools: pools.snapshot(),
    devices: [...memory.snapshot(), ...pools.devices()].map(device => {
      const pause = pauses.of(device.id)
      return { ...device, paused: pause ? { endsAt: pause.endsAt, reason: `${device.id} ${pause.text}.` } : null }
    }),
    leftDevices: memory.left(),
    residents: residents.map(resident => ({
      ...copyBooking(bookingNow(resident)),
      engineId: resident.engineId,
      modelId: resident.serves.model.id,
      adapters: enabledAdapters(resident.serves.model).map(({ id }) => id),
      state: resident.state,
      pid: engines.pid(resident.engineId),
      command: engines.command(resident.engineId),
      placement: engines.placement(resident),
      ...(resident.placement.pool !== undefined && { pool: resident.placement.pool }),
      addresses: engines.addresses(resident.engineId),
      bookedBytes: resident.bookedBytes,
      usedBytes: resident.usedBytes,
      slots: resident.slots,
      leases: resident.leases,
      startedAt: epoch(resident.startedAt),
      takenOverAt: resident.takenOver ? epoch(resident.startedAt) : null,
      lastUsedAt: epoch(resident.lastUsedAt),
      endsAt: resident.endsAt === null ? null : epoch(resident.endsAt),
      queuedMs: resident.queuedMs,
      parking: engines.parking(resident),
      upcoming: upcomingText(runsNext(resident.serves.model.id), resident),
    })),
  }
}

const copyBooking = ({ devices, bytes, shares }: Booking) => ({ devices: [...devices], bytes, shares: [...shares] })

/** What the snapshot says where no conversations are saved. */
const nothingSaved = { conversations: 0, bytes: 0, limitBytes: 0, fault: null }

/** Copies what is saved of conversations. */
export const copySaved = (
  models: readonly Model[],
  caches: Pick<Caches, 'of' | 'total'> | undefined,
): FleetSnapshot['saved'] => ({
  ...(caches?.total() ?? nothingSaved),
  models: Object.fromEntries(
    models.flatMap(model => {
      const saved = savesConversations(model) ? caches?.of(model) : undefined
      return saved ? [[model.id, saved]] : []
    }),
  ),
})

/** Returns the models without an engine that serves them, for which synchronous callers wait. */
export const unservedModels = (
  models: readonly Model[],
  queue: Pick<SlotQueue, 'demand'> | undefined,
  find: (modelId: string) => ModelState | undefined,
): string[] =>
  models.flatMap(({ id }) => {
    const waits = (queue?.demand(id)?.interactive ?? 0) > 0
    return waits && !find(id)?.residents.some(isServing) ? [id] : []
  })
