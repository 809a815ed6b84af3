import { setTimeout as sleep } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { type Client, dataOf } from '../client/client.ts'
import type { SseEvent } from '../client/http.ts'
import { CommandFailure, exitCodes, failureOfThrown, UnreadableAnswer } from '../terminal/exit-codes.ts'

/** The server sends the first event at once. If none arrives in this time, a proxy buffers events. Milliseconds. */
const defaultFirstEventMs = 5_000
/** The server sends at least a ping every 15 s. Milliseconds. */
const defaultSilenceMs = 45_000
const requestTimeoutMs = 30_000
/** After a stream that lasted this long, polling restarts at its shortest interval. Milliseconds. */
const stableStreamMs = 30_000
const maxUnreadableAnswers = 3

export interface FollowOptions<Snapshot> {
  signal: AbortSignal
  onChange: (snapshot: Snapshot) => void
  /** Called when the connection is lost (with a message) and when it works again (with undefined). */
  onTrouble?: (sentence: string | undefined) => void
  /** A monotonic clock in milliseconds, and a function that waits by this clock. */
  now?: () => number
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Maximum time until the first event of a stream, and then without any byte. Milliseconds. */
  firstEventMs?: number
  silenceMs?: number
}

/** The followed resource, and functions that read the server's events and responses. */
interface FollowTarget<Answer, Snapshot> {
  /** Its path; events are below it. */
  path: string
  read: (client: Client, signal: AbortSignal) => Promise<{ data?: Answer; response: Response }>
  before: Snapshot
  /** Returns the snapshot after an event; undefined for an unknown event. */
  afterEvent: (before: Snapshot, event: SseEvent) => Snapshot | undefined
  snapshotOf: (answer: Answer) => Snapshot
  isOver: (snapshot: Snapshot) => boolean
  /** Error message after 30 minutes of polling. */
  timeoutMessage: string
}

/**
 * Follows a job or execution until it ends in any state, and resolves with its record. Uses events if they arrive; else
 * polls after 2, 5, 10, 20, 30, 30 … seconds, but never earlier than the server allows. Survives a lost connection and
 * a restart of the server: `connect` is called again, and the record is read by its path. Throws Failure `timeout`
 * (exit code 75) after 30 minutes of polling without an end, a final refusal of the server (not found, revoked token),
 * and the signal's reason.
 */
