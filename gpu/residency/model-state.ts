import { Failure, retryAfter } from '../../core/failure.ts'
import type { Demand, ResidentState } from '../../core/models/fleet.ts'
import type { Model } from '../../core/models/model.ts'
import type { StartFailures } from './backoff.ts'
import type { FirstLoad } from './first-load.ts'
import type { LongerContext, PlacementRequest } from './place.ts'

/** A pause that the engine asked for. Then one request is sent at first, and the others once the engine accepts it. */
export interface EnginePause {
  readonly until: number
  /** Whether the first request after the pause has been sent and is not refused yet. */
  probing: boolean
}

/** One engine, from the decision to start it until its process has ended. Times: the residency's monotonic clock. */
export interface Resident {
  readonly engineId: string
  readonly serves: ModelState
  /** The layout with which it is started; `longer`: it is the one on more cards. */
  readonly placement: ModelState['placement']
  readonly longer?: LongerContext | undefined
  /** Its devices; while it is parked also the processor, whose memory it then uses. */
  devices: readonly string[]
  readonly slots: number
  /** When it was decided to start or wake it, and when that began: before that, others had to end. */
  startedAt: number
  launchedAt: number | null
  /** Booked memory: the estimate, or the measurement when that is higher. */
  bytes: number
  /** The same on each of its devices. */
  shares: readonly number[]
  /** Layers on each of its devices; absent where infer does not divide them. */
  readonly layers?: readonly number[] | undefined
  /** What was booked when it was started, and what it used when that was measured last; null before. */
  readonly bookedBytes: number
  usedBytes: number | null
  state: ResidentState
  /**
   * While starting, it waits for evicted engines to end, the card to show free memory, or its own process; while parked, it
   * waits for other engines to leave the main memory (`clearing`), is giving its memory back (`parking`), or has done so.
   */
  phase: 'clearing' | 'settling' | 'launching' | 'parking' | 'parked'
  /** What it uses while it is parked; null if it was not started so that it can be. */
  parking: ParkedMemory | null
  /** What is booked while it is not parked, kept while it is. */
  awake: Booking | null
  /** Bytes of the main memory that it has got by being parked, and keeps until it ends; 0 before. */
  parkedBytes: number
  /** Its start only wakes it; or an earlier server has loaded it, and it only has to answer. */
  wakes: boolean
  takenOver: boolean
  leases: number
  /** Those of the leases that other processes have: gateway processes, and the server before. */
  granted?: number
  /** Its only lease must be alone: it gives no further slot. */
  alone: boolean
  /** Until then it gives a slot only once it is idle, to a lease that must be alone. */
  heldUntil: number
  pause: EnginePause | null
  /**
   * Why it accepts no new requests: another model is loaded first, or it will be unloaded after its requests, as somebody has
   * asked, because a device of it is paused, or because its time ends and its successor is ready.
   */
  draining: 'turn' | 'unload' | 'pause' | 'succeeded' | null
  /** When its machine ends it; null if there is no such time, or it is not known yet. */
  endsAt: number | null
  /** That time is near, so that another engine takes its place: `successor` is its id once it was started. */
  isEnding: boolean
  successor: string | null
  /**
   * Nobody listens at its address, so it gets no requests, and from `replaceAt` on another engine may be started in its place. It
   * may be dead or cut off, and is ended only when the other one shows by being ready that its pool can be reached. Null: it can be.
   */
  unreachable: { replaceAt: number } | null
  /** Milliseconds that it waited for a machine of its pool; null on this machine, before it is ready, and if it was taken over. */
  queuedMs: number | null
  readyAt: number | null
  /** It was loaded for nodes of executions that have not come yet, and has not been requested since. */
  ahead: boolean
  lastUsedAt: number
  /** Whether it has completed at least one request. */
  hasSucceeded: boolean
  /** When its model last had more requests than its other engines have slots. */
  neededAt: number
  /** How many requests its turn still owes: those that waited when it was ready. */
  owed: number
  /** Until when it stays for the callers for whom it was loaded and who are to come again: it has served nobody yet. */
  keptUntil: number
}

export type Booking = Pick<Resident, 'devices' | 'bytes' | 'shares'>

/** Bytes of the main memory, and of each of its cards, that a parked engine uses. */
export interface ParkedMemory {
  hostBytes: number
  cardBytes: number
}

/** A caller that waits until the model is loaded and takes no slot. */
export interface LoadWaiter {
  readonly since: number
  loaded(resident: Resident): void
  refuse(failure: Failure): void
}

