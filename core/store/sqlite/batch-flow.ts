import type { BatchEventType, BatchRecord, Usage } from '../store.ts'
import { selected } from './columns.ts'
import type { GroupEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import type { Events } from './events.ts'

/** The columns that decide what follows for a batch. */
export interface BatchStateRow
  extends Pick<BatchRecord, 'organizationId' | 'id' | 'status' | 'total' | 'completed' | 'failed' | 'fed'> {
  number: number
  restError: string | null
}
export const batchStateColumns = selected(
  'number, organizationId, id, status, total, completed, failed, fed, restError',
)

type Ended = 'completed' | 'failed' | 'cancelled'

/** Moves batches forward inside the transactions of their lines' jobs and of their own commands. */
export function openBatchFlow(
  connection: Connection,
  {
    events,
    effects,
  }: { events: Pick<Events, 'addOfOrganization'>; effects: Pick<GroupEffects, 'eventOf' | 'moveBatch'> },
) {
  const endLine = connection.prepare(
    `UPDATE batch_lines SET status = ? WHERE batch = ? AND line = ? AND status = 'running'`,
  )
  const count = connection.query<BatchStateRow>(
    `UPDATE batches SET completed = completed + ?, failed = failed + ?, input_tokens = input_tokens + ?,
       cached_tokens = cached_tokens + ?, output_tokens = output_tokens + ?, reasoning_tokens = reasoning_tokens + ?
     WHERE number = ? AND finished_at IS NULL RETURNING ${batchStateColumns}`,
  )
  const finalize = connection.prepare(
    `UPDATE batches SET status = 'finalizing', ending = 'completed', finalizing_at = ? WHERE number = ?`,
  )
  const ended = connection.query<{ organization_id: string } & Record<string, string | number | null>>(
    `SELECT organization_id, id, status, endpoint, input_file_id, iif(completed > 0, output_file_id, NULL) AS output_file_id,
       iif(failed > 0, error_file_id, NULL) AS error_file_id, total, completed, failed FROM batches WHERE number = ?`,
  )

  function settle(row: BatchStateRow, at: number): void {
    const done = row.completed + row.failed
    const isWhole = done === row.total || (row.restError !== null && done === row.fed)
    if (row.status === 'in_progress' && isWhole) finalize.run(at, row.number)
    effects.moveBatch({ organizationId: row.organizationId, id: row.id })
  }

  return {
    /** Finalizes a batch in progress that has no line left. Announces that it has changed. */
    settle,

    /** Call it with the end of a line's job. */
    lineEnded(batch: number, line: number, status: Ended, usage: Usage, at: number): void {
      const completed = status === 'completed' ? 1 : 0
      if (endLine.run(completed ? 'completed' : 'failed', batch, line).changes === 0) return
      const { inputTokens, cachedTokens = 0, outputTokens, reasoningTokens = 0 } = usage
      const row = count.get(completed, 1 - completed, inputTokens, cachedTokens, outputTokens, reasoningTokens, batch)
      if (row) settle(row, at)
    },

    /** Adds the event of the end of a batch. */
    announce(number: number, at: number): void {
      const { organization_id, total, completed, failed, ...facts } = ended.get(number)!
      const data = { object: 'batch', ...facts, request_counts: { total, completed, failed } }
      const type = `batch.${facts.status as BatchRecord['status']}` as BatchEventType
      events.addOfOrganization(organization_id, type, data, at)
      effects.eventOf(organization_id)
      effects.moveBatch({ organizationId: organization_id, id: facts.id as string })
    },
  }
}
export type BatchFlow = ReturnType<typeof openBatchFlow>
