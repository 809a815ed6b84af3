import type { Failure, FailureCode } from '../failure.ts'

/** What happens to a job whose attempt failed. */
export type RetryDecision =
  /** Back to its place in the queue, uncharged; its model is left alone for so long. */
  | { do: 'release'; coolMs: number }
  /** Another attempt, not before this time. */
  | { do: 'retry'; at: number }
  | { do: 'fail' }

/** The attempt never began: nothing is wrong with the job, and its model cannot take it now. */
const notBegun: ReadonlySet<FailureCode> = new Set(['no_capacity', 'model_warming_up', 'queue_full', 'shutting_down'])

const firstBackOffMs = 1000
const longestBackOffMs = 60_000

/**
 * Decides from the failure alone. The back-off doubles from one second to a minute, and `random` (0 to 1) takes up to
 * half of it away, so that jobs that failed together do not come back together.
 */
export function decideRetry(facts: {
  failure: Pick<Failure, 'code' | 'retryable' | 'retryAfterMs'>
  attempt: number
  maxAttempts: number
  now: number
  random: number
}): RetryDecision {
  const { failure, attempt, maxAttempts, now, random } = facts
  const asked = failure.retryAfterMs ?? 0
  if (notBegun.has(failure.code))
    return { do: 'release', coolMs: Math.min(Math.max(asked || firstBackOffMs, 100), longestBackOffMs) }
  if (!failure.retryable || attempt >= maxAttempts) return { do: 'fail' }
  const backOff = Math.min(firstBackOffMs * 2 ** (attempt - 1), longestBackOffMs)
  return { do: 'retry', at: now + Math.max(asked, Math.round(backOff * (1 - random / 2))) }
}
