import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import { Failure } from '../../core/failure.ts'
import { type Client, UnreadableAnswer } from '../client.ts'
import { CommandFailure, exitCodes } from '../exit-codes.ts'
import type { SseEvent } from '../sse.ts'
import { longestPollingMs, pollAfterMs, requestedDelayMs } from './schedule.ts'

/** A server says at once how a job stands: where nothing comes, something between here and there holds events back. */
const defaultFirstEventMs = 5_000
/** Servers send something every 15 s at the latest. */
const defaultSilenceMs = 45_000
const answerMs = 30_000
/** A stream that lived this long was a good one: asking begins anew after it. */
const stableStreamMs = 30_000
const maxUnreadableAnswers = 3

export interface FollowOptions<Snapshot> {
  signal: AbortSignal
  onChange: (snapshot: Snapshot) => void
  /** The connection is lost (a sentence), or there again (undefined). */
  onTrouble?: (sentence: string | undefined) => void
  /** A monotonic clock in milliseconds, and waiting by it. */
  now?: () => number
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** How long a stream may be without its first event, and then without anything. Milliseconds. */
  firstEventMs?: number
  silenceMs?: number
}

/** What is followed: where it is, and how what the server says of it is read. */
export interface FollowTarget<Answer, Snapshot> {
  path: string
  answer: z.ZodType<Answer>
  before: Snapshot
  /** What is known after an event; undefined for one that says nothing that is known here. */
  afterEvent: (before: Snapshot, event: SseEvent) => Snapshot | undefined
  snapshotOf: (answer: Answer) => Snapshot
  isOver: (snapshot: Snapshot) => boolean
  /** The sentence for somebody who has asked for 30 minutes. */
  givenUp: string
}

/**
 * Follows something that the server does to its end and resolves with its record, whatever the end is. Events where they
 * come through; else by asking, after 2, 5, 10, 20, 30, 30 … seconds and never sooner than the server wants. A lost
 * connection and a server that starts again do not matter: `connect` is called anew, and it is asked for by its path.
 * Throws Failure `timeout` (exit code 75) after 30 minutes of asking without an end, what the server refuses for good
 * (nothing is there, a token that was revoked), and the signal's reason.
 */
export async function followToEnd<Answer, Snapshot>(
  connect: () => Client,
  { path, answer: schema, before, afterEvent, snapshotOf, isOver, givenUp }: FollowTarget<Answer, Snapshot>,
  following: FollowOptions<Snapshot>,
): Promise<Answer> {
  const { signal, onChange, onTrouble } = following
  const { now = () => performance.now(), wait = (ms, until) => sleep(ms, undefined, { signal: until }) } = following
  const { firstEventMs = defaultFirstEventMs, silenceMs = defaultSilenceMs } = following
  let snapshot = before
  let lost = false
  let odd = 0

  const change = (next: Snapshot) => {
    snapshot = next
    onChange(next)
  }
  /** What was thrown, when it may be over the next time; else thrown on. */
  const passing = (thrown: unknown): Failure => {
    signal.throwIfAborted()
    const failure = Failure.from(thrown)
    odd = failure.cause instanceof UnreadableAnswer ? odd + 1 : 0
    if (odd >= maxUnreadableAnswers || !(failure.retryable || failure.status >= 500)) throw thrown
    return failure
  }
  const onReconnected = () => {
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
      for await (const event of connect().stream(`${path}/events`, undefined, both, silenceMs)) {
        clearTimeout(timer)
        const after = afterEvent(snapshot, event)
        if (!after) continue
        heard = true
        onReconnected()
        change(after)
        if (isOver(after)) return 'over'
      }
      return heard ? 'broken' : 'useless'
    } catch (thrown) {
      signal.throwIfAborted()
      if (held.signal.aborted) return 'useless'
      const { status } = Failure.from(thrown)
      // A proxy that does not know the path cannot be told from a thing that is not there; asking for it will tell.
      if (status === 404 || status === 405) return 'useless'
      lose(passing(thrown).message)
      return 'broken'
    } finally {
      clearTimeout(timer)
    }
  }

  /** The record, and how long the server wants to be left alone; no record when it could not be had this time. */
  async function ask(): Promise<{ found?: { answer: Answer; over: boolean }; askedMs: number }> {
    const late = AbortSignal.timeout(answerMs)
    try {
      const { answer, headers } = await connect().askWithHeaders({
        method: 'GET',
        path,
        answer: schema,
        signal: AbortSignal.any([signal, late]),
      })
      odd = 0
      onReconnected()
      const next = snapshotOf(answer)
      change(next)
      return { found: { answer, over: isOver(next) }, askedMs: requestedDelayMs(headers) }
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
      if (now() - begunAt > stableStreamMs) {
        polls = 0
        since = now()
      }
    }
    // After an end that was heard, the record is there.
    if (!over) {
      const waitMs = pollAfterMs(polls++, askedMs)
      if (now() + waitMs - since > longestPollingMs) throw new CommandFailure(exitCodes.unfinished, 'timeout', givenUp)
      await wait(waitMs, signal)
    }
    const asked = await ask()
    if (asked.found?.over) return asked.found.answer
    askedMs = asked.askedMs
    reached = asked.found !== undefined
    // Events that tell of an end that there was not are none to go by.
    if (reached && over) useful = false
  }
}
