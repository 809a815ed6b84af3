import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from './failure.ts'
import type { Log } from './log.ts'

/** Removes expired rows every minute: a batch at a time, with a pause after each, until none is left. */
export function openSweep(options: {
  /** Removes a batch. Resolves with how many rows it had. */
  sweep: () => Promise<number>
  pauseMs: () => number
  log: Log
  /** What the log says when it fails. */
  failed: string
  everyMs?: number
}) {
  const { sweep, pauseMs, log, failed, everyMs = 60_000 } = options
  const closed = new AbortController()
  const { signal } = closed
  const pause = (ms: number) => delay(ms, undefined, { ref: false, signal })

  async function run(): Promise<void> {
    while (!signal.aborted) {
      await pause(everyMs)
      try {
        while ((await sweep()) > 0) await pause(pauseMs())
      } catch (thrown) {
        if (signal.aborted) return
        if (!Failure.from(thrown).retryable) log.error(failed, {}, thrown)
      }
    }
  }
  const running = run().catch(() => {})

  return {
    async close(): Promise<void> {
      closed.abort()
      await running
    },
  }
}
