import type { ClientExchange } from '../request/exchange.ts'
import type { Owners } from '../request/owners.ts'
import type { EventStream } from './sse.ts'

/** Events read from the log at a time. */
export const pageSize = 64

/** Records changes between two waits, so that none is missed. */
export function openChangeFlag() {
  let isSet = false
  let wake: (() => void) | undefined
  return {
    set: (): void => {
      isSet = true
      wake?.()
    },
    /** Resolves after the next `set`, at once if there was one since the last wait. */
    wait: async (): Promise<void> => {
      if (!isSet) await new Promise<void>(resolve => (wake = resolve))
      isSet = false
      wake = undefined
    },
  }
}

/** Returns the sequence after which a reader begins: that of its last event, or of the last event in the log. */
export async function beginning(resume: number | undefined, { jobs }: Owners<'jobs'>): Promise<number> {
  const last = await jobs.events.last()
  // After a backup was restored, the id may be higher than all ids in the log.
  return Math.min(resume ?? last, last)
}

interface Follow<Event extends { sequence: number }> {
  exchange: ClientExchange
  stream: EventStream
  from: number
  /** Reads the next events after a sequence, at most `pageSize`. */
  page: (sequence: number) => Promise<readonly Event[]>
  /** Resolves when there may be more events. */
  wait: () => Promise<void>
  /** Sends one event. Resolves with false after the last one. */
  take: (event: Event) => Promise<boolean>
  /** Called when all events have been sent. Resolves with false if no further events will be written. */
  idle: () => Promise<boolean>
}

/**
 * Sends the events of the log in their order, each once. The next page is read only when the reader keeps up, so a slow
 * reader queues nothing in memory.
 */
export async function follow<Event extends { sequence: number }>({
  exchange,
  stream,
  from,
  page,
  wait,
  take,
  idle,
}: Follow<Event>): Promise<void> {
  let sequence = from
  let closed = false
  for (;;) {
    const events = await page(sequence)
    for (const event of events) {
      const more = await take(event)
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
    if ((closed = !(await idle()))) continue
    await stream.caughtUp()
    if (stream.ended) return
    await wait()
    if (stream.ended) return
    await exchange.streams.beforeWrite()
  }
}
