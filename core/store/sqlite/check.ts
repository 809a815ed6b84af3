import { existsSync, statSync } from 'node:fs'
import { StoreRefusal } from '../refusal.ts'
import { type Connection, openDatabase } from './database.ts'
import { placesIn } from './directory.ts'
import { brokenLinks, ledgerLength } from './ledger.ts'
import { refuseForeign, versionOf } from './migrations.ts'

export interface DatabaseReport {
  /** One sentence for each thing that is wrong; empty when all is well. */
  findings: string[]
  schema: number
  bytes: number
  jobs: number
  ledgerRows: number
}

export interface CheckWish {
  /** Structure and ledger only: seconds where the whole check takes minutes. */
  quick?: boolean
  /** Hears what is looked at next. */
  onStep?: (step: 'structure' | 'ledger' | 'references' | 'jobs') => void
}

/**
 * Looks for damage, beside a running server or without one; changes nothing. SQLite notices structural damage only, so
 * a flipped bit inside a row is found in the ledger alone, by its chain of hashes. Blocks the calling thread.
 * Rejects with StoreRefusal when there is no database, or one of another program or a newer schema.
 */
export async function checkDatabase(dataDir: string, { quick = false, onStep = () => {} }: CheckWish = {}) {
  const { database } = placesIn(dataDir)
  if (!existsSync(database)) throw new StoreRefusal(64, `There is no database in ${dataDir}.`)
  const report: DatabaseReport = { findings: [], schema: 0, bytes: statSync(database).size, jobs: 0, ledgerRows: 0 }
  let connection: Connection | undefined
  try {
    connection = openDatabase(database, { readonly: true })
    refuseForeign(connection, database)
    // One moment for all questions, while a server goes on writing.
    connection.exec('BEGIN')
    inspect(connection, report, { quick, onStep })
  } catch (thrown) {
    if (thrown instanceof StoreRefusal) throw thrown
    report.findings.push(`The database cannot be read: ${(thrown as Error).message}.`)
  } finally {
    connection?.close()
  }
  return report
}

function inspect(connection: Connection, report: DatabaseReport, { quick, onStep }: Required<CheckWish>): void {
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

  onStep('references')
  const dangling = connection.pragma('foreign_key_check') as { table: string; parent: string }[]
  for (const { table, parent } of dangling.slice(0, 20))
    findings.push(`A row of ${table} refers to one of ${parent} that is not there.`)

  onStep('jobs')
  const count = (sql: string) => connection.prepare<[], number>(sql).pluck().get() ?? 0
  report.jobs = count('SELECT count(*) FROM jobs')
  const unbilled = count(
    'SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL AND id NOT IN (SELECT job_id FROM ledger)',
  )
  if (unbilled > 0) findings.push(`${unbilled} jobs have ended and are not in the ledger.`)
  const unfinished = count(
    `SELECT count(*) FROM ledger WHERE kind = 'async' AND job_id NOT IN (SELECT id FROM jobs WHERE finished_at IS NOT NULL)`,
  )
  if (unfinished > 0) findings.push(`${unfinished} ledger rows are of jobs that have not ended or are not there.`)
  const miscounted = count(
    `SELECT count(*) FROM job_counts WHERE jobs <> (SELECT count(*) FROM jobs WHERE jobs.status = job_counts.status)`,
  )
  if (miscounted > 0) findings.push('The counts of jobs by status do not match the jobs.')
}
