import { hash } from 'node:crypto'
import type { FinishedJob, JobRecord } from '../store.ts'
import { type RowOf, recordIf, selected, withJson } from './columns.ts'
import { type Connection, sqliteCode } from './database.ts'
import { usageColumnNames, usageJson, usageValues } from './usage-columns.ts'
import { type Attribution, openUsageTotals, type UsageTotals } from './usage-totals.ts'

/** A synchronous call as its ledger row has it: JSON as text. */
export type CallRow = RowOf<FinishedJob, 'error' | 'usage'>
export const callColumns = `job_id AS id, ${usageJson} AS usage, ${selected(
  'organizationId, tokenId, task, modelId, engineId, status, error, cost, createdAt, startedAt, referenceQueueMs, finishedAt, requestedModel, fallbackReason',
)}`

const genesis = Buffer.alloc(32)

/** The columns that every row has, without the hash: it is computed over them, in this order. */
const firstColumns =
  'sequence, job_id, organization_id, token_id, kind, task, model_id, engine_id, status, error, input_tokens, output_tokens, cost, created_at, started_at, finished_at'.split(
    ', ',
  )

/** The columns that follow in the hash of a row, unless it was written before they existed. */
const laterColumns = usageColumnNames.filter(name => !firstColumns.includes(name))

/** The columns that are not in the hash, or not in this order. */
const unchainedColumns = ['hash', 'user_id', 'workflow_id', 'reference_queue_ms', 'requested_model', 'fallback_reason']

/** The fields of a row, in the order of the columns above. */
const fieldsOf = (sequence: number, kind: JobRecord['kind'], job: FinishedJob) => {
  const { id, organizationId, tokenId, task, modelId, engineId, status, error, cost, createdAt, startedAt } = job
  const [inputTokens, cachedTokens, outputTokens, ...others] = usageValues(job.usage)
  const work = [sequence, id, organizationId, tokenId, kind, task, modelId, engineId, status]
  const used = [inputTokens, outputTokens, cost, createdAt, startedAt, job.finishedAt, cachedTokens, ...others]
  return [...work, error && JSON.stringify(error), ...used]
}

/** The fields of an attribution for the hash: none if there is none, as in rows older than it. */
const attributed = ({ userId, workflowId }: Attribution): readonly (string | null)[] =>
  userId === null && workflowId === null ? [] : [userId, workflowId]

/** SHA-256 over the previous hash and every field of the row: a changed, missing or moved row breaks the chain. */
const chained = (previous: Buffer, fields: readonly unknown[]): Buffer =>
  hash('sha256', previous.toString('hex') + JSON.stringify(fields), 'buffer')

/**
 * Appends rows to the chain, inside the caller's transaction, and adds them to the sums of usage. Calls `billed` for each
 * row that is new.
 */
