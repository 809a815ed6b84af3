import type { Failure, FailureCode } from '../failure.ts'

/** What happens to a job whose attempt failed. */
export type RetryDecision =
  /** Back to its place in the queue, uncharged; its model is left alone for so long. */
  | { do: 'release' }
  /** Another attempt, not before this time. */
  | { do: 'retry'; at: number }
  | { do: 'fail' }

/** The attempt never began: nothing is wrong with the job, and its model cannot take it now. */
const notBegun: ReadonlySet<FailureCode> = new Set(['no_capacity', 'model_warming_up', 'queue_full', 'shutting_down'])

/** Whether such a failure says that the attempt never began, so that it counts for nothing. */
export const neverBegan = (code: FailureCode): boolean => notBegun.has(code)

const firstBackOffMs = 1_000
const longestBackOffMs = 30_000
const longestPauseMs = 60_000

/** How long a model is left alone that could not give a slot: as long as it asks for, within bounds. */
export const pauseMs = ({ retryAfterMs }: Pick<Failure, 'retryAfterMs'>): number =>
  Math.min(Math.max(retryAfterMs ?? firstBackOffMs, 100), longestPauseMs)

/**
 * Decides from the failure alone. The back-off doubles from one second to half a minute, and `random` (0 to 1) moves it
 * by up to a quarter either way, so that jobs that failed together do not come back together. `overrun`: the job was
 * stopped because its own time was up, which would be so again.
 */
export function decideRetry(facts: {
  failure: Pick<Failure, 'code' | 'retryable' | 'retryAfterMs'>
  overrun?: boolean
  attempt: number
  maxAttempts: number
  now: number
  random: number
}): RetryDecision {
  const { failure, overrun = false, attempt, maxAttempts, now, random } = facts
  if (neverBegan(failure.code)) return { do: 'release' }
  if (overrun || !failure.retryable || attempt >= maxAttempts) return { do: 'fail' }
  const backOff = Math.min(firstBackOffMs * 2 ** (attempt - 1) * (0.75 + random / 2), longestBackOffMs)
  return { do: 'retry', at: now + Math.max(failure.retryAfterMs ?? 0, Math.round(backOff)) }
}
