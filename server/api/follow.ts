import type { Call } from '../call.ts'
import type { Owners } from '../owners.ts'
import type { EventStream } from '../sse.ts'

/** Events read from the log at a time. */
export const pageSize = 64

/** Remembers that something has changed until somebody asks. */
export function openChangeFlag() {
  let rung = false
  let wake: (() => void) | undefined
  return {
    ring: (): void => {
      rung = true
      wake?.()
    },
    heard: async (): Promise<void> => {
      if (!rung) await new Promise<void>(resolve => (wake = resolve))
      rung = false
      wake = undefined
    },
  }
}

/** Where a reader begins: after the event that it had last, or after all that there are. */
export async function beginning(resume: number | undefined, { jobs }: Pick<Owners, 'jobs'>): Promise<number> {
  const last = await jobs.events.last()
  // An id from before a backup was restored may be ahead of all that there are.
  return Math.min(resume ?? last, last)
}

interface Follow<Event extends { sequence: number }> {
  call: Call
  stream: EventStream
  from: number
  /** The next events behind a place in the log, at most `pageSize`. */
  page: (sequence: number) => Promise<readonly Event[]>
  /** Tells when there may be more. */
  heard: () => Promise<void>
  /** Passes one event on; false: it was the last one that is wanted. */
  take: (event: Event) => Promise<boolean>
  /** All events have been passed on; false: none will be written any more. */
  idle: () => Promise<boolean>
}

/**
 * Passes the events of the log on in their order, each once. What the reader has not taken is read from the log when it
 * has: nothing waits in memory, however slow the reader is.
 */
export async function follow<Event extends { sequence: number }>({
  call,
  stream,
  from,
  page,
  heard,
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
      await call.streams.beforeWrite()
      continue
    }
    if (closed) return
    // Its last event may have been written since the page was read.
    if ((closed = !(await idle()))) continue
    await stream.caughtUp()
    if (stream.ended) return
    await heard()
    if (stream.ended) return
    await call.streams.beforeWrite()
  }
}
