import { hash } from 'node:crypto'
import type { FinishedJob, JobError, JobRecord } from '../store.ts'
import { type Connection, sqliteCode } from './database.ts'
import { type UsageRow, usageOfRow } from './usage-columns.ts'
import { type Attribution, openUsageTotals, type UsageTotals } from './usage-totals.ts'

export interface LedgerRow extends UsageRow {
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
  cost: number
  created_at: number
  started_at: number | null
  finished_at: number
  hash: Buffer
  user_id: string | null
  workflow_id: string | null
}

const genesis = Buffer.alloc(32)

/** The columns that every row has, without the hash: it is computed over them, in this order. */
const firstColumns = [
  'sequence',
  'job_id',
  'organization_id',
  'token_id',
  'kind',
  'task',
  'model_id',
  'engine_id',
  'status',
  'error',
  'input_tokens',
  'output_tokens',
  'cost',
  'created_at',
  'started_at',
  'finished_at',
] as const satisfies readonly (keyof LedgerRow)[]

/** The columns that follow in the hash of a row, unless it was written before they existed. */
const laterColumns = [
  'cached_tokens',
  'reasoning_tokens',
  'images',
  'video_ms',
  'audio_ms',
  'characters',
  'documents',
  'gpu_ms',
  'energy_mj',
] as const satisfies readonly (keyof LedgerRow)[]

/** The fields of a row, in the order of the columns above. */
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
    job.usage.cachedTokens ?? 0,
    job.usage.reasoningTokens ?? 0,
    job.usage.images ?? 0,
    job.usage.videoMs ?? 0,
    job.usage.audioMs ?? 0,
    job.usage.characters ?? 0,
    job.usage.documents ?? 0,
    job.usage.gpuMs ?? 0,
    job.usage.energyMj ?? null,
  ] as const

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
  const last = connection.prepare<[], { sequence: number; hash: Buffer }>(
    'SELECT sequence, hash FROM ledger ORDER BY sequence DESC LIMIT 1',
  )
  const names = [...firstColumns, ...laterColumns, 'hash', 'user_id', 'workflow_id']
  const columns = `(${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`
  const insert = connection.prepare(`INSERT INTO ledger ${columns}`)
  const insertNew = connection.prepare(
    `INSERT INTO ledger ${columns} ON CONFLICT (organization_id, kind, job_id) DO NOTHING`,
  )

  /** The last row as far as known: another process may have added rows, then the next number is taken. */
  let end: { sequence: number; hash: Buffer } | undefined
  const endOf = () => (end ??= last.get() ?? { sequence: 0, hash: genesis })

  function addOne(statement: typeof insert, kind: JobRecord['kind'], job: FinishedJob, execution: number | null): void {
    const { sequence, hash: previous } = endOf()
    const fields = fieldsOf(sequence + 1, kind, job)
    const owner = totals.attributionOf(job.tokenId, execution)
    const next = chained(previous, [...fields, ...attributed(owner)])
    if (statement.run(...fields, next, owner.userId, owner.workflowId).changes === 0) return
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
    /** Returns a function that reverts to this point when later commands are rolled back. */
    mark(): () => void {
      const snapshot = end
      return () => {
        end = snapshot
      }
    },
    /** Call it when the transaction was rolled back. */
    forget(): void {
      end = undefined
    },
  }
}
export type Ledger = ReturnType<typeof openLedger>

/** Reads a synchronous call by its job id: its ledger row is its only row. */
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
  usage: usageOfRow(row),
  cost: row.cost,
  createdAt: row.created_at,
  startedAt: row.started_at,
  finishedAt: row.finished_at,
})

/** How many rows the ledger has. No row is ever deleted, so the last sequence number is the count. */
export const ledgerLength = (connection: Connection) => {
  const last = connection.prepare<[], { sequence: number | null }>('SELECT max(sequence) AS sequence FROM ledger')
  return (): number => last.get()?.sequence ?? 0
}

/** The same as `fieldsOf`, but of the stored values without parsing: a flipped bit inside a text must show. */
const fieldsOfRow = (row: LedgerRow) => [
  ...(row.gpu_ms === null ? firstColumns : [...firstColumns, ...laterColumns]).map(column => row[column]),
  ...attributed({ userId: row.user_id, workflowId: row.workflow_id }),
]

/** Checks the whole chain. Returns one sentence for each break, at most `limit`. */
export function brokenLinks(connection: Connection, onRow: (row: LedgerRow) => void = () => {}, limit = 20): string[] {
  const rows = connection.prepare<[], LedgerRow>('SELECT * FROM ledger ORDER BY sequence').iterate()
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
