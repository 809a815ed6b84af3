import { hash } from 'node:crypto'
import { addLedgerRow, chainedColumns, firstColumns, type LedgerRows, ledgerColumns } from '../ledger-rows.ts'
import type { FinishedJob } from '../store.ts'
import { type RowOf, recordIf, selected, withJson } from './columns.ts'
import { type Connection, sqliteCode } from './database.ts'
import { openInsertRows, type Value } from './insert-rows.ts'
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
const names = ['sequence', ...ledgerColumns, 'hash', 'user_id', 'workflow_id']
/** Rows of one statement. */
const rowsAtOnce = 16

/** The last row of the chain. */
interface End {
  sequence: number
  hash: string
}

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
  const values = `(${names.map(() => '?').join(', ')})`
  const columns = `(${names.join(', ')}) VALUES ${values}`
  const insert = connection.statement`INSERT INTO ledger ${columns}`
  const insertNew = connection.statement`INSERT INTO ledger ${columns}
    ON CONFLICT (organization_id, kind, job_id) DO NOTHING`
  const insertMany = openInsertRows(connection, 'ledger', names, rowsAtOnce)

  const spentOnFallback = openFallbackSpend(connection)

  /** The last row as far as known: another process may have added rows, then the next number is taken. */
  let end: End | undefined
  function endOf(): End {
    if (end) return end
    const row = last.get()
    return (end = row ? { sequence: row.sequence, hash: row.hash.toString('hex') } : { sequence: 0, hash: genesis })
  }

  /** Returns the values of a row that follows `before`, and the end of the chain with it. */
  function link(row: LedgerRows, owner: Attribution, before: End): { fields: Value[]; next: End } {
    const sequence = before.sequence + 1
    const hash = chained(before.hash, [sequence, ...row.slice(0, chainedColumns.length), ...attributed(owner)])
    const fields = [sequence, ...row, Buffer.from(hash, 'hex'), owner.userId, owner.workflowId]
    return { fields, next: { sequence, hash } }
  }

  /** Counts a row that was added. */
  function count(row: LedgerRows, owner: Attribution, sequence: number): void {
    totals.add(row, owner, sequence)
    recent.add(row)
    spentOnFallback(row)
  }

  function addOne(statement: typeof insert, row: LedgerRows, execution: number | null): void {
    const owner = totals.attributionOf(row[tokenAt] as string, execution)
    const { fields, next } = link(row, owner, endOf())
    if (statement.run(fields).changes === 0) return
    end = next
    count(row, owner, next.sequence)
  }

  function add(statement: typeof insert, row: LedgerRows, execution: number | null): void {
    try {
      addOne(statement, row, execution)
    } catch (thrown) {
      if (sqliteCode(thrown) !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw thrown
      end = undefined
      addOne(statement, row, execution)
    }
  }

  /** Adds rows by one statement. Returns false, and has changed nothing, if one of them or its number is in the ledger. */
  function addMany(rows: readonly LedgerRows[]): boolean {
    const owners = rows.map(row => totals.attributionOf(row[tokenAt] as string, null))
    let next = endOf()
    const linked = rows.map((row, at) => {
      const { fields, next: end } = link(row, owners[at]!, next)
      next = end
      return fields
    })
    try {
      insertMany(linked)
    } catch (thrown) {
      if (/^SQLITE_CONSTRAINT_(PRIMARYKEY|UNIQUE)$/.test(sqliteCode(thrown) ?? '')) return false
      throw thrown
    }
    end = next
    const first = next.sequence - rows.length + 1
    rows.forEach((row, at) => count(row, owners[at]!, first + at))
    return true
  }

  return {
    /** Throws when the job is billed twice. `execution`: the number of the execution that the job ran for. */
    append(job: FinishedJob, execution: number | null = null): void {
      const row: LedgerRows = []
      addLedgerRow(row, 'async', job)
      add(insert, row, execution)
    },
    /** Appends the rows of synchronous calls. Skips those that are recorded already: the same may be sent again. */
    appendCalls(values: LedgerRows): void {
      const rows = Array.from({ length: values.length / width }, (_, at) => values.slice(at * width, (at + 1) * width))
      for (let at = 0; at < rows.length; ) {
        const some = rows.slice(at, at + rowsAtOnce)
        at += some.length
        if (some.length < rowsAtOnce || !addMany(some)) for (const row of some) add(insertNew, row, null)
      }
    },
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
