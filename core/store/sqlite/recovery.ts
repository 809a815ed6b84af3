import { Failure } from '../../failure.ts'
import { jobErrorOf } from '../store.ts'
import type { Connection } from './database.ts'
import type { RetriedJob } from './events.ts'
import { type EndingRow, endingColumns } from './job-end.ts'
import { memoryOf, openWriteContext, type WriteContext } from './write-context.ts'

/** A job that was running at this many unclean exits of the server is not tried again. */
export const maxCrashes = 5

/**
 * Requeues the jobs that an earlier boot was running: they cannot still run, because the engines end with the server.
 * The attempt stays charged, the rank in the queue is kept. A job that was running at `maxCrashes` unclean exits fails
 * with `worker_crashed`, so that a job that crashes its server does not do so for ever; what that end cancels is in neither
 * count. One that cannot be requeued fails, is counted as crashed, and is reported.
 */
export function recoverJobs(
  connection: Connection,
  boot: string,
  at: number,
  report: (id: string, cause: string) => void = () => {},
): { requeued: number; crashed: number } {
  const running = connection.query<EndingRow & { crashes: number }>`SELECT ${endingColumns}, crashes FROM jobs
    WHERE status = 'processing' AND boot <> ?`
  const interrupted = running.all(boot)
  if (interrupted.length === 0) return { requeued: 0, crashed: 0 }
  const context = openWriteContext(connection, boot)
  const { jobCounts, requeued, endJob, eachRow, giveUpJob } = context
  const count = connection.statement`UPDATE jobs SET crashes = crashes + 1 WHERE number = ?`
  const requeue = connection.statement`UPDATE jobs
    SET status = 'pending', boot = NULL, not_before = 0, started_at = NULL, updated_at = ? WHERE number = ?`
  const hasEnded = connection.scalar<number>`SELECT 1 FROM jobs WHERE number = ? AND finished_at IS NOT NULL`
  const outcomes = new Map<EndingRow, 'requeued' | 'crashed'>()
  const countOf = (outcome: 'requeued' | 'crashed') => [...outcomes.values()].filter(one => one === outcome).length
  const crashed = (sentence: string) => new Failure('worker_crashed', sentence)
  const stopped = crashed('The server stopped unexpectedly while this job was running.')
  const givenUp = crashed(
    `The server stopped unexpectedly ${maxCrashes} times while this job was running; it is not tried again.`,
  )

  connection
    .transaction(() => {
      eachRow(
        interrupted,
        row => {
          outcomes.delete(row)
          // The end of another one has cancelled it: both are items of a list, or parts of an execution and one within it.
          if (hasEnded.get(row.number)) return
          count.run(row.number)
          if (row.crashes + 1 < maxCrashes) {
            outcomes.set(row, 'requeued')
            requeue.run(at, row.number)
            requeued(row, at, jobErrorOf(stopped, row.attempt))
          } else {
            outcomes.set(row, 'crashed')
            endJob(row, { status: 'failed', at, error: jobErrorOf(givenUp, row.attempt) })
          }
        },
        row => {
          outcomes.set(row, 'crashed')
          giveUpJob(row, at)
        },
      )
      jobCounts.moveOpen('processing', 'pending', countOf('requeued'))
      memoryOf(context).write()
    })
    .immediate()
  for (const { id, cause } of context.effects.take()?.givenUp ?? []) report(id, cause)
  return { requeued: countOf('requeued'), crashed: countOf('crashed') }
}

/** Requeues, uncharged, the jobs that this boot is running: an orderly shutdown does not count as a crash. */
export function releaseOwn(connection: Connection, { at, ...context }: WriteContext & { at: number }): void {
  const { boot, jobCounts, requeued } = context
  const release = connection.query<RetriedJob>`UPDATE jobs
    SET status = 'pending', boot = NULL, attempt = attempt - 1, not_before = 0, started_at = NULL
    WHERE status = 'processing' AND boot = ? RETURNING number, organization_id AS organizationId, attempt, execution,
    node, item`
  connection
    .transaction(() => {
      const released = release.all(boot)
      for (const row of released) requeued(row, at, null)
      jobCounts.moveOpen('processing', 'pending', released.length)
      memoryOf(context).write()
    })
    .immediate()
}
