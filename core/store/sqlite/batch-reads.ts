import type { Statements } from '../method-table.ts'
import type { BatchKey, BatchLine, BatchRecord } from '../store.ts'
import type { BatchStateRow } from './batch-flow.ts'
import type { Connection } from './database.ts'

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
  const running = connection
    .prepare<[string, string], string>(
      `SELECT job_id FROM batch_lines WHERE status = 'running'
         AND batch = (SELECT number FROM batches WHERE organization_id = ? AND id = ?)`,
    )
    .pluck()

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
