import { Failure, invalid } from '../../failure.ts'
import { limitFailure } from '../limits.ts'
import type { Statements } from '../method-table.ts'
import type {
  BatchEventType,
  BatchFeed,
  BatchLine,
  BatchRecord,
  FinishedJob,
  NewBatch,
  RowKey,
  Usage,
} from '../store.ts'
import { fromJson, openInsert, type RowOf, recordIf, selected, withJson } from './columns.ts'
import type { GroupEffects } from './commit-effects.ts'
import type { Connection } from './database.ts'
import type { Events } from './events.ts'
import { openJobRows } from './jobs.ts'
import type { WriteContext } from './write-context.ts'

/** The columns that decide what follows for a batch. */
interface BatchStateRow
  extends Pick<BatchRecord, 'organizationId' | 'id' | 'status' | 'total' | 'completed' | 'failed' | 'fed'> {
  number: number
  restError: string | null
}
const batchStateColumns = selected('number, organizationId, id, status, total, completed, failed, fed, restError')

/** Moves batches forward inside the transactions of their lines' jobs and of their own commands. */
export function openBatchFlow(connection: Connection, { events, effects }: { events: Events; effects: GroupEffects }) {
  const endLine = connection.statement`UPDATE batch_lines SET status = ? WHERE batch = ? AND line = ?
    AND status = 'running'`
  const count = connection.query<BatchStateRow>`UPDATE batches
    SET completed = completed + ?, failed = failed + ?, input_tokens = input_tokens + ?,
    cached_tokens = cached_tokens + ?, output_tokens = output_tokens + ?, reasoning_tokens = reasoning_tokens + ?
    WHERE number = ? AND finished_at IS NULL RETURNING ${batchStateColumns}`
  const finalize = connection.statement`UPDATE batches
    SET status = 'finalizing', ending = 'completed', finalizing_at = ? WHERE number = ?`
  const ended = connection.query<{ organization_id: string } & Record<string, string | number | null>>`SELECT
    organization_id, id, status, endpoint, input_file_id,
    iif(completed > 0 AND status <> 'failed', output_file_id, NULL) AS output_file_id,
    iif(failed > 0 AND status <> 'failed', error_file_id, NULL) AS error_file_id, total, completed, failed FROM batches WHERE number = ?`

  function settle(row: BatchStateRow, at: number): void {
    const done = row.completed + row.failed
    const isWhole = done === row.total || (row.restError !== null && done === row.fed)
    if (row.status === 'in_progress' && isWhole) finalize.run(at, row.number)
    effects.add('batches', { organizationId: row.organizationId, id: row.id })
  }

  return {
    /** Finalizes a batch in progress that has no line left. Announces that it has changed. */
    settle,

    /** Call it with the end of a line's job. */
    lineEnded(batch: number, line: number, status: FinishedJob['status'], usage: Usage, at: number): void {
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
      effects.add('batches', { organizationId: organization_id, id: facts.id as string })
    },
  }
}

const endings = new Set(['failed', 'completed', 'expired', 'cancelled'])

