import { existsSync, statSync } from 'node:fs'
import { StoreRefusal } from '../refusal.ts'
import { executionContradictions } from './check-executions.ts'
import { usageContradictions } from './check-usage.ts'
import { type Connection, openDatabase } from './database.ts'
import { pathsIn } from './directory.ts'
import { brokenLinks, ledgerLength } from './ledger.ts'
import { refuseForeign, versionOf } from './migrations.ts'
import { missingResults } from './result-copies.ts'
import { holdResults } from './result-lock.ts'
import { spendContradictions } from './spend.ts'

export interface DatabaseReport {
  /** One sentence for each problem; empty if there is none. */
  findings: string[]
  schema: number
  bytes: number
  jobs: number
  events: number
  files: number
  videos: number
  ledgerRows: number
}

export interface CheckOptions {
  /** Structure and ledger only: seconds where the full check takes minutes. */
  quick?: boolean
  /** Called before each step. */
  onStep?: (step: 'structure' | 'ledger' | 'usage' | 'references' | 'jobs' | 'executions' | 'files') => void
}

/**
 * Checks the database for damage, beside a running server or without one; changes nothing. SQLite notices structural
 * damage only, so a flipped bit inside a row is found in the ledger alone, by its hash chain. Blocks the calling
 * thread. Rejects with StoreRefusal if there is no database, or one of another program or a newer schema.
 */
export async function checkDatabase(dataDir: string, { quick = false, onStep = () => {} }: CheckOptions = {}) {
  const { database } = pathsIn(dataDir)
  if (!existsSync(database)) throw new StoreRefusal(64, `There is no database in ${dataDir}.`)
  const report: DatabaseReport = {
    findings: [],
    schema: 0,
    bytes: statSync(database).size,
    jobs: 0,
    events: 0,
    files: 0,
    videos: 0,
    ledgerRows: 0,
  }
  let connection: Connection | undefined
  try {
    // A running server may remove jobs meanwhile, and erase their results.
    using _held = await holdResults(dataDir)
    connection = openDatabase(database, { readonly: true })
    refuseForeign(connection, database)
    // One snapshot for all queries, while a server continues to write.
    connection.exec('BEGIN')
    inspect(connection, report, { quick, onStep })
    if (!quick) checkResults(connection, dataDir, report)
  } catch (thrown) {
    if (thrown instanceof StoreRefusal) throw thrown
    report.findings.push(`The database cannot be read: ${(thrown as Error).message}.`)
  } finally {
    connection?.close()
  }
  return report
}

function checkResults(connection: Connection, dataDir: string, { findings }: DatabaseReport): void {
  const missing = missingResults(connection, pathsIn(dataDir).results)
  if (missing > 0) findings.push(`${missing} large results of jobs are not in their files, or not whole.`)
}

function inspect(connection: Connection, report: DatabaseReport, { quick, onStep }: Required<CheckOptions>): void {
  const { findings } = report
  onStep('structure')
  const structure = connection.pragma(quick ? 'quick_check(20)' : 'integrity_check(20)', { simple: false })
  for (const row of structure as Record<string, string>[])
    for (const line of Object.values(row)) if (line !== 'ok') findings.push(`Structure: ${line}.`)
  report.schema = versionOf(connection)

  onStep('ledger')
  report.ledgerRows = ledgerLength(connection)()
  findings.push(...brokenLinks(connection))
  if (quick) return

  onStep('usage')
  for (const { sql, sentence } of usageContradictions) {
    const rows = connection.prepare<[], number>(sql).pluck().get() ?? 0
    if (rows > 0) findings.push(sentence(rows))
  }

  onStep('references')
  const dangling = connection.pragma('foreign_key_check') as { table: string; parent: string }[]
  for (const { table, parent } of dangling.slice(0, 20))
    findings.push(`A row of ${table} refers to a missing row of ${parent}.`)

  const count = (sql: string) => connection.prepare<[], number>(sql).pluck().get() ?? 0
  const expectNone = (sql: string, sentence: (rows: number) => string) => {
    const rows = count(sql)
    if (rows > 0) findings.push(sentence(rows))
  }

  if (report.schema >= 4) findings.push(...spendContradictions(connection))

  onStep('jobs')
  report.jobs = count('SELECT count(*) FROM jobs')
  report.events = count('SELECT count(*) FROM events')
  expectNone(
    `SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger
       WHERE ledger.organization_id = jobs.organization_id AND kind = 'async' AND job_id = jobs.id)`,
    rows => `${rows} jobs have ended and are not in the ledger.`,
  )
  // A ledger row without its job is fine: the job was deleted or has expired.
  expectNone(
    `SELECT count(*) FROM ledger JOIN jobs ON jobs.organization_id = ledger.organization_id AND jobs.id = job_id
     WHERE kind = 'async' AND jobs.finished_at IS NULL`,
    rows => `${rows} ledger rows are of jobs that have not ended.`,
  )
  expectNone(
    `SELECT count(*) FROM job_counts WHERE jobs <> (SELECT count(*) FROM jobs WHERE jobs.status = job_counts.status)`,
    () => 'The counts of jobs by status do not match the jobs.',
  )
  expectNone(
    `SELECT count(*) FROM (SELECT max(sequence) AS sequence FROM events GROUP BY number)
       JOIN events USING (sequence) JOIN jobs USING (number)
     WHERE status <> CASE type WHEN 'job.started' THEN 'processing' WHEN 'job.created' THEN 'pending'
       WHEN 'job.retrying' THEN 'pending' ELSE substr(type, 5) END`,
    rows => `${rows} jobs have another status than their last event says.`,
  )

  onStep('executions')
  for (const { sql, sentence } of executionContradictions) expectNone(sql, sentence)

  expectNone(
    `SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE finished_at IS NULL GROUP BY target, object
       HAVING sum(waits = 0) <> 1)`,
    rows => `${rows} objects have webhook deliveries of which none, or several, are the next.`,
  )
  expectNone(
    `SELECT count(*) FROM webhook_deliveries WHERE (status = 'new') <> NOT EXISTS (
       SELECT 1 FROM webhook_bodies WHERE webhook_bodies.number = webhook_deliveries.number)
       AND NOT (status = 'dead' AND attempts = 0)`,
    rows => `${rows} webhook deliveries have a body and are new, or have none and are not.`,
  )

  onStep('files')
  report.files = count('SELECT count(*) FROM files')
  report.videos = count('SELECT count(*) FROM library')
  expectNone(
    `SELECT count(*) FROM stored_bytes WHERE bytes <> (SELECT coalesce(sum(bytes), 0) FROM files
       WHERE files.organization_id = stored_bytes.organization_id AND removed_at IS NULL)`,
    rows => `The stored bytes of ${rows} organizations do not match their files.`,
  )
  expectNone(
    'SELECT count(*) FROM library JOIN files USING (id) WHERE removed_at IS NOT NULL',
    rows => `${rows} files are in the library and their files are removed.`,
  )
  expectNone(
    'SELECT count(*) FROM library JOIN files USING (id) WHERE library.organization_id <> files.organization_id',
    rows => `${rows} files are in the library of another organization than their file's.`,
  )
  expectNone(
    `SELECT count(*) FROM files JOIN jobs ON jobs.id = files.job_id AND jobs.organization_id = files.organization_id
     WHERE purpose IN ('output', 'thumbnail') AND removed_at IS NULL AND status <> 'completed'`,
    rows => `${rows} files are of jobs that have made none.`,
  )
}
