import type { Statements } from '../method-table.ts'
import { type RowKey, type WaitingJob, waitingOf } from '../store.ts'
import type { Connection } from './database.ts'
import { type EndingRow, endingColumns } from './job-end.ts'
import { unfinishedJobs } from './organization-end.ts'
import type { WriteContext } from './write-context.ts'

/** The writer's command that ends the work of a token, in batches, so that other commands never wait long. */
export function tokenWorkCommands(connection: Connection, { effects, ...context }: WriteContext) {
  const openBatches = connection.query<RowKey & { number: number }>`SELECT number, organization_id AS organizationId, id
    FROM batches INDEXED BY batches_unfinished WHERE finished_at IS NULL AND status IN ('validating', 'in_progress')
    AND organization_id = ? AND token_id = ? LIMIT ?`
  const cancelBatch = connection.statement`UPDATE batches
    SET status = 'cancelling', ending = 'cancelled', cancelling_at = ? WHERE number = ?`
  const { flow, endJob, eachRow, giveUpJob, giveUpExecution } = context
  const executions = connection.query<{ number: number; id: string }>`SELECT number, id FROM executions
    WHERE organization_id = ? AND token_id = ? AND finished_at IS NULL LIMIT ?`
  // Lines of a batch are cancelled by the batch.
  const active = unfinishedJobs(`${endingColumns}, class, rank`, 'AND batch IS NULL AND token_id = :tokenId')
  const jobs = connection.query<EndingRow & Pick<WaitingJob, 'class' | 'rank'>>`${active} LIMIT :limit`

  return {
    'tokens.cancelWork'(id, tokenId, at, limit) {
      const batchesFound = openBatches.all(id, tokenId, limit)
      for (const { number, ...key } of batchesFound) {
        cancelBatch.run(at, number)
        effects.add('batches', key)
      }
      const executionsFound = executions.all(id, tokenId, limit)
      eachRow(
        executionsFound,
        ({ number }) => flow.advance(number, { type: 'cancelled', at }),
        ({ number }) => giveUpExecution(number, at),
      )
      const jobsFound = jobs.all({ id, tokenId, limit })
      eachRow(
        jobsFound,
        job => endJob(job, { status: 'cancelled', at }),
        job => giveUpJob(job, at),
      )
      for (const job of jobsFound) effects.add('withdrawn', waitingOf(job))
      return { batches: batchesFound.length, executions: executionsFound.length, jobs: jobsFound.length }
    },
  } satisfies Statements
}
