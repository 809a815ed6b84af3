import { hash } from 'node:crypto'
import type { Task } from '../../tasks/tasks.ts'
import type { Connection } from './database.ts'

/** One job that has ended, and what it cost. */
export interface LedgerEntry {
  jobId: string
  organizationId: string
  tokenId: string
  task: Task
  modelId: string
  status: 'completed' | 'failed' | 'cancelled'
  inputTokens: number
  outputTokens: number
  cost: number
  at: number
}

interface LedgerRow {
  sequence: number
  job_id: string
  organization_id: string
  token_id: string
  task: Task
  model_id: string
  status: LedgerEntry['status']
  input_tokens: number
  output_tokens: number
  cost: number
  at: number
  hash: Buffer
}

const genesis = Buffer.alloc(32)

/** SHA-256 over the hash before it and every field of the row: a changed, missing or moved row breaks the chain. */
function chained(previous: Buffer, sequence: number, entry: LedgerEntry): Buffer {
  const fields = [
    previous.toString('hex'),
    sequence,
    entry.jobId,
    entry.organizationId,
    entry.tokenId,
    entry.task,
    entry.modelId,
    entry.status,
    entry.inputTokens,
    entry.outputTokens,
    entry.cost,
    entry.at,
  ]
  return hash('sha256', JSON.stringify(fields), 'buffer')
}

/** Adds entries to the end of the chain, inside the caller's transaction. Throws when a job is billed twice. */
export function openLedger(connection: Connection) {
  // Read anew each time and not kept: a rolled-back command or another process may have moved the end.
  const last = connection.prepare<[], { sequence: number; hash: Buffer }>(
    'SELECT sequence, hash FROM ledger ORDER BY sequence DESC LIMIT 1',
  )
  const insert = connection.prepare(
    `INSERT INTO ledger (sequence, job_id, organization_id, token_id, task, model_id, status, input_tokens,
       output_tokens, cost, at, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  return {
    append(entries: readonly LedgerEntry[]): void {
      let { sequence, hash: previous } = last.get() ?? { sequence: 0, hash: genesis }
      for (const entry of entries) {
        sequence += 1
        previous = chained(previous, sequence, entry)
        insert.run(
          sequence,
          entry.jobId,
          entry.organizationId,
          entry.tokenId,
          entry.task,
          entry.modelId,
          entry.status,
          entry.inputTokens,
          entry.outputTokens,
          entry.cost,
          entry.at,
          previous,
        )
      }
    },
  }
}
export type Ledger = ReturnType<typeof openLedger>

/** How many rows the ledger has. Nothing is ever deleted from it, so its last sequence says so without counting. */
export const ledgerLength = (connection: Connection) => {
  const last = connection.prepare<[], { sequence: number | null }>('SELECT max(sequence) AS sequence FROM ledger')
  return (): number => last.get()?.sequence ?? 0
}

/** Walks the whole chain. Returns one sentence for each break, at most `most`. */
export function brokenLinks(connection: Connection, onRow: () => void = () => {}, most = 20): string[] {
  const rows = connection.prepare<[], LedgerRow>('SELECT * FROM ledger ORDER BY sequence').iterate()
  const found: string[] = []
  let previous: Buffer = genesis
  let expected = 1
  for (const row of rows) {
    onRow()
    const entry: LedgerEntry = {
      jobId: row.job_id,
      organizationId: row.organization_id,
      tokenId: row.token_id,
      task: row.task,
      modelId: row.model_id,
      status: row.status,
      inputTokens: row.input_tokens,
      outputTokens: row.output_tokens,
      cost: row.cost,
      at: row.at,
    }
    if (row.sequence !== expected) found.push(`The ledger jumps from row ${expected - 1} to row ${row.sequence}.`)
    else if (!chained(previous, row.sequence, entry).equals(row.hash))
      found.push(`Ledger row ${row.sequence} (job ${row.job_id}) does not match its hash.`)
    if (found.length >= most) break
    // Goes on from what is stored, so that one flipped bit is one finding and not all that follow.
    previous = row.hash
    expected = row.sequence + 1
  }
  return found
}
