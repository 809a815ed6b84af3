import { join } from 'node:path'
import { expect, test } from 'vitest'
import { batchReads } from '../../../../core/store/sqlite/batches.ts'
import { openCommands } from '../../../../core/store/sqlite/commands.ts'
import { conversationLinkReads } from '../../../../core/store/sqlite/conversation-links.ts'
import { conversationReads } from '../../../../core/store/sqlite/conversations.ts'
import { type Connection, openDatabase } from '../../../../core/store/sqlite/database.ts'
import { eventReads } from '../../../../core/store/sqlite/events.ts'
import { executionReads } from '../../../../core/store/sqlite/execution-reads.ts'
import { fileReads } from '../../../../core/store/sqlite/files.ts'
import { idempotencyReads } from '../../../../core/store/sqlite/idempotency-keys.ts'
import { jobListReads } from '../../../../core/store/sqlite/job-list.ts'
import { jobReads } from '../../../../core/store/sqlite/job-reads.ts'
import { libraryReads } from '../../../../core/store/sqlite/library.ts'
import { resultReads } from '../../../../core/store/sqlite/results.ts'
import { webhookDeliveryReads } from '../../../../core/store/sqlite/webhook-deliveries.ts'
import { webhookEndpointReads } from '../../../../core/store/sqlite/webhook-endpoints.ts'
import { workflowReads } from '../../../../core/store/sqlite/workflows.ts'
import { openWriteContext } from '../../../../core/store/sqlite/write-context.ts'
import { openTestStore } from '../_store.ts'

/** The same connection, which records the statements prepared on it. */
function watched(connection: Connection): { connection: Connection; statements: Set<string> } {
  const statements = new Set<string>()
  const prepare = (sql: string) => {
    statements.add(sql)
    return connection.prepare(sql)
  }
  return { connection: Object.create(connection, { prepare: { value: prepare } }) as Connection, statements }
}

/** The planner's steps for a statement: one line a step. */
function planOf(connection: Connection, sql: string): string[] {
  const names = [...sql.matchAll(/:(\w+)/g)].map(([, name]) => name!)
  const given =
    names.length > 0 ? [Object.fromEntries(names.map(name => [name, null]))] : sql.match(/\?/g)?.map(() => null)
  const rows = connection.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...(given ?? []))
  return rows.map(({ detail }) => detail)
}

const growing = [
  'jobs',
  'job_inputs',
  'job_results',
  'job_logs',
  'events',
  'ledger',
  'ledger_hours',
  'usage_keys',
  'usage_hours',
  'usage_days',
  'usage_months',
  'files',
  'conversations',
  'conversation_messages',
  'conversation_links',
  'library',
  'replies',
  'workflows',
  'workflow_versions',
  'executions',
  'execution_plans',
  'execution_nodes',
  'execution_items',
  'cached_results',
  'erasable_results',
  'webhook_deliveries',
  'webhook_bodies',
]

/** Statements that do scan a table, each with the reason why they may. */
const allowed: [RegExp, reason: string][] = [
  [
    /^SELECT model_id AS modelId, .* GROUP BY/,
    'the backlog is counted once, at the start, in the thread of the writer',
  ],
  [/ORDER BY number LIMIT \?/, 'the oldest keys and replies: as many rows as are asked for, in the order of the table'],
  [/^SELECT sequence, at FROM events ORDER BY sequence LIMIT \?$/, 'the oldest events, likewise'],
  [/status = 'failed' AND on_error = 'fail' ORDER BY/, 'the failed nodes of one execution'],
  [/FROM jobs WHERE node IS NOT NULL AND item IS NULL AND execution =/, 'the jobs of one execution'],
  [/^SELECT file FROM erasable_results LIMIT \?$/, 'any that may be erased, so many at a time'],
  [/^SELECT EXISTS \(SELECT 1 FROM jobs WHERE webhook IS NOT NULL\)/, 'the first row of a partial index'],
  [/^SELECT count\(\*\) FROM \(SELECT 1 FROM webhook_deliveries .* LIMIT \?\)$/, 'so many rows at most'],
  [/INDEXED BY jobs_due/, 'the unfinished jobs of an organization or token that is suspended, deleted or revoked'],
  [/INDEXED BY batches_unfinished/, 'the unfinished batches, when a token is revoked'],
  [/^SELECT sequence, hash FROM ledger ORDER BY sequence DESC LIMIT 1$/, 'the end of the chain is one row'],
  [
    /^SELECT place FROM recent_runs WHERE organization_id = /,
    'the last runs of a task on a model, of which few are kept',
  ],
]