/** How long loads and requests of one model take: moving averages in milliseconds, null before the first one. */
export interface ExpectedDurations {
  loadMs: number | null
  runMs: number | null
  /** To park one of its engines, and to wake it. */
  parkMs: number | null
  wakeMs: number | null
  /** Of its engines in each pool. */
  inPools: Readonly<Record<string, PoolDurations>>
}

/** How long an engine in a pool waits for a machine, and then takes to load: moving averages in milliseconds. */
export interface PoolDurations {
  queueMs: number
  loadMs: number
}

export const noDurations: ExpectedDurations = { loadMs: null, runMs: null, parkMs: null, wakeMs: null, inPools: {} }

/** Milliseconds that a request is assumed to take before one was completed. */
const firstRunMs = 1_000
export const expectedRunMs = ({ runMs }: ExpectedDurations): number => runMs ?? firstRunMs

/** Milliseconds of slot time that the waiting requests of a model should take. */
export const expectedWorkMs = (durations: ExpectedDurations, demand: Demand): number =>
  demand.expectedWorkMs ?? (demand.interactive + demand.background) * expectedRunMs(durations)

/** Before any load was measured here: a start of a process, and its files read at 1 GB a second. */
export const startMs = 2_000
export const bytesPerMs = 1e6
const coldLoadMs = ({ durations, firstLoad, placement }: ModelState): number =>
  durations.loadMs ?? firstLoad?.ms ?? (placement.kind === 'none' ? 0 : startMs + placement.bytes / bytesPerMs)
/**
 * Milliseconds until it is loaded: until it wakes, if an engine of it is parked. In a pool, which is the first of the model if
 * none is named, with the wait for a machine.
 */
export const expectedLoadMs = (state: ModelState, pool = state.placement.pool): number => {
  const { wakeMs, inPools } = state.durations
  if (wakeMs !== null && state.residents.some(isAsleep)) return wakeMs
  const there = pool === undefined ? undefined : inPools[pool]
  return there ? there.queueMs + there.loadMs : coldLoadMs(state)
}

/** Whether loads of this model, or of models like it, were measured. */
export const loadIsKnown = ({ durations, firstLoad }: ModelState): boolean =>
  durations.loadMs !== null || firstLoad?.isLikely === true

/** Milliseconds until a request behind `waiting` others gets one of `slots`. */
export const untilFree = (durations: ExpectedDurations, waiting: number, slots: number): number =>
  (expectedRunMs(durations) * (waiting + 1)) / slots

/** The residency's state of one model: its engines, the callers that wait for a load, and its failed starts. */
export type ModelState = ReturnType<typeof newModelState>

export const newModelState = (model: Model, placement: Omit<PlacementRequest, 'mayEvict'>, slots: number) => ({
  model,
  placement,
  slots,
  residents: [] as Resident[],
  /** Callers that wait for a load. Requests that wait for a slot are in the queue, which reports their demand. */
  loadWaiters: [] as LoadWaiter[],
  failures: null as StartFailures | null,
  /** Its last start has failed and was followed at once by another, with more memory or on other devices. */
  startedAgain: false,
  /** The devices on which its last engine failed by an error of the GPU, and until when others are preferred. */
  avoided: null as { devices: readonly string[]; until: number } | null,
  /** Bytes of each device for which its next layouts are planned: with more, its last one ran out of memory. */
  planned: null as { bytesEach: number; until: number } | null,
  /** How often an engine that could not be reached has answered again, and when the next such one is replaced at the earliest. */
  falseAlarms: null as StartFailures | null,
  /** An engine on more cards, for a longer context, has failed: the next ones get the fewest. */
  keepsFewest: false,
  durations: { ...noDurations },
  /** How long its first load should take; null where no other model was loaded before. */
  firstLoad: null as FirstLoad | null,
  /** Why it has no engine although one is needed, as a sentence. */
  reason: null as string | null,
  /** Ids of the engines whose memory it waits for. */
  waitsFor: [] as readonly string[],
  /** When these make room at the latest; null if that is not known. */
  waitsUntil: null as number | null,
  /** It waits for devices that are paused. */
  waitsForPause: false,
  /** The engines that were drained for it: it waits for these, although others may be idle for a moment. */
  claimed: [] as readonly string[],
  /** It cannot be placed with the current devices and configuration. */
  isUnplaceable: false,
  /** Why its engines are not parked any more: one could not be, or did not wake. Null before. */
  parkingFault: null as string | null,
  /** Since when it has no engine that serves, because that has left; null while it has one. And how long that lasts on average. */
  away: { since: null as number | null, usualMs: null as number | null },
  /** Unloaded by hand: `replicas.min` does not apply until the next request or load. */
  unloaded: false,
  /** It was loaded ahead for executions that still need it next, and not used since: not again. */
  wasLoadedAhead: false,
  /** Its model was changed or removed: it only holds engines that still have requests. */
  retired: false,
  engineStarts: 0,
  engineFailures: 0,
})

