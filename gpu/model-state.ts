import { Failure } from '../core/failure.ts'
import type { Demand, ModelActivity, ResidentState } from '../core/models/fleet.ts'
import type { Model } from '../core/models/model.ts'
import { retryAfter } from '../core/retry-after.ts'
import type { BackoffRules, Failures } from './backoff.ts'
import { circuit } from './backoff.ts'
import { type ExpectedDurations, untilFree, untilReady } from './expected-durations.ts'
import type { PlacementRequest } from './place.ts'

/** One engine that holds, is about to hold, or still holds memory. Times are on the residency's monotonic clock. */
export interface Resident {
  readonly engineId: string
  readonly serves: ModelState
  readonly devices: readonly string[]
  readonly slots: number
  readonly startedAt: number
  /** Booked for it: the estimate, and what was measured where that is more. */
  bytes: number
  state: ResidentState
  /** Of a starting one: waiting for others to leave, for the card to show it, or for the engine itself. */
  phase: 'clearing' | 'settling' | 'launching'
  leases: number
  /** Takes no new requests: it is another model's turn, or it is to be unloaded once its requests have ended. */
  draining: 'turn' | 'unload' | null
  readyAt: number | null
  lastUsedAt: number
  /** Whether it has done what it is for at least once. */
  useful: boolean
}

/** Somebody who waits for the model to be loaded, and takes no slot of it. */
export interface LoadWaiter {
  readonly since: number
  loaded(resident: Resident): void
  refuse(failure: Failure): void
}

/** One model as the residency sees it: its engines, who waits for it to be loaded, and how its starts have gone. */
export interface ModelState {
  model: Model
  wanted: Omit<PlacementRequest, 'mayEvict'>
  slots: number
  residents: Resident[]
  /** Those who wait for a load. Requests that wait for a slot are in the queue, which tells their demand. */
  loadWaiters: LoadWaiter[]
  failures: Failures | null
  pace: ExpectedDurations
  /** Why it has no engine although one is wanted, as a sentence. */
  reason: string | null
  /** It can never be placed as things are. */
  refused: boolean
  /** Unloaded by hand: not kept loaded until somebody asks for it again. */
  unloaded: boolean
  /** Its model was changed or taken away: it only holds the engines that still have requests. */
  retired: boolean
  engineStarts: number
  engineFailures: number
}

export const newModelState = (model: Model, wanted: ModelState['wanted'], slots: number): ModelState => ({
  model,
  wanted,
  slots,
  residents: [],
  loadWaiters: [],
  failures: null,
  pace: { loadMs: null, runMs: null },
  reason: null,
  refused: false,
  unloaded: false,
  retired: false,
  engineStarts: 0,
  engineFailures: 0,
})

/**
 * Replaces the state of a model whose configuration was changed. Whoever waited for the old one to be loaded waits for
 * the new one, which is loaded if the old one was. Failures are forgotten: the change may be the cure.
 */
export function replaceState(before: ModelState, after: ModelState, now: number): void {
  after.loadWaiters = before.loadWaiters.splice(0)
  after.pace = { ...before.pace }
  after.unloaded = before.unloaded
  after.engineStarts = before.engineStarts
  after.engineFailures = before.engineFailures
  if (after.loadWaiters.length === 0 && liveResidents(before).length > 0 && !before.unloaded)
    after.loadWaiters.push({ since: now, loaded() {}, refuse() {} })
}

export const newResident = (
  serves: ModelState,
  engineId: string,
  devices: readonly string[],
  now: number,
): Resident => ({
  engineId,
  serves,
  devices,
  slots: serves.slots,
  startedAt: now,
  bytes: serves.wanted.bytes,
  state: 'starting',
  phase: 'launching',
  leases: 0,
  draining: null,
  readyAt: null,
  lastUsedAt: now,
  useful: false,
})

export const liveResidents = (state: ModelState): Resident[] =>
  state.residents.filter(resident => resident.state !== 'stopping')

/** The resident that takes the next request: ready, not draining, with a free slot, the least busy of those. */
export function freeResident(state: ModelState): Resident | undefined {
  let best: Resident | undefined
  for (const resident of state.residents)
    if (resident.state === 'ready' && resident.draining === null && resident.leases < resident.slots)
      if (best === undefined || resident.leases < best.leases) best = resident
  return best
}

export const readyResident = (state: ModelState): Resident | undefined =>
  state.residents.find(resident => resident.state === 'ready' && resident.draining !== 'unload')

