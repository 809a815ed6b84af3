import { existsSync, statSync } from 'node:fs'
import { monthOf } from '../../month.ts'
import { StoreRefusal } from '../refusal.ts'
import { deferredUntil } from '../store.ts'
import { type Connection, openDatabase } from './database.ts'
import { pathsIn } from './directory.ts'
import { brokenLinks, ledgerLength } from './ledger.ts'
import { refuseForeign, schemaVersionOf } from './migrations.ts'
import { holdResults, missingResults } from './result-files.ts'
import { spendContradictions } from './spend.ts'
import { detailDimensions, ledgerSums, sumColumns } from './usage-totals.ts'

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

interface DatabaseCheckOptions {
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
export async function checkDatabase(dataDir: string, { quick = false, onStep = () => {} }: DatabaseCheckOptions = {}) {
  const { database, results } = pathsIn(dataDir)
  if (!existsSync(database)) throw new StoreRefusal(64, `There is no database in ${dataDir}.`)
  const none = { jobs: 0, events: 0, files: 0, videos: 0, ledgerRows: 0 }
  const report: DatabaseReport = { findings: [], schema: 0, bytes: statSync(database).size, ...none }
  // A running server may remove jobs meanwhile, and erase their results.
  using _held = await holdResults(dataDir)
  readSnapshot(database, { findings: report.findings, what: 'database' }, connection => {
    inspect(connection, report, { quick, onStep })
    const missing = quick ? 0 : missingResults(connection, results)
    if (missing > 0) report.findings.push(`${missing} large results of jobs are not in their files, or not whole.`)
  })
  return report
}

/** Runs queries on one snapshot, while a server continues to write. What SQLite cannot read is a finding. */
function readSnapshot(
  database: string,
  { findings, what }: { findings: string[]; what: string },
  read: (connection: Connection) => void,
): void {
  try {
    using connection = openDatabase(database, { readonly: true })
    refuseForeign(connection, database)
    connection.exec('BEGIN')
    read(connection)
  } catch (thrown) {
    if (thrown instanceof StoreRefusal) throw thrown
    findings.push(`The ${what} cannot be read: ${(thrown as Error).message}.`)
  }
}

/** The ledger rows of a calendar month in UTC, by the time at which their work ended. */
interface LedgerMonth {
  /** First millisecond of the month. */
  start: number
  rows: number
  /** Millionths of the currency unit. */
  cost: number
}

interface LedgerReport {
  rows: number
  /** Oldest first. */
  months: LedgerMonth[]
  /** One sentence for each break of the chain, at most 20, and for sums that do not match; empty if all is right. */
  findings: string[]
}

/**
 * Checks the hash chain of the ledger, adds up its rows by month, and compares the sums of what was spent. Works beside a
 * running server and changes nothing. Blocks the calling thread: about 5 µs a row. `onRow` is called after every row.
 * Throws StoreRefusal if there is no database that this program knows.
 */
export function verifyLedger(dataDir: string, onRow: (rows: number) => void = () => {}): LedgerReport {
  const { database } = pathsIn(dataDir)
  if (!existsSync(database))
    throw new StoreRefusal(64, `There is no database in ${dataDir}. Name the data directory with --data-dir.`)
  const report: LedgerReport = { rows: 0, months: [], findings: [] }
  const { findings } = report
  const months = new Map<number, LedgerMonth>()
  readSnapshot(database, { findings, what: 'ledger' }, connection => {
    const broken = brokenLinks(connection, ({ finished_at, cost }) => {
      const { start } = monthOf(finished_at)
      const month = months.get(start) ?? { start, rows: 0, cost: 0 }
      months.set(start, { start, rows: month.rows + 1, cost: month.cost + cost })
      onRow(++report.rows)
    })
    findings.push(...broken)
    if (schemaVersionOf(connection) >= 4) findings.push(...found(connection, spendContradictions))
  })
  report.months = [...months.values()].toSorted((a, b) => a.start - b.start)
  return report
}

/** What must not be found: sentences, in which # is a number of rows, and the queries that count these rows. */
type Contradictions = Readonly<Record<string, string>>

/** The sentences of the contradictions that were found. */
const found = (connection: Connection, contradictions: Contradictions): string[] =>
  Object.entries(contradictions).flatMap(([sentence, sql]) => {
    const rows = connection.scalar<number>`${sql}`.get() ?? 0
    return rows > 0 ? [sentence.replace('#', String(rows))] : []
  })

function inspect(
  connection: Connection,
  report: DatabaseReport,
  { quick, onStep }: Required<DatabaseCheckOptions>,
): void {
  const { findings } = report
  const count = (sql: string) => connection.scalar<number>`${sql}`.get() ?? 0
  const expectNone = (contradictions: Contradictions) => findings.push(...found(connection, contradictions))

  onStep('structure')
  const structure = connection.pragma(quick ? 'quick_check(20)' : 'integrity_check(20)', { simple: false })
  for (const row of structure as Record<string, string>[])
    for (const line of Object.values(row)) if (line !== 'ok') findings.push(`Structure: ${line}.`)
  report.schema = schemaVersionOf(connection)

  onStep('ledger')
  report.ledgerRows = ledgerLength(connection)()
  findings.push(...brokenLinks(connection))
  if (quick) return

  onStep('usage')
  expectNone(usageContradictions)

  onStep('references')
  const dangling = connection.pragma('foreign_key_check') as { table: string; parent: string }[]
  for (const { table, parent } of dangling.slice(0, 20))
    findings.push(`A row of ${table} refers to a missing row of ${parent}.`)
  if (report.schema >= 4) expectNone(spendContradictions)

  onStep('jobs')
  report.jobs = count('SELECT count(*) FROM jobs')
  report.events = count('SELECT count(*) FROM events')
  expectNone(jobContradictions)

  onStep('executions')
  expectNone(executionContradictions)
  expectNone(deliveryContradictions)

  onStep('files')
  report.files = count('SELECT count(*) FROM files')
  report.videos = count('SELECT count(*) FROM library')
  expectNone(fileContradictions)
}

const jobContradictions: Contradictions = {
  '# jobs have ended and are not in the ledger.': `SELECT count(*) FROM jobs WHERE finished_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger
     WHERE ledger.organization_id = jobs.organization_id AND kind = 'async' AND job_id = jobs.id)`,
  // A ledger row without its job is fine: the job was deleted or has expired.
  '# ledger rows are of jobs that have not ended.': `SELECT count(*) FROM ledger JOIN jobs ON jobs.organization_id = ledger.organization_id AND jobs.id = job_id
   WHERE kind = 'async' AND jobs.finished_at IS NULL`,
  'The counts of jobs by status do not match the jobs.': `SELECT count(*) FROM job_counts WHERE jobs <> (SELECT count(*) FROM jobs WHERE jobs.status = job_counts.status)`,
  '# jobs have another status than their last event says.': `SELECT count(*) FROM (SELECT max(sequence) AS sequence FROM events GROUP BY number)
     JOIN events USING (sequence) JOIN jobs USING (number)
   WHERE awaits IS NOT 'items' AND status <> CASE type WHEN 'job.started' THEN 'processing' WHEN 'job.created' THEN 'pending'
     WHEN 'job.retrying' THEN 'pending' WHEN 'job.waiting' THEN 'pending' ELSE substr(type, 5) END`,
}

/** Contradictions between executions, their nodes and the nodes' jobs. */
const executionContradictions: Contradictions = {
  '# nodes of executions have another status than their jobs.': `SELECT count(*) FROM execution_nodes AS n JOIN jobs
    ON jobs.execution = n.execution AND jobs.item IS NULL AND jobs.node = n.node
    WHERE CASE n.status
      WHEN 'ready' THEN jobs.status NOT IN ('pending', 'processing')
      WHEN 'completed' THEN jobs.status <> 'completed'
      WHEN 'failed' THEN jobs.status NOT IN ('failed', 'cancelled')
      WHEN 'pending' THEN 1
      ELSE jobs.status <> 'cancelled' END`,
  '# nodes of executions are ready and have no job.': `SELECT count(*) FROM execution_nodes AS n WHERE n.status = 'ready' AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.execution = n.execution AND jobs.item IS NULL AND jobs.node = n.node)`,
  '# nodes of executions have completed but their results are missing.': `SELECT count(*) FROM execution_nodes AS n JOIN executions AS e ON e.number = n.execution
    WHERE n.status = 'completed' AND n.job_id IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM jobs JOIN job_results USING (number)
      WHERE jobs.organization_id = e.organization_id AND jobs.id = n.job_id)`,
  '# executions have ended with unfinished nodes, or are unfinished although all nodes have ended.': `SELECT count(*) FROM executions AS e WHERE (e.finished_at IS NULL) <> EXISTS (
    SELECT 1 FROM execution_nodes AS n WHERE n.execution = e.number AND n.status IN ('pending', 'ready'))`,
  '# executions have wrong counts of their nodes.': `SELECT count(*) FROM executions AS e JOIN (
      SELECT execution, count(*) AS nodes, sum(status = 'completed') AS completed,
        sum(status IN ('failed', 'timed_out')) AS failed, sum(status IN ('skipped', 'cancelled')) AS skipped
      FROM execution_nodes GROUP BY execution) AS n ON n.execution = e.number
    WHERE e.nodes <> n.nodes OR e.completed <> n.completed OR e.failed <> n.failed OR e.skipped <> n.skipped`,
  '# executions have wrong counts of running nodes.': `SELECT count(*) FROM executions AS e WHERE e.running <> (
    SELECT count(*) FROM jobs WHERE jobs.execution = e.number AND node IS NOT NULL AND item IS NULL
    AND (status = 'processing' OR (awaits = 'items' AND finished_at IS NULL AND started_at IS NOT NULL)))`,
  '# executions have wrong counts of waiting nodes.': `SELECT count(*) FROM executions AS e WHERE e.waiting <> (
    SELECT count(*) FROM jobs WHERE jobs.execution = e.number AND item IS NULL AND awaits <> 'items')`,
  '# executions have a time limit that has stopped and goes on, or have ended and it has not gone on.': `SELECT count(*)
    FROM executions WHERE remaining_ms IS NOT NULL AND (timeout_at IS NOT NULL OR finished_at IS NOT NULL)`,
  '# jobs are set aside and in a queue.': `SELECT count(*) FROM jobs WHERE awaits IS NOT NULL AND not_before <> ${deferredUntil}`,
  '# nodes wait for a person, an event or a time without their wait, or have a wait and do not.': `SELECT count(*) FROM jobs
    WHERE (coalesce(awaits, '') IN ('approval', 'event', 'time')) <> (EXISTS (SELECT 1 FROM waits WHERE waits.number = jobs.number))`,
  '# items of nodes have another status than their jobs.': `SELECT count(*) FROM execution_items AS i JOIN executions AS e ON e.number = i.execution
    LEFT JOIN jobs ON jobs.organization_id = e.organization_id AND jobs.id = i.job_id
    WHERE CASE i.status
      WHEN 'ready' THEN jobs.status IS NULL OR jobs.status NOT IN ('pending', 'processing')
      WHEN 'completed' THEN jobs.status IS NULL OR jobs.status <> 'completed'
      WHEN 'failed' THEN jobs.status NOT IN ('failed', 'cancelled')
      ELSE jobs.status <> 'cancelled' END`,
  '# nodes of executions have wrong counts of their items.': `SELECT count(*) FROM execution_nodes AS n LEFT JOIN (
      SELECT execution, node, count(*) AS items, sum(status = 'completed') AS completed, sum(status = 'failed') AS failed
      FROM execution_items GROUP BY execution, node) AS i ON i.execution = n.execution AND i.node = n.node
    WHERE n.items IS NOT NULL AND (n.items_completed <> coalesce(completed, 0) OR n.items_failed <> coalesce(failed, 0)
      OR n.items < coalesce(i.items, 0))`,
  '# jobs belong to executions that do not exist.': `SELECT count(*) FROM jobs WHERE execution IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM executions WHERE number = jobs.execution AND executions.organization_id = jobs.organization_id)`,
  '# cached results name jobs that are missing or not completed.': `SELECT count(*) FROM cached_results WHERE NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.id = cached_results.job_id AND status = 'completed')`,
}

const deliveryContradictions: Contradictions = {
  '# objects have webhook deliveries of which none, or several, are the next.': `SELECT count(*) FROM (SELECT 1 FROM webhook_deliveries WHERE finished_at IS NULL GROUP BY target, object
     HAVING sum(waits = 0) <> 1)`,
  '# webhook deliveries have a body and are new, or have none and are not.': `SELECT count(*) FROM webhook_deliveries WHERE (status = 'new') <> NOT EXISTS (
     SELECT 1 FROM webhook_bodies WHERE webhook_bodies.number = webhook_deliveries.number)
     AND NOT (status = 'dead' AND attempts = 0)`,
}

const fileContradictions: Contradictions = {
  'The stored bytes of # organizations do not match their files.': `SELECT count(*) FROM stored_bytes WHERE bytes <> (SELECT coalesce(sum(bytes), 0) FROM files
     WHERE files.organization_id = stored_bytes.organization_id AND removed_at IS NULL)`,
  '# files are in the library and their files are removed.':
    'SELECT count(*) FROM library JOIN files USING (id) WHERE removed_at IS NOT NULL',
  "# files are in the library of another organization than their file's.":
    'SELECT count(*) FROM library JOIN files USING (id) WHERE library.organization_id <> files.organization_id',
  '# files are of jobs that have made none.': `SELECT count(*) FROM files JOIN jobs ON jobs.id = files.job_id AND jobs.organization_id = files.organization_id
   WHERE purpose IN ('output', 'thumbnail') AND removed_at IS NULL AND status <> 'completed'`,
}

const full = detailDimensions.full
const list = (names: readonly string[]): string => names.join(', ')
const sums = (values: readonly string[]): string =>
  values.map(value => `min(total(${value}), 9007199254740991)`).join(', ')

/** The sums of the ledger as the hours should have them. A row without a key has none in the hours. */
const ofLedger = `SELECT k.series, finished_at / 3600000 * 3600 AS start, k.id, ${sums(ledgerSums.map(value => value.replaceAll(/\bstatus\b/g, 'l.status')))}
  FROM ledger AS l LEFT JOIN usage_series AS s ON s.organization_id = l.organization_id AND s.detail = 'full'
    LEFT JOIN usage_keys AS k ON k.series = s.id AND k.model_id = l.model_id AND k.task = l.task
      AND k.token_id = l.token_id AND k.user_id = coalesce(l.user_id, '')
      AND k.workflow_id = coalesce(l.workflow_id, '') AND k.status = l.status
  GROUP BY 1, 2, 3`

const reals = list(sumColumns.map(name => `CAST(${name} AS REAL)`))
const ofHours = `SELECT series, start, key, ${reals} FROM usage_hours`

const stored = (table: string, detail: string): string => `usage_series AS s JOIN ${table} AS r ON r.series = s.id
  JOIN usage_keys AS k ON k.id = r.key AND k.series = s.id WHERE s.detail = '${detail}'`

const ofDays = (detail: keyof typeof detailDimensions): string => `SELECT organization_id, start,
    ${list(detailDimensions[detail])}, ${reals}
  FROM ${stored('usage_days', detail)}`

const summedHours = (detail: keyof typeof detailDimensions): string => {
  const names = detailDimensions[detail]
  return `SELECT organization_id, start / 86400 * 86400, ${list(names)}, ${sums(sumColumns)}
    FROM ${stored('usage_hours', 'full')} GROUP BY ${list(['organization_id', '2', ...names])}`
}

/** Rows that are in one of the two and not in the other. */
const differences = (one: string, other: string): string =>
  `SELECT (SELECT count(*) FROM (SELECT * FROM (${one}) EXCEPT SELECT * FROM (${other})))
     + (SELECT count(*) FROM (SELECT * FROM (${other}) EXCEPT SELECT * FROM (${one})))`

/** What must not be found in the sums of usage. */
export const usageContradictions: Contradictions = {
  '# hourly sums of usage do not match the ledger.': differences(ofLedger, ofHours),
  '# monthly sums of usage do not match the hourly ones.': differences(
    `SELECT organization_id, unixepoch(start, 'unixepoch', 'start of month'), ${list(full)}, ${sums(sumColumns)}
     FROM ${stored('usage_hours', 'full')} GROUP BY ${list(['organization_id', '2', ...full])}`,
    `SELECT organization_id, start, ${list(full)}, ${reals} FROM ${stored('usage_months', 'full')}`,
  ),
  ...Object.fromEntries(
    (['full', 'model', 'token'] as const).map(detail => [
      `# daily sums of usage (${detail}) do not match the hourly ones.`,
      differences(summedHours(detail), ofDays(detail)),
    ]),
  ),
  '# rows of the ledger are not found by their hour.': `SELECT count(*) FROM ledger AS l
    LEFT JOIN ledger_hours AS h ON h.start = l.finished_at / 3600000 * 3600
    WHERE h.start IS NULL OR l.sequence NOT BETWEEN first_sequence AND last_sequence`,
}