export const slotsOf = (residents: readonly Pick<Resident, 'slots'>[]): number =>
  residents.reduce((sum, { slots }) => sum + slots, 0)

/** Whether the other engines of its model, but those that leave, have slots for its `running` requests. */
export function isSurplus(resident: Resident, running: number, leave: ReadonlySet<string> = new Set()): boolean {
  const { serves } = resident
  const others = serves.residents.filter(other => other !== resident && isServing(other) && !leave.has(other.engineId))
  return others.length >= Math.max(1, serves.model.replicas.min) && running <= slotsOf(others)
}

export const runningOf = ({ residents }: ModelState): number => residents.reduce((sum, { leases }) => sum + leases, 0)

/** Whether it is unloaded once its requests have ended. */
export const leaves = ({ draining }: Pick<Resident, 'draining'>): boolean =>
  draining === 'unload' || draining === 'pause' || draining === 'succeeded'

/** Whether it is ready, can be reached, and is not unloaded once its requests have ended. */
export const isServing = (resident: Resident): boolean =>
  resident.state === 'ready' && resident.unreachable === null && !leaves(resident)

/** How many running executions need a model for a node that follows one which waits or runs. */
export type RunsNext = (modelId: string) => number

/** Whether an engine was loaded for nodes that have not come yet, and nobody waits for it: it leaves like an idle one. */
export const isAhead = ({ ahead, serves }: Resident, waits: (state: ModelState) => boolean): boolean =>
  ahead && serves.loadWaiters.length === 0 && !waits(serves)

/** Those that serve, or will without a further decision. */
export const liveResidents = (state: ModelState): Resident[] =>
  state.residents.filter(({ state }) => state !== 'stopping' && state !== 'parked')

export const parkedResident = ({ residents }: ModelState): Resident | undefined =>
  residents.find(({ state }) => state === 'parked')

/** Whether it is parked, or on the way back. */
export const isAsleep = ({ state, wakes }: Resident): boolean => state === 'parked' || (state === 'starting' && wakes)

/**
 * Those that can be reached, are not on a paused device, and have no successor: the model may get another engine elsewhere for
 * one that is.
 */
export const servingResidents = (state: ModelState): Resident[] =>
  liveResidents(state).filter(
    ({ draining, unreachable }) => draining !== 'pause' && draining !== 'succeeded' && unreachable === null,
  )

/** Whether `replicas.min` keeps it loaded. */
export function isKeptLoaded(resident: Resident): boolean {
  const { retired, model } = resident.serves
  const at = servingResidents(resident.serves).indexOf(resident)
  return !retired && at >= 0 && at < model.replicas.min
}

const isPaused = ({ pause }: Resident, now: number): boolean => pause !== null && (pause.probing || now < pause.until)

/**
 * When the first of the ready engines may get a request again; null if one may now, or may as soon as it accepts the
 * request that was sent after its pause.
 */
export function pausedUntil({ residents }: ModelState, now: number): number | null {
  let first = Number.POSITIVE_INFINITY
  for (const { state, pause } of residents)
    if (state === 'ready') {
      if (pause === null || pause.until <= now) return null
      first = Math.min(first, pause.until)
    }
  return Number.isFinite(first) ? first : null
}

/**
 * The least busy resident that is ready, not draining, not paused and has a free slot: it gets the next request.
 * `alone`: only an idle one.
 */
export function freeResident(state: ModelState, now: number, alone = false, preferred?: string): Resident | undefined {
  let best: Resident | undefined
  for (const resident of state.residents)
    if (hasFreeSlot(resident, now, alone)) {
      if (resident.engineId === preferred) return resident
      if (best === undefined || resident.leases < best.leases) best = resident
    }
  return best
}

/**
 * Whether the next engine gets the layout of those that are there. A parked one keeps its own, and a smaller one may be planned
 * for the next.
 */
export const keepsLayout = ({ residents, planned }: ModelState): boolean =>
  residents.some(({ state }) => planned === null || state !== 'parked')

