import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { type Client, Unintelligible } from '../client.ts'
import { CommandFailure, exitCodes } from '../exit-codes.ts'
import { isOver, Job, jobPath } from './job.ts'
import { afterEvent, type Moment, momentOf, unknownMoment } from './moment.ts'
import { askedToWait, longestPollingMs, pollAfterMs } from './schedule.ts'

/** A server says at once how a job stands: where nothing comes, something between here and there holds events back. */
const usualFirstEventMs = 5_000
/** Servers send something every 15 s at the latest. */
const usualSilenceMs = 45_000
const answerMs = 30_000
/** A stream that lived this long was a good one: asking begins anew after it. */
const goodStreamMs = 30_000
const oddAnswers = 3

export interface Following {
  signal: AbortSignal
  onChange: (moment: Moment) => void
  /** The connection is lost (a sentence), or there again (undefined). */
  onTrouble?: (sentence: string | undefined) => void
  /** A monotonic clock in milliseconds, and waiting by it. */
  now?: () => number
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** How long a stream may be without its first event, and then without anything. Milliseconds. */
  firstEventMs?: number
  silenceMs?: number
}

/**
 * Follows a job to its end and resolves with its record, whatever the end is. Events where they come through; else by
 * asking, after 2, 5, 10, 20, 30, 30 … seconds and never sooner than the server wants. A lost connection and a server
 * that starts again do not matter: `connect` is called anew, the job is asked for by its id. Throws Failure `timeout`
 * (exit code 75) after 30 minutes of asking without an end, what the server refuses for good (no such job, a token
 * that was revoked), and the signal's reason.
 */
export async function followJob(connect: () => Client, id: string, following: Following): Promise<Job> {
  const { signal, onChange, onTrouble } = following
  const { now = () => performance.now(), wait = (ms, until) => sleep(ms, undefined, { signal: until }) } = following
  const { firstEventMs = usualFirstEventMs, silenceMs = usualSilenceMs } = following
  let moment: Moment = unknownMoment
  let lost = false
  let odd = 0

  const change = (next: Moment) => {
    moment = next
    onChange(next)
  }
  /** What was thrown, when it may be over the next time; else thrown on. */
  const passing = (thrown: unknown): Failure => {
    signal.throwIfAborted()
    const failure = Failure.from(thrown)
    odd = failure.cause instanceof Unintelligible ? odd + 1 : 0
    if (odd >= oddAnswers || !(failure.retryable || failure.status >= 500)) throw thrown
    return failure
  }
  const found = () => {
    if (lost) onTrouble?.(undefined)
    lost = false
  }
  const lose = (sentence: string) => {
    if (!lost) onTrouble?.(sentence)
    lost = true
  }

  /** Hears events as long as they come. */
  async function listen(): Promise<'over' | 'broken' | 'useless'> {
    const held = new AbortController()
    const timer = setTimeout(() => held.abort(), firstEventMs)
    let heard = false
    try {
      const both = AbortSignal.any([signal, held.signal])
      for await (const event of connect().stream(`${jobPath(id)}/events`, undefined, both, silenceMs)) {
        clearTimeout(timer)
        const after = afterEvent(moment, event)
        if (!after) continue
        heard = true
        found()
        change(after)
        if (isOver(after.status)) return 'over'
      }
      return heard ? 'broken' : 'useless'
    } catch (thrown) {
      signal.throwIfAborted()
      if (held.signal.aborted) return 'useless'
      const { status } = Failure.from(thrown)
      // A proxy that does not know the path cannot be told from a job that is not there; asking for the job will tell.
      if (status === 404 || status === 405) return 'useless'
      lose(passing(thrown).message)
      return 'broken'
    } finally {
      clearTimeout(timer)
    }
  }

  /** The record, and how long the server wants to be left alone; no record when it could not be had this time. */
  async function ask(): Promise<{ job?: Job; askedMs: number }> {
    const late = AbortSignal.timeout(answerMs)
    try {
      const { answer: job, headers } = await connect().hear({
        method: 'GET',
        path: jobPath(id),
        answer: Job,
        signal: AbortSignal.any([signal, late]),
      })
      odd = 0
      found()
      change(momentOf(job))
      return { job, askedMs: askedToWait(headers) }
    } catch (thrown) {
      signal.throwIfAborted()
      if (late.aborted) {
        lose('The server does not answer.')
        return { askedMs: 0 }
      }
      const failure = passing(thrown)
      lose(failure.message)
      return { askedMs: failure.retryAfterMs ?? 0 }
    }
  }

  let useful = true
  let reached = true
  let polls = 0
  let askedMs = 0
  let since = now()
  for (;;) {
    let over = false
    // Whoever cannot be asked cannot be listened to either.
    if (useful && reached) {
      const begunAt = now()
      const outcome = await listen()
      useful = outcome !== 'useless'
      over = outcome === 'over'
      if (now() - begunAt > goodStreamMs) {
        polls = 0
        since = now()
      }
    }
    // After an end that was heard, the record is there.
    if (!over) {
      const waitMs = pollAfterMs(polls++, askedMs)
      if (now() + waitMs - since > longestPollingMs) throw givenUp(id)
      await wait(waitMs, signal)
    }
    const answer = await ask()
    if (answer.job && isOver(answer.job.status)) return answer.job
    askedMs = answer.askedMs
    reached = answer.job !== undefined
    // Events that tell of an end that there was not are none to go by.
    if (reached && over) useful = false
  }
}

const givenUp = (id: string): Failure =>
  new CommandFailure(
    exitCodes.unfinished,
    'timeout',
    `The job ${id} has not ended after 30 minutes of asking. It goes on. Follow it again: infer job watch ${id}`,
  )