export function openLedger(
  connection: Connection,
  {
    totals = openUsageTotals(connection),
    billed = () => {},
  }: { totals?: UsageTotals; billed?: (job: FinishedJob) => void } = {},
) {
  const last = connection.query<{ sequence: number; hash: Buffer }>`SELECT sequence, hash FROM ledger
    ORDER BY sequence DESC LIMIT 1`
  const names = [...firstColumns, ...laterColumns, ...unchainedColumns]
  const columns = `(${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  const insert = connection.statement`INSERT INTO ledger ${columns}`
  const insertNew = connection.statement`INSERT INTO ledger ${columns}
    ON CONFLICT (organization_id, kind, job_id) DO NOTHING`

  /** The last row as far as known: another process may have added rows, then the next number is taken. */
  let end: { sequence: number; hash: Buffer } | undefined
  const endOf = () => (end ??= last.get() ?? { sequence: 0, hash: genesis })

  function addOne(statement: typeof insert, kind: JobRecord['kind'], job: FinishedJob, execution: number | null): void {
    const { sequence, hash: previous } = endOf()
    const fields = fieldsOf(sequence + 1, kind, job)
    const owner = totals.attributionOf(job.tokenId, execution)
    const next = chained(previous, [...fields, ...attributed(owner)])
    const { referenceQueueMs, requestedModel = null, fallbackReason = null } = job
    const more = [next, owner.userId, owner.workflowId, referenceQueueMs, requestedModel, fallbackReason]
    const { changes } = statement.run(...fields, ...more)
    if (changes === 0) return
    end = { sequence: sequence + 1, hash: next }
    totals.add(kind, job, owner, sequence + 1)
    billed(job)
  }

  function add(
    statement: typeof insert,
    kind: JobRecord['kind'],
    jobs: readonly FinishedJob[],
    execution: number | null = null,
  ): void {
    for (const job of jobs)
      try {
        addOne(statement, kind, job, execution)
      } catch (thrown) {
        if (sqliteCode(thrown) !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw thrown
        end = undefined
        addOne(statement, kind, job, execution)
      }
  }

  return {
    /** Throws when a job is billed twice. `execution`: the number of the execution that the jobs ran for. */
    append: (jobs: readonly FinishedJob[], execution: number | null = null): void =>
      add(insert, 'async', jobs, execution),
    /** Appends synchronous calls. Skips those that are recorded already, so that the same ones may be sent again. */
    appendCalls: (calls: readonly FinishedJob[]): void => add(insertNew, 'sync', calls),
    mark() {
      const snapshot = end
      return () => void (end = snapshot)
    },
    forget(): void {
      end = undefined
    },
  }
}
export type Ledger = ReturnType<typeof openLedger>

/** Reads a synchronous call by its job id: its ledger row is its only row. */
export function openCallRows(connection: Connection) {
  const call = connection.query<CallRow>`SELECT ${callColumns} FROM ledger WHERE organization_id = ? AND kind = 'sync'
    AND job_id = ?`
  return (organizationId: string, id: string): FinishedJob | undefined => recordIf(call.get(organizationId, id), callOf)
}

export const callOf = (row: CallRow): FinishedJob => withJson(row, 'error', 'usage')

/** How many rows the ledger has. No row is ever deleted, so the last sequence number is the count. */
export const ledgerLength = (connection: Connection) => {
  const last = connection.scalar<number | null>`SELECT max(sequence) FROM ledger`
  return (): number => last.get() ?? 0
}

/** A row of any schema, with its columns. */
type LedgerRow = Record<string, unknown> & { sequence: number; job_id: string; cost: number; finished_at: number } & {
  hash: Buffer
  gpu_ms: number | null
  user_id: string | null
  workflow_id: string | null
}

/** The same as `fieldsOf`, but of the stored values without parsing: a flipped bit inside a text must show. */
const fieldsOfRow = (row: LedgerRow) => [
  ...(row.gpu_ms === null ? firstColumns : [...firstColumns, ...laterColumns]).map(column => row[column]),
  ...attributed({ userId: row.user_id, workflowId: row.workflow_id }),
]

/** Checks the whole chain. Returns one sentence for each break, at most `limit`. */
export function brokenLinks(connection: Connection, onRow: (row: LedgerRow) => void = () => {}, limit = 20): string[] {
  const rows = connection.query<LedgerRow>`SELECT * FROM ledger ORDER BY sequence`.iterate()
  const found: string[] = []
  let previous: Buffer = genesis
  let expected = 1
  for (const row of rows) {
    onRow(row)
    if (row.sequence !== expected) found.push(`The ledger jumps from row ${expected - 1} to row ${row.sequence}.`)
    else if (!chained(previous, fieldsOfRow(row)).equals(row.hash))
      found.push(`Ledger row ${row.sequence} (job ${row.job_id}) does not match its hash.`)
    if (found.length >= limit) break
    // Continues from the stored hash, so that one flipped bit is one finding and not one for every later row.
    previous = row.hash
    expected = row.sequence + 1
  }
  return found
}