/** The writer's commands for batches. */
export function batchCommands(connection: Connection, context: WriteContext) {
  const { batches, use, keys } = context
  const insert = openInsert(connection, 'batches', `${newFields}, status`)
  const inputFile = connection.scalar<number>`SELECT 1 FROM files WHERE id = ? AND organization_id = ?
    AND removed_at IS NULL`
  const one = connection.query<BatchStateRow>`SELECT ${batchStateColumns} FROM batches WHERE organization_id = ?
    AND id = ?`
  const begin = connection.statement`UPDATE batches
    SET status = 'in_progress', total = ?, model_id = ?, in_progress_at = ? WHERE number = ?`
  const fail = connection.statement`UPDATE batches SET status = 'failed', faults = ?, finished_at = ? WHERE number = ?`
  const insertLine = connection.statement`INSERT INTO batch_lines (batch, line, job_id, status, error)
    VALUES (?, ?, ?, ?, ?)`
  const move = connection.query<BatchStateRow>`UPDATE batches
    SET fed = ?, next_line = ?, next_offset = ?, failed = failed + ?, has_lines = 1 WHERE number = ?
    RETURNING ${batchStateColumns}`
  const refuse = connection.query<BatchStateRow>`UPDATE batches SET rest_error = ? WHERE number = ?
    RETURNING ${batchStateColumns}`
  const cancel = connection.statement`UPDATE batches SET status = 'cancelling', ending = 'cancelled', cancelling_at = ?
    WHERE number = ?`
  const expire = connection.statement`UPDATE batches SET status = 'finalizing', ending = 'expired', finalizing_at = ?
    WHERE number = ?`
  const finish = connection.statement`UPDATE batches SET status = ending, failed = total - completed, finished_at = ?
    WHERE number = ?`
  const ofEnded = connection.scalar<number>`SELECT number FROM batches WHERE has_lines = 1 AND finished_at IS NOT NULL
    ORDER BY number LIMIT 1`
  const dropLines = connection.statement`DELETE FROM batch_lines WHERE batch = :batch AND line IN
    (SELECT line FROM batch_lines WHERE batch = :batch ORDER BY line LIMIT :limit)`
  const withoutLines = connection.statement`UPDATE batches SET has_lines = 0 WHERE number = ?`
  const jobs = openJobRows(connection, context)

  const inState = (key: RowKey, ...states: readonly BatchStateRow['status'][]): BatchStateRow | undefined => {
    const row = one.get(key.organizationId, key.id)
    return row && states.includes(row.status) ? row : undefined
  }
  /** Changes a batch that was found, and announces it. False: there is none. */
  function change(row: BatchStateRow | undefined, write: (number: number) => void): boolean {
    if (!row) return false
    write(row.number)
    context.effects.add('batches', { organizationId: row.organizationId, id: row.id })
    return true
  }

  return {
    /** False: the batch is not in progress, or the lines were fed before. */
    feedBatch({ fed, jobs: added, refused, nextLine, nextOffset, at, ...key }: BatchFeed): boolean | Failure {
      const row = inState(key, 'in_progress')
      if (!row || row.fed !== fed || row.restError !== null) return false
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

    /** Null if stored, otherwise the id of the batch that the same key created before. */
    addBatch(batch: NewBatch): string | null {
      const { organizationId, inputFileId } = batch
      const holder = keys.assign(batch)
      if (holder !== undefined) return holder
      if (inputFile.get(inputFileId, organizationId) === undefined)
        throw invalid('input_file_id', `No such File object: ${inputFileId}`, 'not_found')
      insert({ ...batch, status: 'validating' })
      return null
    },

    /** False: there is no such batch yet. */
    cancelBatch(organizationId: string, id: string, at: number): boolean {
      const row = one.get(organizationId, id)
      if (row?.status === 'validating' || row?.status === 'in_progress') {
        change(row, number => cancel.run(at, number))
      } else if (row && row.status !== 'cancelling') {
        const state = endings.has(row.status) ? `has already ended: it is ${row.status}` : 'is finalizing'
        throw new Failure('batch_not_cancellable', `The batch ${row.id} ${state}.`)
      }
      return row !== undefined
    },

    ...({
      'batches.begin': (key, { total, modelId }, at) =>
        change(inState(key, 'validating'), number => begin.run(total, modelId, at, number)),

      'batches.fail'(key, faults, at) {
        const row = inState(key, 'validating', 'in_progress', 'finalizing', 'cancelling')
        if (!row) return false
        fail.run(JSON.stringify(faults), at, row.number)
        batches.announce(row.number, at)
        return true
      },

      'batches.refuseRest'(key, error, at) {
        const row = inState(key, 'in_progress')
        if (!row || row.restError !== null) return false
        batches.settle(refuse.get(JSON.stringify(error), row.number)!, at)
        return true
      },

      'batches.expire': (key, at) =>
        change(inState(key, 'validating', 'in_progress'), number => expire.run(at, number)),

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
    } satisfies Statements),
  }
}

const newFields = `organizationId, id, tokenId, endpoint, inputFileId, completionWindow, outputLifetimeMs, metadata, region,
  origin, traceparent, outputFileId, errorFileId, createdAt, expiresAt`
const select = `SELECT ${selected(
  `${newFields}, status, ending, modelId, faults, inProgressAt, finalizingAt, cancellingAt, finishedAt, total, completed,
  failed, fed, nextLine, nextOffset, restError`,
)}, json_object('inputTokens', input_tokens, 'cachedTokens', cached_tokens, 'outputTokens', output_tokens,
  'reasoningTokens', reasoning_tokens) AS usage FROM batches`

type BatchRow = RowOf<BatchRecord, 'faults' | 'restError' | 'usage'>

const batchOf = (row: BatchRow): BatchRecord => withJson(row, 'faults', 'restError', 'usage')

/** Reads of batches; short statements on a read-only connection. */
export function batchReads(connection: Connection) {
  const one = connection.query<BatchRow>`${select} WHERE organization_id = ? AND id = ?`
  const page = (comparison: '<' | '>', order: 'DESC' | 'ASC') =>
    connection.query<BatchRow>`${select} WHERE organization_id = ? AND id ${comparison} ? ORDER BY id ${order} LIMIT ?`
  const newest = page('<', 'DESC')
  const oldest = page('>', 'ASC')
  const unfinished = connection.query<RowKey>`SELECT organization_id AS organizationId, id FROM batches
    WHERE finished_at IS NULL ORDER BY number`
  const lines = connection.query<Omit<BatchLine, 'error'> & { error: string | null }>`SELECT line, job_id AS jobId,
    status, error FROM batch_lines WHERE batch = (SELECT number FROM batches WHERE organization_id = ? AND id = ?)
    AND line BETWEEN ? AND ? ORDER BY line`
  const running = connection.scalar<string>`SELECT job_id FROM batch_lines WHERE status = 'running' AND batch =
    (SELECT number FROM batches WHERE organization_id = ? AND id = ?)`

  return {
    'batches.find': (organizationId, id) => recordIf(one.get(organizationId, id), batchOf),
    'batches.list': (organizationId, { limit, after, oldestFirst = false }) =>
      (oldestFirst ? oldest : newest).all(organizationId, after ?? (oldestFirst ? '' : '~'), limit).map(batchOf),
    'batches.unfinished': () => unfinished.all(),
    'batches.lines': ({ organizationId, id }, from, to) =>
      lines.all(organizationId, id, from, to).map(({ error, ...line }) => ({ ...line, error: fromJson(error) })),
    'batches.running': ({ organizationId, id }) => running.all(organizationId, id),
  } satisfies Statements
}