test('every statement on a growing table uses an index, so that its cost does not grow with the rows', async () => {
  await using opened = await openTestStore()
  const plain = openDatabase(join(opened.dataDir, 'infer.db'))
  const { connection, statements } = watched(plain)
  openCommands(connection, openWriteContext(connection, 'boot'))
  for (const reads of [
    jobReads,
    jobListReads,
    eventReads,
    fileReads,
    idempotencyReads,
    libraryReads,
    batchReads,
    conversationReads,
    conversationLinkReads,
    workflowReads,
    executionReads,
    resultReads,
    webhookEndpointReads,
    webhookDeliveryReads,
  ])
    reads(connection)
  const scans = [...statements].flatMap(sql => {
    const text = sql.replaceAll(/\s+/g, ' ').trim()
    if (allowed.some(([of]) => of.test(text))) return []
    return planOf(plain, sql)
      .filter(step => growing.some(table => new RegExp(`^SCAN ${table}\\b`).test(step)) || /TEMP B-TREE/.test(step))
      .map(step => `${step} of: ${text}`)
  })
  plain.close()
  expect(statements.size).toBeGreaterThan(60)
  expect(scans).toEqual([])
})

test('unfinished executions are found without those that are kept', async () => {
  await using opened = await openTestStore()
  const plain = openDatabase(join(opened.dataDir, 'infer.db'))
  const { connection, statements } = watched(plain)
  openCommands(connection, openWriteContext(connection, 'boot'))
  const plans = [...statements]
    .filter(sql =>
      /FROM executions\s[\w\s]*WHERE organization_id = \?\s+(AND \w+ = \? )?AND finished_at IS NULL/.test(sql),
    )
    .map(sql => planOf(plain, sql).join(' | '))
  plain.close()
  expect(plans).toHaveLength(7)
  for (const plan of plans) expect(plan).toMatch(/INDEX executions_(unfinished|queued|running)/)
})

test('the queue reads its entries, its start times and its deadlines from the indexes made for them', async () => {
  await using opened = await openTestStore()
  const plain = openDatabase(join(opened.dataDir, 'infer.db'))
  const { connection, statements } = watched(plain)
  openCommands(connection, openWriteContext(connection, 'boot'))
  jobReads(connection)
  const plansOf = (part: string) =>
    [...statements].filter(sql => sql.includes(part)).map(sql => planOf(plain, sql).join(' | '))
  expect(plansOf('GROUP BY model_id')).toEqual([expect.stringContaining('USING COVERING INDEX jobs_due')])
  const byRank = 'SEARCH jobs USING INDEX jobs_due (model_id=? AND class=? AND organization_id=? AND rank>?)'
  expect(plansOf('rank >= ?')).toEqual([byRank, byRank])
  expect(plansOf('SELECT min(due)')).toEqual([expect.stringMatching(/INDEX jobs_delayed .* INDEX jobs_start_by /)])
  expect(plansOf('start_by <= ?')).toEqual([
    expect.stringMatching(/^SEARCH jobs USING INDEX jobs_start_by .*start_by<\?\)$/),
  ])
  expect(plansOf('not_before > 0 AND not_before <= ?')).toEqual([
    expect.stringContaining('SEARCH jobs USING INDEX jobs_delayed'),
  ])
  expect(plansOf("SET status = 'processing'")).toEqual([
    expect.stringMatching(/^SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 \(organization_id=\? AND id=\?\)/),
  ])
  plain.close()
})
