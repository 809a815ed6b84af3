import { type Awaitable, awaitables } from '../dag/execution-state.ts'
import type { Failure } from '../failure.ts'
import type { ModelActivity } from '../models/fleet.ts'
import { noModelId } from '../schemas/task-table.ts'
import { deferredUntil, type JobRecord } from '../store/store.ts'
import type { Pause } from './dispatch.ts'
import { untilBegun, untilDone } from './job-durations.ts'

export const waitingReasons = [
  'model_loading',
  'queue',
  'no_capacity',
  'engine_failing',
  'not_before',
  'prompt_rewriting',
  'retry',
  'model_disabled',
  'paused',
  ...awaitables,
  'concurrency',
] as const
export type WaitingReason = (typeof waitingReasons)[number]

/** Reasons of jobs that are in no queue. */
const notQueued: ReadonlySet<WaitingReason> = new Set(['not_before', 'retry', 'prompt_rewriting', ...awaitables])

const awaiting: Record<Awaitable, string> = {
  items: 'It ends when all items of its list have ended.',
  approval: 'It ends when a person has answered.',
  event: 'It ends when its event arrives.',
  time: 'It ends at its time.',
  execution: 'It ends when the execution that it has started ends.',
}

/** The current progress of a job. */
export interface JobProgress {
  /** 0 to 1; null if the run has not reported any. */
  progress: number | null
  /** How many jobs go before it; null unless it waits and may start. */
  queuePosition: number | null
  /** Expected milliseconds until its end; null if unknown. */
  etaMs: number | null
  /** Why it is not running, as a sentence, and the expected milliseconds until it starts; null while it runs. */
  waitingFor: WaitingFor | null
}

export interface WaitingFor {
  reason: WaitingReason
  detail: string
  etaMs: number | null
  /** True if waiting does not help until the configuration or the machine changes. */
  final?: boolean
}

/** What is known about a job besides its record. */
export interface ProgressFacts {
  now: number
  /** Its run, if it is running. */
  run: { progress: number | null; ranMs: number } | undefined
  position: number | undefined
  /** Its expected duration, and the typical duration of a job of its model, milliseconds. */
  expectedMs: number | null
  typicalMs: number | null
  model: { enabled: boolean } | undefined
  activity: ModelActivity | undefined
  /** Of the model's ready engines. */
  slots: number
  freeSlots: number
  pause: Pause | undefined
}

/** Pure: computes the progress from the record and the facts. */
export function progressOf(job: JobRecord, facts: ProgressFacts): JobProgress {
  const none: JobProgress = { progress: null, queuePosition: null, etaMs: null, waitingFor: null }
  if (job.status === 'completed') return { ...none, progress: 1 }
  if (job.status === 'processing')
    return facts.run ? { ...none, progress: facts.run.progress, etaMs: untilDone(facts.run, facts.expectedMs) } : none
  if (job.status !== 'pending') return none
  const waitingFor = waiting(job, facts)
  const { etaMs: begins } = waitingFor
  return {
    progress: null,
    queuePosition: notQueued.has(waitingFor.reason) ? null : (facts.position ?? 0),
    etaMs: begins === null || facts.expectedMs === null ? null : Math.round(begins + facts.expectedMs),
    waitingFor,
  }
}

/** Pure: why the first request in the queue of a model has not begun. `facts` are those of the model. */
export const firstWaitsFor = (modelId: string, facts: ProgressFacts): WaitingFor =>
  waiting({ modelId, notBefore: 0, awaits: null, error: null, attempt: 0, claims: 0, maxAttempts: 1 }, facts, '')