export async function followToEnd<Answer extends object, Snapshot extends { status: string }>(
  connect: () => Client,
  { path, read, before, afterEvent, snapshotOf, isOver, timeoutMessage }: FollowTarget<Answer, Snapshot>,
  following: FollowOptions<Snapshot>,
): Promise<Answer> {
  const { signal, onChange, onTrouble } = following
  const { now = () => performance.now(), wait = (ms, until) => sleep(ms, undefined, { signal: until }) } = following
  const { firstEventMs = defaultFirstEventMs, silenceMs = defaultSilenceMs } = following
  let snapshot = before
  let lost = false
  let unreadableAnswers = 0

  const change = (next: Snapshot) => {
    snapshot = next
    onChange(next)
  }
  /** Returns a temporary failure; throws any other. */
  const temporary = (thrown: unknown): Failure => {
    signal.throwIfAborted()
    const failure = failureOfThrown(thrown)
    unreadableAnswers = failure.cause instanceof UnreadableAnswer ? unreadableAnswers + 1 : 0
    if (unreadableAnswers >= maxUnreadableAnswers || !(failure.retryable || failure.status >= 500)) throw failure
    return failure
  }
  const onReconnected = () => {
    if (lost) onTrouble?.(undefined)
    lost = false
  }
  const onLost = (sentence: string) => {
    if (!lost) onTrouble?.(sentence)
    lost = true
  }

  /** Reads events until the end, a lost connection (`broken`), or the finding that none arrive (`useless`). */
  async function listen(): Promise<'over' | 'broken' | 'useless'> {
    const noEvent = new AbortController()
    const timer = setTimeout(() => noEvent.abort(), firstEventMs)
    let hasEvents = false
    try {
      const both = AbortSignal.any([signal, noEvent.signal])
      for await (const event of connect().stream(`${path}/events`, undefined, both, silenceMs)) {
        clearTimeout(timer)
        const after = afterEvent(snapshot, event)
        if (!after) continue
        hasEvents = true
        onReconnected()
        change(after)
        if (isOver(after)) return 'over'
      }
      return hasEvents ? 'broken' : 'useless'
    } catch (thrown) {
      signal.throwIfAborted()
      if (noEvent.signal.aborted) return 'useless'
      const { status } = failureOfThrown(thrown)
      // Either a proxy does not know the path, or the resource does not exist. Polling shows which.
      if (status === 404 || status === 405) return 'useless'
      onLost(temporary(thrown).message)
      return 'broken'
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Reads the record, and the delay that the server requests before the next poll; no record on a temporary failure.
   */
  async function poll(): Promise<{ found?: { answer: Answer; over: boolean }; delayMs: number }> {
    const timeout = AbortSignal.timeout(requestTimeoutMs)
    try {
      const reading = read(connect(), AbortSignal.any([signal, timeout]))
      const answer = await dataOf(reading)
      const { headers } = (await reading).response
      const next = snapshotOf(answer)
      // It would be polled for ever.
      if (typeof next.status !== 'string') throw new TypeError('The record has no status.')
      unreadableAnswers = 0
      onReconnected()
      change(next)
      return { found: { answer, over: isOver(next) }, delayMs: requestedDelayMs(Object.fromEntries(headers)) }
    } catch (thrown) {
      signal.throwIfAborted()
      if (timeout.aborted) {
        onLost('The server does not answer.')
        return { delayMs: 0 }
      }
      const failure = temporary(thrown)
      onLost(failure.message)
      return { delayMs: failure.retryAfterMs ?? 0 }
    }
  }

  let eventsArrive = true
  let isReachable = true
  let polls = 0
  let delayMs = 0
  let since = now()
  for (;;) {
    let over = false
    // A server that does not answer polls sends no events either.
    if (eventsArrive && isReachable) {
      const begunAt = now()
      const outcome = await listen()
      eventsArrive = outcome !== 'useless'
      over = outcome === 'over'
      if (now() - begunAt > stableStreamMs) {
        polls = 0
        since = now()
      }
    }
    // After an event about the end, the record is final.
    if (!over) {
      const waitMs = pollAfterMs(polls++, delayMs)
      if (now() + waitMs - since > longestPollingMs)
        throw new CommandFailure(exitCodes.unfinished, 'timeout', timeoutMessage)
      await wait(waitMs, signal)
    }
    const polled = await poll()
    if (polled.found?.over) return polled.found.answer
    delayMs = polled.delayMs
    isReachable = polled.found !== undefined
    // Events that report an end that the record does not confirm are unreliable.
    if (isReachable && over) eventsArrive = false
  }
}

/** Intervals of polling a job: 2 s after its submission, then 5, 10, 20 and 30 s, and every 30 s from then on. */
const intervalsMs = [2_000, 5_000, 10_000, 20_000, 30_000] as const

/** Polling stops after this time. */
const longestPollingMs = 30 * 60_000

/**
 * Returns the delay before the poll with this number; the first is 0. `minDelayMs` is the delay that the server
 * requested in its last response (`Retry-After`, `openai-poll-after-ms`).
 */
export const pollAfterMs = (poll: number, minDelayMs = 0): number =>
  Math.max(intervalsMs[Math.min(poll, intervalsMs.length - 1)]!, minDelayMs)

/** Returns the delay that the headers of a response request, in milliseconds; 0 when they request none. */
export function requestedDelayMs(headers: Record<string, string | string[] | undefined>): number {
  const number = (name: string) => Number(headers[name] ?? Number.NaN)
  const waits = [number('openai-poll-after-ms'), number('retry-after-ms'), number('retry-after') * 1000]
  return waits.find(ms => Number.isFinite(ms) && ms > 0) ?? 0
}

/** Returns what an event tells; undefined for an event in another form, which a newer server may send. */
export function eventData({ data: text }: SseEvent): object | undefined {
  try {
    const { data } = JSON.parse(text) as { data?: object | null }
    return typeof data === 'object' && data !== null ? data : undefined
  } catch {
    return undefined
  }
}
