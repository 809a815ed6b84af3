import { Failure } from '../core/failure.ts'
import type { ModelActivity, ResidentState } from '../core/fleet.ts'
import type { Model } from '../core/models/model.ts'
import type { BackoffRules, Failures } from './backoff.ts'
import { circuit } from './backoff.ts'
import { type Pace, retryAfter, untilFree, untilReady } from './pace.ts'
import type { Wanted } from './place.ts'

/** One engine that holds, is about to hold, or still holds memory. Times are on the residency's monotonic clock. */
export interface Resident {
  readonly engineId: string
  readonly line: Line
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

/** Someone who waits for a slot, or, with `slot` false, only for the model to be loaded. */
export interface Waiter {
  readonly slot: boolean
  /** Nobody is on the line for it: those go first for whom somebody is. */
  readonly background: boolean
  readonly since: number
  readonly deadline: number
  grant(resident: Resident, waitedMs: number, loadedMs: number): void
  refuse(failure: Failure): void
}

/** What somebody asks a line for, and how long he is willing to wait. */
export type LineWish = Pick<Waiter, 'slot' | 'grant' | 'refuse'> & { waitMs: number; background?: boolean }

/** One model's standing: who waits for it, which engines it has, and how it has been doing. */
export interface Line {
  model: Model
  wanted: Omit<Wanted, 'mayEvict'>
  slots: number
  residents: Resident[]
  waiting: Waiter[]
  failures: Failures | null
  pace: Pace
  /** Why it has no engine although one is wanted, as a sentence. */
  reason: string | null
  /** It can never be placed as things are. */
  refused: boolean
  /** Unloaded by hand: not kept loaded until somebody asks for it again. */
  dismissed: boolean
  /** Its model was changed or taken away: it only holds the engines that still have requests. */
  retired: boolean
  engineStarts: number
  engineFailures: number
}

export const newLine = (model: Model, wanted: Line['wanted'], slots: number): Line => ({
  model,
  wanted,
  slots,
  residents: [],
  waiting: [],
  failures: null,
  pace: { loadMs: null, runMs: null },
  reason: null,
  refused: false,
  dismissed: false,
  retired: false,
  engineStarts: 0,
  engineFailures: 0,
})

/**
 * Puts a line in the place of one whose model was changed. Who waits there waits here from now on, and if it was
 * loaded, somebody waits for this one to be loaded. Its failures are forgotten: the change may be the cure.
 */
export function succeed(before: Line, line: Line, now: number): void {
  line.waiting = before.waiting.splice(0)
  line.pace = { ...before.pace }
  line.dismissed = before.dismissed
  line.engineStarts = before.engineStarts
  line.engineFailures = before.engineFailures
  if (line.waiting.length === 0 && alive(before).length > 0 && !before.dismissed)
    line.waiting.push({
      slot: false,
      background: false,
      since: now,
      deadline: Number.POSITIVE_INFINITY,
      grant() {},
      refuse() {},
    })
}

export const newResident = (line: Line, engineId: string, devices: readonly string[], now: number): Resident => ({
  engineId,
  line,
  devices,
  slots: line.slots,
  startedAt: now,
  bytes: line.wanted.bytes,
  state: 'starting',
  phase: 'launching',
  leases: 0,
  draining: null,
  readyAt: null,
  lastUsedAt: now,
  useful: false,
})

export const alive = (line: Line): Resident[] => line.residents.filter(resident => resident.state !== 'stopping')

/** The resident that takes the next request: ready, not draining, with a free slot, the least busy of those. */
export function freeResident(line: Line): Resident | undefined {
  let best: Resident | undefined
  for (const resident of line.residents)
    if (resident.state === 'ready' && resident.draining === null && resident.leases < resident.slots)
      if (best === undefined || resident.leases < best.leases) best = resident
  return best
}

export const readyResident = (line: Line): Resident | undefined =>
  line.residents.find(resident => resident.state === 'ready' && resident.draining !== 'unload')

/** How many engines it is short of what its configuration keeps loaded. */
export const shortage = (line: Line): number =>
  line.dismissed || line.retired || !line.model.enabled ? 0 : Math.max(0, line.model.replicas.min - alive(line).length)

/** Its engine that is on its way. */
export const loading = (line: Line): Resident | undefined =>
  line.residents.find(resident => resident.state === 'starting')

/** Expected milliseconds until a newcomer could be served; null when nothing is known yet. */
export function etaOf(line: Line, now: number): number | null {
  const starting = loading(line)
  if (starting) return untilReady(line.pace, now - starting.startedAt)
  const slots = alive(line).reduce((sum, resident) => sum + resident.slots, 0)
  return slots > 0 ? untilFree(line.pace, line.waiting.length, slots) : line.pace.loadMs
}

const about = (ms: number | null): string =>
  ms === null ? '' : `; it should take about ${ms < 1500 ? 'a second' : `${Math.round(ms / 1000)} s`}`

/** Whether an engine has done what it is for, or has lived so long that its end says nothing about its start. */
export const provedItself = (resident: Resident, now: number, { provenMs }: { provenMs: number }): boolean =>
  resident.useful || (resident.readyAt !== null && now - resident.readyAt >= provenMs)

/** When a resident that does nothing may be unloaded; null for one that is busy, kept loaded, or never is. */
export function idleUntil(resident: Resident): number | null {
  const { model, dismissed } = resident.line
  if (resident.state !== 'ready' || resident.leases > 0 || model.idle_ttl === 0) return null
  if (alive(resident.line).length <= model.replicas.min && !dismissed) return null
  return resident.lastUsedAt + model.idle_ttl
}

/** How long work that nobody waits for on the line lets others pass; after that it has its turn as they do. */
const longestCourtesyMs = 30_000

/** Which of them gets the next slot: the one who came first, of those with somebody on the line where there are such. */
export function nextInLine(waiting: readonly Pick<Waiter, 'background' | 'since'>[], now: number): number {
  const [first] = waiting
  if (!first?.background || now - first.since >= longestCourtesyMs) return 0
  return Math.max(
    0,
    waiting.findIndex(waiter => !waiter.background),
  )
}

/** Hands free slots to those who wait, in the order they came; who waits only for the model gets it at once. */
export function handOut(line: Line, now: number): void {
  const ready = readyResident(line)
  if (ready && line.waiting.some(waiter => !waiter.slot)) {
    const loaded = line.waiting.filter(waiter => !waiter.slot)
    line.waiting = line.waiting.filter(waiter => waiter.slot)
    for (const waiter of loaded) waiter.grant(ready, now - waiter.since, 0)
  }
  while (line.waiting.length > 0) {
    const resident = freeResident(line)
    if (!resident) return
    const [waiter] = line.waiting.splice(nextInLine(line.waiting, now), 1) as [Waiter]
    resident.leases++
    waiter.grant(resident, now - waiter.since, loadedDuring(resident, waiter.since, now))
  }
}

/** Sends away those who wait, or those of them that are meant. */
export function refuse(line: Line, why: () => Failure, which: (waiter: Waiter) => boolean = () => true): void {
  const refused = line.waiting.filter(which)
  if (refused.length === 0) return
  line.waiting = line.waiting.filter(waiter => !refused.includes(waiter))
  const failure = why()
  for (const waiter of refused) waiter.refuse(failure)
}

/** Sends away those who have waited as long as they were willing to. */
export const refuseLate = (line: Line, now: number): void =>
  refuse(
    line,
    () => tooLate(line, now),
    waiter => waiter.deadline <= now,
  )

/** Sends away those who wait only for the model to be loaded: it is unloaded by hand, and must not come back for them. */
export const refuseLoads = (line: Line): void =>
  refuse(
    line,
    () => unloaded(line.model.id),
    waiter => !waiter.slot,
  )

/** What someone is told whose model was taken out of the configuration. */
export const notOffered = (modelId: string): Failure =>
  new Failure(
    'model_not_found',
    `The model '${modelId}' is no longer offered here. GET /std/v1/models lists those that are.`,
    {
      param: 'model',
    },
  )

/** What someone is told who waits for a model to be loaded while somebody else has it unloaded. */
const unloaded = (modelId: string): Failure =>
  new Failure('conflict', `The model '${modelId}' was unloaded before it was loaded. Load it again if it is wanted.`)

/** What someone is told who has waited as long as he was willing to. */
export function tooLate(line: Line, now: number): Failure {
  const name = `'${line.model.id}'`
  const eta = etaOf(line, now)
  const more = { retryAfterMs: retryAfter(eta), facts: { eta_seconds: eta === null ? null : Math.ceil(eta / 1000) } }
  if (loading(line)) return new Failure('model_warming_up', `Model ${name} is still loading${about(eta)}.`, more)
  if (readyResident(line))
    return new Failure('no_capacity', `All slots of ${name} are busy; none became free in time${about(eta)}.`, more)
  return new Failure('no_capacity', line.reason ?? `Model ${name} could not be loaded in time.`, more)
}

export const queueFull = (line: Line, now: number): Failure =>
  new Failure(
    'queue_full',
    `${line.waiting.length} requests wait for '${line.model.id}' already, which is the most that may (max_queue).`,
    { retryAfterMs: retryAfter(etaOf(line, now)) },
  )

/** What someone is told whose model keeps failing to start. */
export const broken = (line: Line, failures: Failures, now: number): Failure =>
  new Failure('no_capacity', `Model '${line.model.id}' cannot be started: ${failures.reason}`, {
    retryAfterMs: retryAfter(failures.retryAt - now),
  })

/** What someone is told whose model can never be placed as things are. */
export const unplaceable = (reason: string): Failure => new Failure('no_capacity', reason, { retryAfterMs: 60_000 })

export const shuttingDown = (): Failure =>
  new Failure('shutting_down', 'The server is shutting down.', { retryAfterMs: 5_000 })

/** What those are told who were waiting when a start failed. */
export const notStarted = (line: Line, failures: Failures, now: number): Failure =>
  new Failure('worker_error', `Model '${line.model.id}' cannot be started: ${failures.reason}`, {
    retryAfterMs: retryAfter(failures.retryAt - now),
  })

/** The part of a wait, `from` to `now`, that went into loading this resident. */
export const loadedDuring = (resident: Resident, from: number, now: number): number =>
  resident.readyAt === null ? 0 : Math.max(0, Math.min(resident.readyAt, now) - Math.max(resident.startedAt, from))

/** A model's line as a person may want to know it. */
export function activityOf(line: Line, now: number, rules: BackoffRules): ModelActivity {
  const open = circuit(line.failures, now, rules) === 'open'
  const ready = line.residents.some(resident => resident.state === 'ready')
  const status = !line.model.enabled
    ? 'disabled'
    : ready
      ? 'warm'
      : loading(line)
        ? 'loading'
        : open || line.refused
          ? 'unavailable'
          : 'cold'
  return {
    status,
    waiting: line.waiting.length,
    reason: ready ? null : (line.failures?.reason ?? line.reason),
    etaMs: line.waiting.length > 0 || loading(line) ? etaOf(line, now) : null,
    engineStarts: line.engineStarts,
    engineFailures: line.engineFailures,
  }
}
