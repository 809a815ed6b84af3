import type { Failure, FailureCode } from '../failure.ts'
import type { CrashPart } from './suspects.ts'

/** What happens to a job whose attempt failed. */
export type RetryDecision =
  /** Back to its rank in the queue, uncharged, not before this time (0: at once); its model is paused. */
  | { do: 'release'; at: number }
  /** Back to its rank in the queue, uncharged: no engine has got it, or the request that ended the engine may be another one. */
  | { do: 'repeat' }
  /** Another attempt, not before this time (epoch milliseconds). */
  | { do: 'retry'; at: number }
  | { do: 'fail' }

/** The attempt never began: the job is fine, but its model cannot run it now. */
export const notBegun: ReadonlySet<FailureCode> = new Set([
  'no_capacity',
  'model_warming_up',
  'queue_full',
  'shutting_down',
])

/** Whether the failure means that the attempt never began, so that it is not charged. */
export const neverBegan = (code: FailureCode): boolean => notBegun.has(code)

/** An engine may refuse a job this often before other jobs go first: it may be the only one that is refused. */
const freeReleases = 3
const maxReleaseDelayMs = 300_000
/** How often an engine may refuse a job before the job fails: with the delays, after about eight hours. */
const maxReleases = 100

const firstBackOffMs = 1_000
const maxBackOffMs = 30_000
const maxPauseMs = 60_000

/**
 * How long to pause a model that could not give a slot: as long as its failure asks for, within limits that do not
 * apply to a time that the engine named. Milliseconds.
 */
export const pauseMs = ({ retryAfterMs, askedByEngine }: Pick<Failure, 'retryAfterMs' | 'askedByEngine'>): number =>
  Math.min(Math.max(retryAfterMs ?? firstBackOffMs, 100), askedByEngine ? Number.POSITIVE_INFINITY : maxPauseMs)

/**
 * Decides from the failure alone. The back-off doubles from one second to half a minute, and `random` (0 to 1) changes
 * it by up to a quarter either way, so that jobs that failed together do not retry together; a back-off of the failure
 * itself is taken as it is. An engine is never asked before the time that it named. `overrun`: the job was stopped at
 * its own time limit, which would happen again. `crash`: its part in the end of its engine. `releases`: how often it
 * was claimed without being charged.
 */
export function decideRetry(facts: {
  failure: Pick<Failure, 'code' | 'retryable' | 'retryAfterMs' | 'backOffMs'> & { unsent?: boolean }
  overrun?: boolean
  crash?: CrashPart
  releases?: number
  attempt: number
  maxAttempts: number
  now: number
  random: number
}): RetryDecision {
  const { failure, overrun = false, crash = 'none', releases = 0, attempt, maxAttempts, now, random } = facts
  if (neverBegan(failure.code)) {
    if (failure.code === 'shutting_down') return { do: 'release', at: 0 }
    if (releases >= maxReleases) return { do: 'fail' }
    const delayMs = Math.min(firstBackOffMs * 2 ** (releases - freeReleases), maxReleaseDelayMs)
    return { do: 'release', at: releases < freeReleases ? 0 : now + delayMs }
  }
  if ((crash === 'beside' || failure.unsent) && !overrun) return { do: 'repeat' }
  if (overrun || !failure.retryable || attempt >= maxAttempts) return { do: 'fail' }
  const backOff = Math.min(firstBackOffMs * 2 ** (attempt - 1) * (0.75 + random / 2), maxBackOffMs)
  return { do: 'retry', at: now + Math.max(failure.retryAfterMs ?? 0, failure.backOffMs ?? Math.round(backOff)) }
}

/** Whether the refusal of a slot fails the jobs of the model: it can never be loaded, and nobody can mend its files. */
export const failsJobs = ({ code, retryAfterMs }: Pick<Failure, 'code' | 'retryAfterMs'>): boolean =>
  code === 'model_load_failed' && retryAfterMs === undefined
