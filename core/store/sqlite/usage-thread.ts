import type { MessagePort, Worker } from 'node:worker_threads'
import { Failure } from '../../failure.ts'
import type { UsagePage, UsageQuery } from '../usage-records.ts'
import { openDatabase } from './database.ts'
import { pathsIn } from './directory.ts'
import { received, type SentFailure, sendable, shuttingDown } from './sent-failure.ts'
import { startThread, type ThreadStart } from './thread.ts'
import { usageReads } from './usage-reads.ts'

interface ToReads {
  query: UsageQuery
}

/** The answer to the oldest unanswered query. */
type FromReads = { page: UsagePage } | { failure: SentFailure }

/** How long the thread stays after its last query, milliseconds: a person reads the next page in this time. */
const idleMs = 60_000
const maxWaiting = 64

/**
 * Reads usage in a thread of its own, with its own connection: neither the event loop nor the writer waits for it. The
 * thread starts with the first query, and ends a minute after the last.
 */
export function openUsageThread(dataDir: string) {
  const waiting: { resolve: (page: UsagePage) => void; reject: (failure: Failure) => void }[] = []
  let thread: Worker | undefined
  let idle: NodeJS.Timeout | undefined
  let closed = false

  function end(failure: Failure): void {
    clearTimeout(idle)
    const ended = thread
    thread = undefined
    void ended?.terminate()
    for (const { reject } of waiting.splice(0)) reject(failure)
  }

  function start(): Worker {
    const started = startThread('store-reads')
    const lost = (cause: unknown) => {
      if (thread === started)
        end(new Failure('internal_error', 'The usage could not be read. Retry the request.', { cause }))
    }
    started.postMessage({ role: 'reads', dataDir } satisfies ThreadStart, [])
    return started
      .on('message', (answer: FromReads) => {
        const next = waiting.shift()
        if ('page' in answer) next?.resolve(answer.page)
        else next?.reject(received(answer.failure))
        if (waiting.length > 0) return
        started.unref()
        idle = setTimeout(() => end(shuttingDown()), idleMs).unref()
      })
      .on('error', lost)
      .on('exit', lost)
  }

  return {
    /** Throws Failure `no_capacity` when too many queries wait. */
    read(query: UsageQuery): Promise<UsagePage> {
      if (closed) return Promise.reject(shuttingDown())
      if (waiting.length >= maxWaiting)
        return Promise.reject(
          new Failure('no_capacity', 'Too many requests for usage wait. Retry in a second.', { retryAfterMs: 1000 }),
        )
      clearTimeout(idle)
      thread ??= start()
      thread.ref()
      thread.postMessage({ query } satisfies ToReads, [])
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }))
    },
    close(): void {
      closed = true
      end(shuttingDown())
    },
  }
}
export type UsageThread = ReturnType<typeof openUsageThread>

/** Answers the queries of `openUsageThread`, one after the other, until the thread is ended. */
export function serveReads(port: MessagePort, dataDir: string): void {
  let opened: ReturnType<typeof open> | undefined
  function open() {
    const connection = openDatabase(pathsIn(dataDir).database, { readonly: true })
    return { connection, usage: usageReads(connection) }
  }

  port.on('message', ({ query }: ToReads) => {
    const post = (answer: FromReads) => port.postMessage(answer)
    try {
      const { connection, usage } = (opened ??= open())
      // One snapshot, so that the totals agree with the buckets.
      connection.exec('BEGIN')
      try {
        post({ page: usage.read(query) })
      } finally {
        connection.exec('COMMIT')
      }
    } catch (thrown) {
      post({ failure: sendable(thrown) })
    }
  })
}