/** How many engines it is short of what its configuration keeps loaded. */
export const shortage = (state: ModelState): number =>
  state.unloaded || state.retired || !state.model.enabled
    ? 0
    : Math.max(0, state.model.replicas.min - liveResidents(state).length)

/** Its engine that is on its way. */
export const loading = (state: ModelState): Resident | undefined =>
  state.residents.find(resident => resident.state === 'starting')

/** Expected milliseconds until the last request that waits is served; null when nothing is known yet. */
export function etaOf(state: ModelState, demand: Demand | undefined, now: number): number | null {
  const starting = loading(state)
  if (starting) return untilReady(state.pace, now - starting.startedAt)
  const slots = liveResidents(state).reduce((sum, resident) => sum + resident.slots, 0)
  return slots > 0 ? untilFree(state.pace, Math.max(0, (demand?.interactive ?? 0) - 1), slots) : state.pace.loadMs
}

/** Whether an engine has done what it is for, or has lived so long that its end says nothing about its start. */
export const provedItself = (resident: Resident, now: number, { provenMs }: { provenMs: number }): boolean =>
  resident.useful || (resident.readyAt !== null && now - resident.readyAt >= provenMs)

/** When a resident that does nothing may be unloaded; null for one that is busy, kept loaded, or never is. */
export function idleUntil(resident: Resident): number | null {
  const { model, unloaded } = resident.serves
  if (resident.state !== 'ready' || resident.leases > 0 || model.idle_ttl === 0) return null
  if (liveResidents(resident.serves).length <= model.replicas.min && !unloaded) return null
  return resident.lastUsedAt + model.idle_ttl
}

/** Resolves the load of everybody who waits for one, where the model is ready. */
export function resolveLoads(state: ModelState): void {
  const ready = readyResident(state)
  if (ready) for (const waiter of state.loadWaiters.splice(0)) waiter.loaded(ready)
}

/** Refuses everybody who waits for the model to be loaded. */
export function refuseLoads(state: ModelState, failure: () => Failure): void {
  for (const waiter of state.loadWaiters.splice(0)) waiter.refuse(failure())
}

/** The failure of a request whose model was removed from the configuration. */
export const notOffered = (modelId: string): Failure =>
  new Failure(
    'model_not_found',
    `The model '${modelId}' is no longer offered here. GET /std/v1/models lists those that are.`,
    {
      param: 'model',
    },
  )

/** The failure of a load whose model is unloaded before it is ready. */
export const unloadedFirst = (modelId: string): Failure =>
  new Failure('conflict', `The model '${modelId}' was unloaded before it was loaded. Load it again if it is wanted.`)

/** The failure of a request whose model could not be started the last time. */
export const notStarted = (state: ModelState, failures: Failures, now: number): Failure =>
  new Failure('no_capacity', `Model '${state.model.id}' cannot be started: ${failures.reason}`, {
    retryAfterMs: retryAfter(failures.retryAt - now),
    facts: { failed_starts: failures.count },
  })

/** The failure of a request whose model can never be placed as things are. Stored jobs look again after a minute. */
export const unplaceable = (reason: string): Failure =>
  new Failure('no_capacity', reason, { retryAfterMs: 60_000, final: true })

export const shuttingDown = (): Failure =>
  new Failure('shutting_down', 'The server is shutting down.', { retryAfterMs: 5_000 })

/** The part of a wait, `from` to `now`, that went into loading this resident. */
export const loadedDuring = (resident: Resident, from: number, now: number): number =>
  resident.readyAt === null ? 0 : Math.max(0, Math.min(resident.readyAt, now) - Math.max(resident.startedAt, from))

/** A model's status for people and for the queue. */
export function activityOf(
  state: ModelState,
  demand: Demand | undefined,
  now: number,
  rules: BackoffRules,
): ModelActivity {
  const open = circuit(state.failures, now, rules) === 'open'
  const ready = state.residents.some(resident => resident.state === 'ready')
  const status = !state.model.enabled
    ? 'disabled'
    : ready
      ? 'warm'
      : loading(state)
        ? 'loading'
        : open || state.refused
          ? 'unavailable'
          : 'cold'
  return {
    status,
    reason: ready ? null : (state.failures?.reason ?? state.reason),
    etaMs: demand || state.loadWaiters.length > 0 || loading(state) ? etaOf(state, demand, now) : null,
    engineStarts: state.engineStarts,
    engineFailures: state.engineFailures,
  }
}
