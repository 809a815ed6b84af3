import { Failure } from '../../failure.ts'
import { limitFailure } from '../limits.ts'
import type { Statements } from '../method-table.ts'
import type { BatchFeed, BatchKey, BatchLine, BatchRecord } from '../store.ts'
import { type BatchStateRow, batchStateColumns } from './batch-flow.ts'
import { type Connection, scalar } from './database.ts'
import { openIdempotencyKeys } from './idempotency-keys.ts'
import { openJobRows } from './job-add.ts'
import type { WriteContext } from './write-context.ts'

const endings = new Set(['failed', 'completed', 'expired', 'cancelled'])

/** The writer's commands for batches; batch-flow.ts counts the ends of their lines. */
export function batchCommands(connection: Connection, context: WriteContext) {
  const { batches, use } = context
  const insert = connection.prepare(
    `INSERT INTO batches (organization_id, id, token_id, endpoint, input_file_id, completion_window, output_lifetime_ms,
       metadata, region, origin, output_file_id, error_file_id, status, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'validating', ?, ?)`,
  )
  const inputFile = scalar<[string, string], number>(
    connection,
    'SELECT 1 FROM files WHERE id = ? AND organization_id = ? AND removed_at IS NULL',
  )
  const one = connection.prepare<[string, string], BatchStateRow>(
    `SELECT ${batchStateColumns} FROM batches WHERE organization_id = ? AND id = ?`,
  )
  const begin = connection.prepare(
    `UPDATE batches SET status = 'in_progress', total = ?, model_id = ?, in_progress_at = ? WHERE number = ?`,
  )
  const fail = connection.prepare(`UPDATE batches SET status = 'failed', faults = ?, finished_at = ? WHERE number = ?`)
  const insertLine = connection.prepare(
    'INSERT INTO batch_lines (batch, line, job_id, status, error) VALUES (?, ?, ?, ?, ?)',
  )
  const move = connection.prepare<unknown[], BatchStateRow>(
    `UPDATE batches SET fed = ?, next_line = ?, next_offset = ?, failed = failed + ?, has_lines = 1 WHERE number = ?
     RETURNING ${batchStateColumns}`,
  )
  const refuse = connection.prepare<unknown[], BatchStateRow>(
    `UPDATE batches SET rest_error = ? WHERE number = ? RETURNING ${batchStateColumns}`,
  )
  const cancel = connection.prepare(
    `UPDATE batches SET status = 'cancelling', ending = 'cancelled', cancelling_at = ? WHERE number = ?`,
  )
  const expire = connection.prepare(
    `UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = ? WHERE number = ?`,
  )
  const finish = connection.prepare(
    'UPDATE batches SET status = ending, failed = total - completed, finished_at = ? WHERE number = ?',
  )
  const ofEnded = scalar<[], number>(
    connection,
    'SELECT number FROM batches WHERE has_lines = 1 AND finished_at IS NOT NULL ORDER BY number LIMIT 1',
  )
  const dropLines = connection.prepare(
    `DELETE FROM batch_lines WHERE batch = :batch
       AND line IN (SELECT line FROM batch_lines WHERE batch = :batch ORDER BY line LIMIT :limit)`,
  )
  const withoutLines = connection.prepare('UPDATE batches SET has_lines = 0 WHERE number = ?')
  const reads = batchReads(connection)
  const keys = openIdempotencyKeys(connection)
  const jobs = openJobRows(connection, context)

  const inState = (key: BatchKey, ...states: readonly BatchStateRow['status'][]): BatchStateRow | undefined => {
    const row = one.get(key.organizationId, key.id)
    return row && states.includes(row.status) ? row : undefined
  }
  const changed = (row: BatchStateRow): true => {
    context.effects.moveBatch({ organizationId: row.organization_id, id: row.id })
    return true
  }

  return {
    /** False: the batch is not in progress, or the lines were fed before. */
    feedBatch({ fed, jobs: added, refused, nextLine, nextOffset, at, ...key }: BatchFeed): boolean | Failure {
      const row = inState(key, 'in_progress')
      if (!row || row.fed !== fed || row.rest_error !== null) return false
      const [first] = added
      const reached = first?.limits && use.forbidsJobs(first.organizationId, first.limits, added.length)
      if (reached) return limitFailure(reached)
      for (const job of added) {
        jobs.add(job, row.number)
        insertLine.run(row.number, job.batch!.line, job.id, 'running', null)
      }
      for (const { line, error } of refused) insertLine.run(row.number, line, null, 'failed', JSON.stringify(error))
      const count = fed + added.length + refused.length
      batches.settle(move.get(count, nextLine, nextOffset, refused.length, row.number)!, at)
      return true
    },

    ...({
      'batches.create'(batch) {
        const { organizationId, inputFileId } = batch
        const holder = keys.assign(batch)
        if (holder !== undefined) return { batch: reads['batches.find'](organizationId, holder)!, replayed: true }
        if (inputFile.get(inputFileId, organizationId) === undefined)
          throw new Failure('not_found', `No such File object: ${inputFileId}`, { param: 'input_file_id' })
        insert.run(
          organizationId,
          batch.id,
          batch.tokenId,
          batch.endpoint,
          inputFileId,
          batch.completionWindow,
          batch.outputLifetimeMs,
          batch.metadata,
          batch.region,
          batch.origin,
          batch.outputFileId,
          batch.errorFileId,
          batch.createdAt,
          batch.expiresAt,
        )
        return { batch: reads['batches.find'](organizationId, batch.id)!, replayed: false }
      },

      'batches.begin'(key, { total, modelId }, at) {
        const row = inState(key, 'validating')
        if (row) begin.run(total, modelId, at, row.number)
        return row !== undefined && changed(row)
      },

      'batches.fail'(key, faults, at) {
        const row = inState(key, 'validating')
        if (!row) return false
        fail.run(JSON.stringify(faults), at, row.number)
        batches.announce(row.number, at)
        return true
      },

      'batches.refuseRest'(key, error, at) {
        const row = inState(key, 'in_progress')
        if (!row || row.rest_error !== null) return false
        batches.settle(refuse.get(JSON.stringify(error), row.number)!, at)
        return true
      },

      'batches.cancel'(organizationId, id, at) {
        const row = one.get(organizationId, id)
        if (row?.status === 'validating' || row?.status === 'in_progress') {
          cancel.run(at, row.number)
          changed(row)
        } else if (row && row.status !== 'cancelling') {
          const state = endings.has(row.status) ? `has already ended: it is ${row.status}` : 'is finalizing'
          throw new Failure('batch_not_cancellable', `The batch ${row.id} ${state}.`)
        }
        return reads['batches.find'](organizationId, id)
      },

      'batches.expire'(key, at) {
        const row = inState(key, 'validating', 'in_progress')
        if (row) expire.run(at, row.number)
        return row !== undefined && changed(row)
      },

      'batches.finish'(key, at) {
        const row = inState(key, 'finalizing', 'cancelling')
        if (!row || row.fed > row.completed + row.failed) return false
        finish.run(at, row.number)
        batches.announce(row.number, at)
        return true
      },

      /** Deletes lines of one batch that has ended. */
      'batches.sweep'(limit) {
        const batch = ofEnded.get()
        if (batch === undefined) return 0
        const { changes } = dropLines.run({ batch, limit })
        if (changes < limit) withoutLines.run(batch)
        return changes
      },
    } satisfies Partial<Statements>),
  }
}

