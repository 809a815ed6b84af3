import type { ClientExchange } from '../request/exchange.ts'
import type { Owners } from '../request/owners.ts'
import { type EventStream, openEventStream, resumeFrom, type SseRecord } from './sse.ts'

/** Events read from the log at a time. */
export const pageSize = 64

/** Records changes between two waits, so that none is missed. The end of the stream is a change. */
export function openChangeFlag({ over }: { over: Promise<unknown> }) {
  let isSet = false
  let wake: (() => void) | undefined
  const set = () => {
    isSet = true
    wake?.()
  }
  void over.then(set)
  return {
    set,
    /**
     * Resolves after the next `set`, at once if there was one since the last wait; at the latest after `maxMs`. Resolves with
     * whether there was one.
     */
    wait: async (maxMs?: number): Promise<boolean> => {
      if (!isSet) {
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        const timer = maxMs === undefined ? undefined : setTimeout(resolve, maxMs)
        await promise
        clearTimeout(timer)
      }
      const hasChanged = isSet
      isSet = false
      wake = undefined
      return hasChanged
    },
  }
}

/** What a stream of the events of one job or execution sends. */
export interface Followed<Event extends { sequence: number }> {
  /** Calls this function after each change. Returns the function that ends that. */
  follow: (changed: () => void) => () => void
  /**
   * Returns the first record, for readers that begin after the event `from`. It is made after this position was read, so that
   * an event in between is reported twice and never missed. Undefined: there is nothing to follow.
   */
  first: (from: number) => Promise<SseRecord | undefined>
  /** Reads the next events after a sequence, at most `pageSize`. */
  page: (sequence: number) => Promise<readonly Event[]>
  /** Sends one event. Resolves with false after the last one. */
  take: (event: Event, stream: EventStream) => Promise<boolean>
  /** Called when all events have been sent. Resolves with false if no further events will be written. */
  idle: (stream: EventStream) => Promise<boolean>
}

/**
 * Opens a stream and sends the events of the log in their order, each once: those after the last event of a reader that
 * resumes, or from now on. The next page is read only when the reader keeps up, so a slow reader queues nothing in memory.
 */
export async function streamEvents<Event extends { sequence: number }>(
  exchange: ClientExchange,
  followed: Followed<Event>,
  { jobs }: Owners<'jobs'>,
): Promise<void> {
  const resume = resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  const last = await jobs.events.last()
  // After a backup was restored, the id may be higher than all ids in the log.
  const from = Math.min(resume ?? last, last)
  const changes = openChangeFlag(stream)
  const stop = followed.follow(changes.set)
  try {
    const first = await followed.first(from)
    if (!first) return
    stream.send(first)
    await sendAll(exchange, stream, from, followed, changes.wait)
  } finally {
    stop()
    stream.end()
  }
}

async function sendAll<Event extends { sequence: number }>(
  exchange: ClientExchange,
  stream: EventStream,
  from: number,
  { page, take, idle }: Followed<Event>,
  changed: () => Promise<unknown>,
): Promise<void> {
  let sequence = from
  let closed = false
  for (;;) {
    const events = await page(sequence)
    for (const event of events) {
      const more = await take(event, stream)
      sequence = event.sequence
      await stream.caughtUp()
      if (stream.ended || !more) return
    }
    if (events.length > 0) {
      await exchange.streams.beforeWrite()
      continue
    }
    if (closed) return
    // The last event may have been written after the page was read.
    if ((closed = !(await idle(stream)))) continue
    await stream.caughtUp()
    if (stream.ended) return
    await changed()
    if (stream.ended) return
    await exchange.streams.beforeWrite()
  }
}
