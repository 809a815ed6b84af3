import type { MessagePort } from 'node:worker_threads'
import { sendable } from './batch.ts'
import { type Connection, openDatabase } from './database.ts'
import { pathsIn } from './directory.ts'
import type { FromReads, ToReads } from './protocol.ts'
import { usageReads } from './usage-reads.ts'

/** Answers the queries of `openUsageThread`, one after the other, until the thread is ended. */
export function serveReads(port: MessagePort, dataDir: string): void {
  let opened: { connection: Connection; reads: ReturnType<typeof usageReads> } | undefined
  const reads = () => {
    if (!opened) {
      const connection = openDatabase(pathsIn(dataDir).database, { readonly: true })
      opened = { connection, reads: usageReads(connection) }
    }
    return opened
  }

  port.on('message', ({ query }: ToReads) => {
    const post = (answer: FromReads) => port.postMessage(answer)
    try {
      const { connection, reads: usage } = reads()
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
