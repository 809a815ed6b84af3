import { hash } from 'node:crypto'
import type { FinishedJob, JobError, JobRecord } from '../store.ts'
import { type Connection, sqliteCode } from './database.ts'

export interface LedgerRow {
  sequence: number
  job_id: string
  organization_id: string
  token_id: string
  kind: JobRecord['kind']
  task: FinishedJob['task']
  model_id: string
  engine_id: string | null
  status: FinishedJob['status']
  error: string | null
  input_tokens: number
  output_tokens: number
  cost: number
  created_at: number
  started_at: number | null
  finished_at: number
  hash: Buffer
}

const genesis = Buffer.alloc(32)

/** What a row holds, in the order of its columns, without the hash. */
const fieldsOf = (sequence: number, kind: JobRecord['kind'], job: FinishedJob) =>
  [
    sequence,
    job.id,
    job.organizationId,
    job.tokenId,
    kind,
    job.task,
    job.modelId,
    job.engineId,
    job.status,
    job.error && JSON.stringify(job.error),
    job.usage.inputTokens,
    job.usage.outputTokens,
    job.cost,
    job.createdAt,
    job.startedAt,
    job.finishedAt,
  ] as const

/** SHA-256 over the hash before it and every field of the row: a changed, missing or moved row breaks the chain. */
const chained = (previous: Buffer, fields: readonly unknown[]): Buffer =>
  hash('sha256', previous.toString('hex') + JSON.stringify(fields), 'buffer')

/** Adds rows to the end of the chain, inside the caller's transaction. */
export function openLedger(connection: Connection) {
  const last = connection.prepare<[], { sequence: number; hash: Buffer }>(
    'SELECT sequence, hash FROM ledger ORDER BY sequence DESC LIMIT 1',
  )
  const columns = `(sequence, job_id, organization_id, token_id, kind, task, model_id, engine_id, status, error,
    input_tokens, output_tokens, cost, created_at, started_at, finished_at, hash)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const insert = connection.prepare(`INSERT INTO ledger ${columns}`)
  const insertNew = connection.prepare(
    `INSERT INTO ledger ${columns} ON CONFLICT (organization_id, kind, job_id) DO NOTHING`,
  )

  /** The last row, as far as is known: another process may have added some, whose numbers are then taken. */
  let end: { sequence: number; hash: Buffer } | undefined
  const endOf = () => (end ??= last.get() ?? { sequence: 0, hash: genesis })

  function addOne(statement: typeof insert, kind: JobRecord['kind'], job: FinishedJob): void {
    const { sequence, hash: previous } = endOf()
    const fields = fieldsOf(sequence + 1, kind, job)
    const next = chained(previous, fields)
    if (statement.run(...fields, next).changes > 0) end = { sequence: sequence + 1, hash: next }
  }

  function add(statement: typeof insert, kind: JobRecord['kind'], jobs: readonly FinishedJob[]): void {
    for (const job of jobs)
      try {
        addOne(statement, kind, job)
      } catch (thrown) {
        if (sqliteCode(thrown) !== 'SQLITE_CONSTRAINT_PRIMARYKEY') throw thrown
        end = undefined
        addOne(statement, kind, job)
      }
  }

  return {
    /** Throws when a job is billed twice. */
    append: (jobs: readonly FinishedJob[]): void => add(insert, 'async', jobs),
    /** Synchronous calls. Passes over what is there already, so that the same ones may be sent again. */
    appendCalls: (calls: readonly FinishedJob[]): void => add(insertNew, 'sync', calls),
    /** Which row was the last so far, to come back to when what follows is undone. */
    mark(): () => void {
      const then = end
      return () => {
        end = then
      }
    },
    /** The transaction was undone. */
    forget(): void {
      end = undefined
    },
  }
}
export type Ledger = ReturnType<typeof openLedger>

/** Reads back a synchronous call by its job id: its ledger row is all there is of it. */
export function ledgerReads(connection: Connection) {
  const call = connection.prepare<[string, string], LedgerRow>(
    `SELECT * FROM ledger WHERE organization_id = ? AND kind = 'sync' AND job_id = ?`,
  )
  return {
    findCall: (organizationId: string, id: string): FinishedJob | undefined => {
      const row = call.get(organizationId, id)
      return row && callOf(row)
    },
  }
}

export const callOf = (row: LedgerRow): FinishedJob => ({
  id: row.job_id,
  organizationId: row.organization_id,
  tokenId: row.token_id,
  task: row.task,
  modelId: row.model_id,
  engineId: row.engine_id,
  status: row.status,
  error: row.error === null ? null : (JSON.parse(row.error) as JobError),
  usage: { inputTokens: row.input_tokens, outputTokens: row.output_tokens },
  cost: row.cost,
  createdAt: row.created_at,
  startedAt: row.started_at,
  finishedAt: row.finished_at,
})

/** How many rows the ledger has. Nothing is ever deleted from it, so its last sequence says so without counting. */
export const ledgerLength = (connection: Connection) => {
  const last = connection.prepare<[], { sequence: number | null }>('SELECT max(sequence) AS sequence FROM ledger')
  return (): number => last.get()?.sequence ?? 0
}

/** The same as `fieldsOf`, of what is stored and not of what it means: a flip inside a text must show. */
const fieldsOfRow = (row: LedgerRow) => Object.values(row).slice(0, -1)

/** Walks the whole chain. Returns one sentence for each break, at most `most`. */
export function brokenLinks(connection: Connection, onRow: () => void = () => {}, most = 20): string[] {
  const rows = connection.prepare<[], LedgerRow>('SELECT * FROM ledger ORDER BY sequence').iterate()
  const found: string[] = []
  let previous: Buffer = genesis
  let expected = 1
  for (const row of rows) {
    onRow()
    if (row.sequence !== expected) found.push(`The ledger jumps from row ${expected - 1} to row ${row.sequence}.`)
    else if (!chained(previous, fieldsOfRow(row)).equals(row.hash))
      found.push(`Ledger row ${row.sequence} (job ${row.job_id}) does not match its hash.`)
    if (found.length >= most) break
    // Goes on from what is stored, so that one flipped bit is one finding and not all that follow.
    previous = row.hash
    expected = row.sequence + 1
  }
  return found
}