/** `next` begins the sentence about busy slots. */
function waiting(
  job: Pick<JobRecord, 'modelId' | 'notBefore' | 'awaits' | 'error' | 'attempt' | 'claims' | 'maxAttempts'>,
  facts: ProgressFacts,
  next = 'It is next: ',
): WaitingFor {
  const { now, model, activity, pause, typicalMs, slots, freeSlots, position: ahead = 0 } = facts
  const name = `'${job.modelId}'`
  if (job.awaits !== null) return waits(job.awaits, awaiting[job.awaits])
  if (job.notBefore === deferredUntil)
    return waits('prompt_rewriting', 'A chat model rewrites its prompt. It is queued after that.')
  if (job.notBefore > now) {
    const etaMs = job.notBefore - now
    const refusals = job.claims - job.attempt
    if (!job.error && refusals <= 0)
      return waits('not_before', `It starts in ${about(etaMs)} at the earliest (not_before).`, etaMs)
    const why = job.error
      ? `Attempt ${job.error.attempt} of ${job.maxAttempts} failed: ${job.error.message}`
      : `It was refused ${refusals} times for lack of capacity, and lets others go first.`
    return waits('retry', `${why} It is tried again in ${about(etaMs)}.`, etaMs)
  }
  if (model && !model.enabled)
    return waits('model_disabled', `The model ${name} is disabled here. The job waits for it.`)
  const queueMs = untilBegun({ ahead, slots: Math.max(1, slots), freeMs: freeSlots > 0 ? 0 : null }, typicalMs)
  // All of its slots are free when it is loaded.
  const loaded = (etaMs: number | null) => plus(etaMs, untilBegun({ ahead, slots: 1, freeMs: 0 }, typicalMs))
  if (pause) return { ...waitingForFailure(pause.failure), etaMs: plus(pause.forMs, queueMs) }
  // Also while its engine there ends its requests. All of its slots are free when it is loaded again.
  if (activity?.paused) return waits('paused', activity.reason!, loaded(activity.etaMs))
  switch (activity?.status) {
    case 'warm': {
      // Its engines take no requests for a while.
      if (activity.reason) return waits('no_capacity', activity.reason, plus(activity.etaMs, queueMs))
      if (ahead > 0) return waits('queue', `${ahead} ${ahead === 1 ? 'job goes' : 'jobs go'} before it.`, queueMs)
      if (freeSlots > 0) return waits('queue', 'It begins at any moment.', queueMs)
      if (job.modelId === noModelId) return waits('queue', 'It is next: other steps without a model run.', queueMs)
      return waits('queue', busyText(name, slots, next), queueMs)
    }
    case 'loading': {
      // A reason while loading is that of the previous start, which failed.
      const { reason, pending, etaMs } = activity
      if (pending !== undefined) return waits('no_capacity', pendingText(name, pending))
      return waits(reason ? 'engine_failing' : 'model_loading', loadingText(name, reason), loaded(etaMs))
    }
    case 'unavailable':
      return waits('engine_failing', activity.reason ?? `The model ${name} cannot be started.`)
    default:
      return activity?.reason
        ? waits('no_capacity', activity.reason, loaded(activity.etaMs))
        : waits('model_loading', `The model ${name} is not loaded yet.`, loaded(activity?.etaMs ?? null))
  }
}

/** `reason`: why the previous start failed; null if none did. */
export const loadingText = (name: string, reason: string | null): string =>
  reason ? `The model ${name} is being started again: ${reason}` : `The model ${name} is being loaded.`

/** `pending`: why its engine does not run yet that a pool has accepted. */
export const pendingText = (name: string, pending: string): string =>
  `The engine of ${name} waits for a machine of its pool: ${pending}`

/** `before` begins the sentence. */
export const busyText = (name: string, slots: number, before = ''): string =>
  upperFirst(before + (slots === 1 ? `the slot of ${name} is busy.` : `all ${slots} slots of ${name} are busy.`))

const waits = (reason: WaitingReason, detail: string, etaMs: number | null = null): WaitingFor => ({
  reason,
  detail,
  etaMs,
})

/** Why its model could not give a slot. */
function waitingForFailure({ code, message, facts, final }: Failure): Omit<WaitingFor, 'etaMs'> {
  if (code === 'model_warming_up') return { reason: 'model_loading', detail: message }
  if (code === 'queue_full') return { reason: 'queue', detail: message }
  // Callers see an engine that cannot start as missing capacity: they should retry later.
  const failing = facts?.failed_starts !== undefined || code === 'worker_error' || code === 'model_load_failed'
  return { reason: failing ? 'engine_failing' : 'no_capacity', detail: message, ...(final ? { final } : {}) }
}

const plus = (a: number | null, b: number | null): number | null => (a === null || b === null ? null : a + b)

export const about = (ms: number): string => {
  if (ms < 1_500) return 'about a second'
  if (ms < 90_000) return `about ${Math.round(ms / 1_000)} s`
  return ms < 5_400_000 ? `about ${Math.round(ms / 60_000)} min` : `about ${Math.round(ms / 3_600_000)} h`
}

const upperFirst = (sentence: string): string => sentence.charAt(0).toUpperCase() + sentence.slice(1)
