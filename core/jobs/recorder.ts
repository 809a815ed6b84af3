import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { FinishedJob, Store } from '../store/store.ts'
import { metered, meteredUsage } from './metered.ts'

export interface RecorderOptions {
  store: Store
  log: Log
  /** How many records may wait; from there on no call is admitted. */
  most?: number
  /** How long a close goes on trying against a store that does not take the records. */
  closePatienceMs?: number
}

/** So many do not wait for more: what waits is copied whenever the young generation is collected. */
const enough = 32
/** How many a commit takes, where more have come than a slow disk could take one after another. */
const maxInBatch = 256
const everyMs = 50
const longestBackOffMs = 5000

/**
 * Records of synchronous calls after their end. `record` costs a push; the records travel to the store in batches.
 * A batch that fails is sent again, which is safe because the store passes over what it has.
 */
export function openRecorder({ store, log, most = 50_000, closePatienceMs = 10_000 }: RecorderOptions) {
  let waiting: FinishedJob[] = []
  let timer: NodeJS.Timeout | undefined
  let flushing: Promise<void> | undefined
  let closingUntil: number | undefined

  function start(): void {
    clearTimeout(timer)
    timer = undefined
    flushing ??= flush().finally(() => {
      flushing = undefined
      if (waiting.length >= enough) start()
      else if (waiting.length > 0) later()
    })
  }

  function later(): void {
    timer ??= setTimeout(start, everyMs)
  }

  /** One batch, until the store takes it. What comes meanwhile waits for others again: a commit for each costs more. */
  async function flush(): Promise<void> {
    for (let backOffMs = everyMs; ; backOffMs = Math.min(2 * backOffMs, longestBackOffMs)) {
      const batch = waiting.slice(0, maxInBatch)
      try {
        await write(batch)
        waiting = waiting.slice(batch.length)
        return
      } catch (thrown) {
        if (closingUntil !== undefined && performance.now() > closingUntil) return abandon(thrown)
        log.warn('Records of finished calls wait for the store', { waiting: waiting.length }, thrown)
        await delay(backOffMs, undefined, { ref: false })
      }
    }
  }

  async function write(batch: FinishedJob[]): Promise<void> {
    try {
      await store.jobs.record(batch)
    } catch (thrown) {
      if (Failure.from(thrown).retryable) throw thrown
      // One that the store cannot hold must not keep the others from being billed.
      if (batch.length === 1) return log.error('A finished call could not be recorded', { job: batch[0]!.id }, thrown)
      for (const one of batch) await write([one])
    }
  }

  function abandon(thrown: unknown): void {
    log.error('Records of finished calls were not written', { calls: waiting.length }, thrown)
    waiting = []
  }

  return {
    /** Takes the record of a call that has ended, for good. Never throws, never waits. */
    record(finished: FinishedJob): void {
      finished.usage = meteredUsage(finished.usage)
      finished.cost = metered(finished.cost)
      waiting.push(finished)
      if (waiting.length >= enough) start()
      else if (!flushing) later()
    },
    /** Throws Failure `no_capacity` where so much waits that no call may begin: one that cannot be billed is not made. */
    requireRoom(): void {
      if (waiting.length >= most)
        throw new Failure(
          'no_capacity',
          'The server cannot write its usage records fast enough. Try again in a moment.',
          { retryAfterMs: 2_000 },
        )
    },
    get waiting(): number {
      return waiting.length
    },
    /** The record of a call that has ended and is not in the store yet. */
    find: (organizationId: string, id: string): FinishedJob | undefined =>
      waiting.find(one => one.id === id && one.organizationId === organizationId),
    /** Writes what waits. What a broken store does not take in time is reported as lost. */
    async close(): Promise<void> {
      closingUntil = performance.now() + closePatienceMs
      while (waiting.length > 0) {
        start()
        await flushing
      }
      clearTimeout(timer)
    },
  }
}
export type Recorder = ReturnType<typeof openRecorder>