interface BatchRow extends BatchStateRow {
  token_id: string
  endpoint: string
  input_file_id: string
  completion_window: string
  output_lifetime_ms: number | null
  metadata: string | null
  region: string | null
  origin: string
  ending: BatchRecord['ending']
  model_id: string | null
  faults: string | null
  output_file_id: string
  error_file_id: string
  created_at: number
  expires_at: number
  in_progress_at: number | null
  finalizing_at: number | null
  cancelling_at: number | null
  finished_at: number | null
  next_line: number
  next_offset: number
  input_tokens: number
  cached_tokens: number
  output_tokens: number
  reasoning_tokens: number
}

const parsed = (text: string | null) => (text === null ? null : (JSON.parse(text) as never))

const batchOf = (row: BatchRow): BatchRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  tokenId: row.token_id,
  endpoint: row.endpoint,
  inputFileId: row.input_file_id,
  completionWindow: row.completion_window,
  outputLifetimeMs: row.output_lifetime_ms,
  metadata: row.metadata,
  region: row.region,
  origin: row.origin,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  status: row.status,
  ending: row.ending,
  modelId: row.model_id,
  faults: parsed(row.faults),
  outputFileId: row.output_file_id,
  errorFileId: row.error_file_id,
  inProgressAt: row.in_progress_at,
  finalizingAt: row.finalizing_at,
  cancellingAt: row.cancelling_at,
  finishedAt: row.finished_at,
  total: row.total,
  completed: row.completed,
  failed: row.failed,
  fed: row.fed,
  nextLine: row.next_line,
  nextOffset: row.next_offset,
  restError: parsed(row.rest_error),
  usage: {
    inputTokens: row.input_tokens,
    cachedTokens: row.cached_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
  },
})

/** Reads of batches; short statements on a read-only connection. */
export function batchReads(connection: Connection) {
  const one = connection.prepare<[string, string], BatchRow>(
    'SELECT * FROM batches WHERE organization_id = ? AND id = ?',
  )
  const page = (comparison: '<' | '>', order: 'DESC' | 'ASC') =>
    connection.prepare<[string, string, number], BatchRow>(
      `SELECT * FROM batches WHERE organization_id = ? AND id ${comparison} ? ORDER BY id ${order} LIMIT ?`,
    )
  const newest = page('<', 'DESC')
  const oldest = page('>', 'ASC')
  const unfinished = connection.prepare<[], BatchKey>(
    'SELECT organization_id AS organizationId, id FROM batches WHERE finished_at IS NULL ORDER BY number',
  )
  const lines = connection.prepare<
    [string, string, number, number],
    Omit<BatchLine, 'error'> & { error: string | null }
  >(
    `SELECT line, job_id AS jobId, status, error FROM batch_lines
     WHERE batch = (SELECT number FROM batches WHERE organization_id = ? AND id = ?) AND line BETWEEN ? AND ?
     ORDER BY line`,
  )
  const running = scalar<[string, string], string>(
    connection,
    `SELECT job_id FROM batch_lines WHERE status = 'running'
         AND batch = (SELECT number FROM batches WHERE organization_id = ? AND id = ?)`,
  )

  return {
    'batches.find'(organizationId, id) {
      const row = one.get(organizationId, id)
      return row && batchOf(row)
    },
    'batches.list': (organizationId, { limit, after, oldestFirst = false }) =>
      (oldestFirst ? oldest : newest).all(organizationId, after ?? (oldestFirst ? '' : '~'), limit).map(batchOf),
    'batches.unfinished': () => unfinished.all(),
    'batches.lines': ({ organizationId, id }, from, to) =>
      lines.all(organizationId, id, from, to).map(({ error, ...line }) => ({ ...line, error: parsed(error) })),
    'batches.running': ({ organizationId, id }) => running.all(organizationId, id),
  } satisfies Partial<Statements>
}