/** Whether an engine may have one more request; `alone`: if that must be the only one. */
export const hasFreeSlot = (resident: Resident, now: number, alone = false): boolean =>
  resident.state === 'ready' &&
  resident.draining === null &&
  resident.unreachable === null &&
  !resident.alone &&
  !isPaused(resident, now) &&
  (alone ? resident.leases === 0 : resident.leases < resident.slots && now >= resident.heldUntil)

/** Holds the least busy engine for a lease that must be alone, unless another one of the model serves or waits for one. */
export function holdForOne({ residents }: ModelState, now: number, holdMs: number): void {
  const live = residents.filter(one => isServing(one) && one.draining === null)
  if (live.length === 0 || live.some(({ alone, heldUntil }) => alone || now < heldUntil)) return
  live.reduce((least, one) => (one.leases < least.leases ? one : least)).heldUntil = now + holdMs
}

const readyResident = (state: ModelState): Resident | undefined => state.residents.find(isServing)

/** How many engines there are fewer than `replicas.min`. */
export const shortage = (state: ModelState): number =>
  state.unloaded || state.retired || !state.model.enabled
    ? 0
    : Math.max(0, state.model.replicas.min - servingResidents(state).length)

/** True when an engine has completed a request, or ran so long that its end does not count as a failed start. */
export const isProven = (resident: Resident, now: number, { provenMs }: { provenMs: number }): boolean =>
  resident.hasSucceeded || (resident.readyAt !== null && now - resident.readyAt >= provenMs)

/** When an idle resident may be unloaded; null when it is busy, kept loaded, or has no `idle_ttl`. */
export function idleUntil(resident: Resident): number | null {
  const { model, unloaded } = resident.serves
  if (resident.state !== 'ready' || resident.leases > 0 || model.idle_ttl === 0) return null
  const live = liveResidents(resident.serves)
  // A successor is no further engine.
  const more = live.filter(({ engineId }) => live.some(({ successor }) => successor === engineId)).length
  if (live.length - more <= model.replicas.min && !unloaded) return null
  return resident.lastUsedAt + model.idle_ttl
}

/** Resolves all waiting loads when the model is ready. */
export function resolveLoads(state: ModelState): void {
  const ready = readyResident(state)
  if (ready) for (const waiter of state.loadWaiters.splice(0)) waiter.loaded(ready)
}

/** Refuses the loads that have waited since `by` or longer. */
export function refuseLoads(state: ModelState, failure: () => Failure, by = Number.POSITIVE_INFINITY): void {
  const refused = state.loadWaiters.filter(({ since }) => since <= by)
  state.loadWaiters = state.loadWaiters.filter(({ since }) => since > by)
  for (const waiter of refused) waiter.refuse(failure())
}

export const notOffered = (modelId: string): Failure =>
  new Failure(
    'model_not_found',
    `The model '${modelId}' is no longer offered here. GET /std/v1/models lists the available models.`,
    { param: 'model' },
  )

/** Failure of a load whose model is unloaded before it is ready. */
export const loadCancelled = (modelId: string): Failure =>
  new Failure('conflict', `The model '${modelId}' was unloaded before it was loaded. Load it again if you need it.`)

export const notStarted = (state: ModelState, failures: StartFailures, now: number): Failure =>
  new Failure('no_capacity', `Model '${state.model.id}' cannot be started: ${failures.reason}`, {
    retryAfterMs: retryAfter(failures.retryAt - now),
    facts: { failed_starts: failures.count },
  })

/**
 * Failure for a model that cannot be placed with the current devices, or whose files its engine can never load. Stored
 * jobs are tried again after a minute; without that time they fail, because only another model would help them.
 */
export const unplaceable = (reason: string, { impossible, loadFault }: ModelState['placement']): Failure =>
  loadFault && impossible === undefined
    ? new Failure('model_load_failed', reason, {
        final: true,
        ...(loadFault.lies === 'files' ? { retryAfterMs: 60_000 } : {}),
      })
    : new Failure('no_capacity', reason, { retryAfterMs: 60_000, final: true })

/** The failure of a request to a model whose engines all asked for a pause, which lasts this much longer. */
export const enginePaused = (modelId: string, retryAfterMs: number, engineText?: string): Failure =>
  new Failure('no_capacity', pauseText(modelId, retryAfterMs), { retryAfterMs, askedByEngine: true, engineText })

/** Why a model whose engines all asked for a pause takes no requests. */
export const pauseText = (modelId: string, ms: number): string =>
  `The engine of '${modelId}' takes no requests for another ${Math.ceil(ms / 1000)} s, as it has asked (Retry-After).`

export const modelsClosed = (): Failure =>
  new Failure('shutting_down', 'The server is shutting down.', { retryAfterMs: 5_000 })
