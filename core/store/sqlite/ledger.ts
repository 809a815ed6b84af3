import { hash } from 'node:crypto'
import type { FinishedCall, JobError, JobRecord } from '../store.ts'
import type { Connection } from './database.ts'

/** One job that has ended: what it was, how it ended and what it cost. */
export interface LedgerEntry extends Omit<FinishedCall, 'usage'> {
  kind: JobRecord['kind']
  inputTokens: number
  outputTokens: number
}

interface LedgerRow {
  sequence: number
  job_id: string
  organization_id: string
  token_id: string
  kind: LedgerEntry['kind']
  task: LedgerEntry['task']
  model_id: string
  engine_id: string | null
  status: LedgerEntry['status']
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
const fieldsOf = (sequence: number, entry: LedgerEntry) =>
  [
    sequence,
    entry.id,
    entry.organizationId,
    entry.tokenId,
    entry.kind,
    entry.task,
    entry.modelId,
    entry.engineId,
    entry.status,
    entry.error && JSON.stringify(entry.error),
    entry.inputTokens,
    entry.outputTokens,
    entry.cost,
    entry.createdAt,
    entry.startedAt,
    entry.finishedAt,
  ] as const

/** SHA-256 over the hash before it and every field of the row: a changed, missing or moved row breaks the chain. */
const chained = (previous: Buffer, fields: readonly unknown[]): Buffer =>
  hash('sha256', previous.toString('hex') + JSON.stringify(fields), 'buffer')

/** Adds entries to the end of the chain, inside the caller's transaction. */
export function openLedger(connection: Connection) {
  // Read anew each time and not kept: a rolled-back command or another process may have moved the end.
  const last = connection.prepare<[], { sequence: number; hash: Buffer }>(
    'SELECT sequence, hash FROM ledger ORDER BY sequence DESC LIMIT 1',
  )
  const columns = `(sequence, job_id, organization_id, token_id, kind, task, model_id, engine_id, status, error,
    input_tokens, output_tokens, cost, created_at, started_at, finished_at, hash)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
  const insert = connection.prepare(`INSERT INTO ledger ${columns}`)
  const insertNew = connection.prepare(`INSERT INTO ledger ${columns} ON CONFLICT (job_id) DO NOTHING`)

  function write(statement: typeof insert, entries: readonly LedgerEntry[]): void {
    let { sequence, hash: previous } = last.get() ?? { sequence: 0, hash: genesis }
    for (const entry of entries) {
      const fields = fieldsOf(sequence + 1, entry)
      const next = chained(previous, fields)
      if (statement.run(...fields, next).changes === 0) continue
      sequence += 1
      previous = next
    }
  }

  return {
    /** Throws when a job is billed twice. */
    append: (entries: readonly LedgerEntry[]): void => write(insert, entries),
    /** Passes over what is there already, so that the same entries may be sent again. */
    appendNew: (entries: readonly LedgerEntry[]): void => write(insertNew, entries),
  }
}
export type Ledger = ReturnType<typeof openLedger>

/** Reads back a synchronous call by its job id: its ledger row is all there is of it. */
export function ledgerReads(connection: Connection) {
  const call = connection.prepare<[string, string], LedgerRow>(
    `SELECT * FROM ledger WHERE job_id = ? AND organization_id = ? AND kind = 'sync'`,
  )
  return {
    findCall(organizationId: string, id: string): FinishedCall | undefined {
      const row = call.get(id, organizationId)
      return row && callOf(row)
    },
  }
}

const callOf = (row: LedgerRow): FinishedCall => ({
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
const fieldsOfRow = ({ hash: _, ...fields }: LedgerRow) => Object.values(fields)

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
