import { Failure } from '../../failure.ts'
import type { Task } from '../../tasks/tasks.ts'
import type { JobError } from '../store.ts'
import type { Connection } from './database.ts'
import type { Ledger } from './ledger.ts'
import type { Tally } from './tally.ts'

/** A job that was running at this many unclean exits of the server is not tried again. */
export const mostCrashes = 5

interface InterruptedRow {
  number: number
  organization_id: string
  id: string
  token_id: string
  task: Task
  model_id: string
  engine_id: string | null
  attempt: number
  crashes: number
  created_at: number
  started_at: number | null
}

/**
 * Gives back what an earlier boot was running when it died: nothing of it can still run, because the engines die with
 * the server. The attempt stays charged. A job that has seen `mostCrashes` unclean exits ends `worker_crashed`, so
 * that a job that kills its server does not do it for ever.
 */
export function recoverJobs(
  connection: Connection,
  { boot, ledger, tally, at }: { boot: string; ledger: Ledger; tally: Tally; at: number },
): { requeued: number; crashed: number } {
  const interrupted = connection
    .prepare<[string], InterruptedRow>(
      `SELECT number, organization_id, id, token_id, task, model_id, engine_id, attempt, crashes, created_at,
         started_at FROM jobs
       WHERE status = 'processing' AND boot <> ?`,
    )
    .all(boot)
  const requeue = connection.prepare(
    `UPDATE jobs SET status = 'pending', boot = NULL, crashes = crashes + 1, not_before = 0, started_at = NULL,
       updated_at = ? WHERE number = ?`,
  )
  const fail = connection.prepare(
    `UPDATE jobs SET status = 'failed', boot = NULL, crashes = crashes + 1, error = ?, input_tokens = 0,
       output_tokens = 0, cost = 0, updated_at = ?, finished_at = ? WHERE number = ?`,
  )

  const hopeless = interrupted.filter(row => row.crashes + 1 >= mostCrashes)
  connection
    .transaction(() => {
      for (const row of interrupted) if (row.crashes + 1 < mostCrashes) requeue.run(at, row.number)
      for (const row of hopeless) fail.run(JSON.stringify(crashError(row.attempt)), at, at, row.number)
      ledger.append(
        hopeless.map(row => ({
          id: row.id,
          organizationId: row.organization_id,
          tokenId: row.token_id,
          task: row.task,
          modelId: row.model_id,
          engineId: row.engine_id,
          status: 'failed' as const,
          error: crashError(row.attempt),
          usage: { inputTokens: 0, outputTokens: 0 },
          cost: 0,
          createdAt: row.created_at,
          startedAt: row.started_at,
          finishedAt: at,
        })),
      )
      tally.move('processing', 'pending', interrupted.length - hopeless.length)
      tally.move('processing', 'failed', hopeless.length)
      tally.write()
    })
    .immediate()
  return { requeued: interrupted.length - hopeless.length, crashed: hopeless.length }
}

function crashError(attempt: number): JobError {
  const { code, message, type, retryable } = new Failure(
    'worker_crashed',
    `The server stopped unexpectedly ${mostCrashes} times while this job was running; it is not tried again.`,
  )
  return { code, message, type, retryable, attempt }
}

/** Gives back, uncharged, what this boot is still running: a server that ends in order does not count as a crash. */
export function releaseOwn(connection: Connection, { boot, tally }: { boot: string; tally: Tally }): void {
  const release = connection.prepare(
    `UPDATE jobs SET status = 'pending', boot = NULL, attempt = attempt - 1, not_before = 0, started_at = NULL
     WHERE status = 'processing' AND boot = ?`,
  )
  connection
    .transaction(() => {
      tally.move('processing', 'pending', release.run(boot).changes)
      tally.write()
    })
    .immediate()
}

/** Forgets up to `most` idempotency keys made before `before`, oldest first. Returns how many. */
export const forgetKeys = (connection: Connection) => {
  const forget = connection.prepare(
    `DELETE FROM idempotency_keys WHERE created_at < ? AND number IN
       (SELECT number FROM idempotency_keys ORDER BY number LIMIT ?)`,
  )
  return (before: number, most: number): number => forget.run(before, most).changes
}
