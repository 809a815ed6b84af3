import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import { type CallsText, callsIn, isText } from '../store/ledger-rows.ts'
import type { FinishedJob, Store } from '../store/store.ts'

export interface RecorderOptions {
  store: Store
  log: Log
  /** How many records may wait; at this number no call is admitted. */
  most?: number
  /** How long `close` tries to write to a store that fails, milliseconds. */
  closePatienceMs?: number
}

/** How many records one commit takes at most. At this number they are written at once. */
const maxInBatch = 512
/** Milliseconds for which a record waits for others. */
const gatherMs = 50
/**
 * Milliseconds between the beginnings of two writes: the longest that a record waits for others while many come. A commit
 * costs the writer as much as 50 records, whatever their number.
 */
const apartMs = 100
const maxBackOffMs = 5000

/** A finished call, or the text of many. */
type Entry = FinishedJob | CallsText
const callsOf = (entry: Entry): number => (isText(entry) ? entry.calls : 1)
const sumOf = (entries: readonly Entry[]): number => entries.reduce((sum, entry) => sum + callsOf(entry), 0)

/**
 * Writes the records of synchronous calls after their end. `record` is one push; records are sent to the store in
 * batches. A batch that fails is sent again, which is safe because the store skips records that it has.
 */
export function openRecorder({ store, log, most = 50_000, closePatienceMs = 10_000 }: RecorderOptions) {
  let waiting: Entry[] = []
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined
  /** When the last write began, milliseconds. */
  let begunAt = Number.NEGATIVE_INFINITY
  let closingUntil: number | undefined
  /** While records are kept: how many of all that were accepted may be written. */
  let upTo = Number.POSITIVE_INFINITY
  /** How many records were accepted, and how many of them are in the store, or lost. */
  let accepted = 0
  let done = 0
  let followers: { upTo: number; written: () => void }[] = []

  function start(): void {
    clearTimeout(timer)
    timer = undefined
    if (writable() <= 0 || flushing) return
    begunAt = performance.now()
    flushing = flush().finally(() => {
      flushing = undefined
      const next = writable()
      if (next >= maxInBatch || (next > 0 && upTo < accepted)) start()
      else if (next > 0) schedule()
    })
  }

  /** How many of the waiting records may be written now. */
  const writable = (): number => Math.min(accepted, upTo) - done

  function schedule(): void {
    timer ??= setTimeout(start, Math.max(gatherMs, begunAt + apartMs - performance.now()))
  }

  /**
   * Writes one batch, until the store accepts it. Records that arrive meanwhile wait for the next: a commit each costs
   * more.
   */
  async function flush(): Promise<void> {
    for (let backOffMs = gatherMs; ; backOffMs = Math.min(2 * backOffMs, maxBackOffMs)) {
      const batch = nextBatch()
      try {
        await write(batch)
        waiting = waiting.slice(batch.length)
        settled(sumOf(batch))
        return
      } catch (thrown) {
        if (closingUntil !== undefined && performance.now() > closingUntil) return abandon(thrown)
        log.warn('Records of finished calls wait for the store', { waiting: accepted - done }, thrown)
        await delay(backOffMs, undefined, { ref: false })
      }
    }
  }

  function nextBatch(): Entry[] {
    let calls = 0
    const most = Math.min(writable(), maxInBatch)
    const end = waiting.findIndex((entry, at) => (calls += callsOf(entry)) > most && at > 0)
    return waiting.slice(0, end < 0 ? undefined : end)
  }

  function settled(records: number): void {
    done += records
    if (followers.length === 0) return
    const now = followers.filter(({ upTo }) => upTo <= done)
    followers = followers.filter(({ upTo }) => upTo > done)
    for (const { written } of now) written()
  }

  async function write(batch: readonly Entry[]): Promise<void> {
    try {
      await store.jobs.record(batch)
    } catch (thrown) {
      if (Failure.from(thrown).retryable) throw thrown
      // A record that the store cannot hold must not block the billing of the others.
      const [first] = batch
      if (batch.length > 1) for (const one of batch) await write([one])
      else if (isText(first!)) for (const one of callsIn(first.text)) await write([one])
      else log.error('A finished call could not be recorded', { job: first!.id }, thrown)
    }
  }

  function abandon(thrown: unknown): void {
    log.error('Records of finished calls were not written', { calls: accepted - done }, thrown)
    waiting = []
    done = accepted
  }

  function accept(entry: Entry): void {
    waiting.push(entry)
    accepted += callsOf(entry)
    if (accepted - done >= maxInBatch) start()
    else if (!flushing) schedule()
  }

  function whenWritten(written: () => void): void {
    followers.push({ upTo: accepted, written })
    if (accepted === done) settled(0)
  }

  return {
    /** Accepts the record of a call that has ended, with whole numbers only. Never throws, never waits. */
    record: (finished: FinishedJob): void => accept(finished),
    /** Accepts the records of calls that have ended in another process, which only the store reads. */
    recordText: (text: CallsText): void => accept(text),
    /** Throws Failure `no_capacity` if too many records wait: a call that cannot be billed is not run. */
    requireRoom(): void {
      if (accepted - done >= most)
        throw new Failure(
          'no_capacity',
          'The server cannot write its usage records fast enough. Retry in two seconds.',
          { retryAfterMs: 2_000 },
        )
    },
    /** Calls back once all records that were accepted so far are in the store. */
    whenWritten,
    /** Writes the records that were accepted so far and keeps later ones until `resume`. Resolves when those are written. */
    hold(): Promise<void> {
      upTo = accepted
      const written = new Promise<void>(whenWritten)
      start()
      return written
    },
    /** Writes what was kept, and what is accepted from now on. */
    resume(): void {
      upTo = Number.POSITIVE_INFINITY
      start()
    },
    get waiting(): number {
      return accepted - done
    },
    /** The records that are not in the store yet. */
    *unwritten(): Iterable<FinishedJob> {
      for (const entry of waiting) yield* isText(entry) ? callsIn(entry.text) : [entry]
    },
    /** The record of a call that has ended and is not in the store yet. */
    find(organizationId: string, id: string): FinishedJob | undefined {
      for (const entry of waiting) {
        const calls = !isText(entry) ? [entry] : entry.text.includes(id) ? callsIn(entry.text) : []
        const found = calls.find(one => one.id === id && one.organizationId === organizationId)
        if (found) return found
      }
      return undefined
    },
    /** Writes the waiting records. Logs as lost what a failing store does not accept in time. */
    async close(): Promise<void> {
      closingUntil = performance.now() + closePatienceMs
      upTo = Number.POSITIVE_INFINITY
      while (waiting.length > 0) {
        start()
        await flushing
      }
      clearTimeout(timer)
    },
  }
}
export type Recorder = ReturnType<typeof openRecorder>
