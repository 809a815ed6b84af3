import { hash } from 'node:crypto'
import { addLedgerRow, chainedColumns, firstColumns, type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import type { FinishedJob } from '../store.ts'
import { type RowOf, recordIf, selected, withJson } from './columns.ts'
import { type Connection, sqliteCode } from './database.ts'
import { openRecentRuns, type RecentRuns } from './recent-runs.ts'
import { openFallbackSpend } from './spend.ts'
import { usageJson } from './usage-columns.ts'
import { type Attribution, openUsageTotals, type UsageTotals } from './usage-totals.ts'

/** A synchronous call as its ledger row has it: JSON as text. */
export type CallRow = RowOf<FinishedJob, 'error' | 'usage'>
export const callColumns = `job_id AS id, ${usageJson} AS usage, ${selected(
  'organizationId, tokenId, task, modelId, engineId, status, error, cost, createdAt, startedAt, referenceQueueMs, finishedAt, requestedModel, fallbackReason, timeToFirstTokenMs',
)}`

const genesis = '0'.repeat(64)

/** The fields of an attribution for the hash: none if there is none, as in rows older than it. */
const attributed = ({ userId, workflowId }: Attribution): readonly (string | null)[] =>
  userId === null && workflowId === null ? [] : [userId, workflowId]

/**
 * SHA-256 over the previous hash and every field of the row: a changed, missing or moved row breaks the chain. As hexadecimal
 * text, which costs half of what a buffer does.
 */
const chained = (previous: string, fields: readonly unknown[]): string =>
  hash('sha256', previous + JSON.stringify(fields), 'hex')

const width = ledgerColumns.length
const tokenAt = ledgerColumns.indexOf('token_id')

/**
 * Appends rows to the chain, inside the caller's transaction, and adds those that are new to the sums of usage and to the
 * recent runs.
 */
export function openLedger(
  connection: Connection,
  totals: UsageTotals = openUsageTotals(connection),
  recent: Pick<RecentRuns, 'add'> = openRecentRuns(connection),
) {
  const last = connection.query<{ sequence: number; hash: Buffer }>`SELECT sequence, hash FROM ledger
    ORDER BY sequence DESC LIMIT 1`
  const names = ['sequence', ...ledgerColumns, 'hash', 'user_id', 'workflow_id']
  const columns = `(${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  const insert = connection.statement`INSERT INTO ledger ${columns}`
  const insertNew = connection.statement`INSERT INTO ledger ${columns}
    ON CONFLICT (organization_id, kind, job_id) DO NOTHING`

  const spentOnFallback = openFallbackSpend(connection)

  /** The last row as far as known: another process may have added rows, then the next number is taken. */
  let end: { sequence: number; hash: string } | undefined
  function endOf() {
    if (end) return end
    const row = last.get()
    return (end = row ? { sequence: row.sequence, hash: row.hash.toString('hex') } : { sequence: 0, hash: genesis })
  }

  function addOne(statement: typeof insert, row: LedgerRows, execution: number | null): void {
    const { sequence, hash: previous } = endOf()
    const owner = totals.attributionOf(row[tokenAt] as string, execution)
    const fields: unknown[] = [sequence + 1, ...row]
    const next = chained(previous, [...fields.slice(0, chainedColumns.length + 1), ...attributed(owner)])
    fields.push(Buffer.from(next, 'hex'), owner.userId, owner.workflowId)
    if (statement.run(fields).changes === 0) return
    end = { sequence: sequence + 1, hash: next }
    totals.add(row, owner, sequence + 1)
    recent.add(row)
    spentOnFallback(row)
  }

  function add(statement: typeof insert, rows: LedgerRows, execution: number | null): void {
    for (let at = 0; at < rows.length; at += width) {
      const row = rows.slice(at, at + width)
      try {
        addOne(statement, row, execution)
      } catch (thrown) {
        if (sqliteCode(thrown) !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw thrown
        end = undefined
        addOne(statement, row, execution)
      }
    }
  }

  return {
    /** Throws when the job is billed twice. `execution`: the number of the execution that the job ran for. */
    append(job: FinishedJob, execution: number | null = null): void {
      const row: LedgerRows = []
      addLedgerRow(row, 'async', job)
      add(insert, row, execution)
    },
    /** Appends the rows of synchronous calls. Skips those that are recorded already: the same may be sent again. */
    appendCalls: (rows: LedgerRows): void => add(insertNew, rows, null),
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

/** The fields of a row for its hash, as they are stored: a flipped bit inside a text must show. */
const fieldsOfRow = (row: LedgerRow) => [
  row.sequence,
  ...(row.gpu_ms === null ? firstColumns : chainedColumns).map(column => row[column]),
  ...attributed({ userId: row.user_id, workflowId: row.workflow_id }),
]

/** Checks the whole chain. Returns one sentence for each break, at most `limit`. */
export function brokenLinks(connection: Connection, onRow: (row: LedgerRow) => void = () => {}, limit = 20): string[] {
  const rows = connection.query<LedgerRow>`SELECT * FROM ledger ORDER BY sequence`.iterate()
  const found: string[] = []
  let previous = genesis
  let expected = 1
  for (const row of rows) {
    onRow(row)
    if (row.sequence !== expected) found.push(`The ledger jumps from row ${expected - 1} to row ${row.sequence}.`)
    else if (chained(previous, fieldsOfRow(row)) !== row.hash.toString('hex'))
      found.push(`Ledger row ${row.sequence} (job ${row.job_id}) does not match its hash.`)
    if (found.length >= limit) break
    // Continues from the stored hash, so that one flipped bit is one finding and not one for every later row.
    previous = row.hash.toString('hex')
    expected = row.sequence + 1
  }
  return found
}
