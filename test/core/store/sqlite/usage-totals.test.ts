import { join } from 'node:path'
import { expect, test } from 'vitest'
import { callRows } from '../../../../core/store/ledger-rows.ts'
import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { usageContradictions } from '../../../../core/store/sqlite/check.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { openLedger } from '../../../../core/store/sqlite/ledger.ts'
import { migrate, migrations } from '../../../../core/store/sqlite/migrations.ts'
import { usageReads } from '../../../../core/store/sqlite/usage-reads.ts'
import { openUsageTotals } from '../../../../core/store/sqlite/usage-totals.ts'
import { finishedCall, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

const at = Date.UTC(2026, 0, 31, 23, 30)

test('an upgrade sums the ledger of before, and goes on from there', () => {
  using directory = temporaryDirectory()
  const connection = openDatabase(join(directory.path, 'infer.db'))
  migrate(connection, { backup() {}, steps: migrations.filter(({ version }) => version < 7) })
  const insert = connection.prepare(
    `INSERT INTO ledger (sequence, job_id, organization_id, token_id, kind, task, model_id, status, input_tokens,
       output_tokens, cost, created_at, started_at, finished_at, hash, gpu_ms)
     VALUES (?, ?, ?, ?, ?, 'std/chat-completion', ?, ?, 10, 5, 3, ?, ?, ?, zeroblob(32), ?)`,
  )
  for (let row = 1; row <= 60; row++) {
    const [finished, kind] = [at + row * 60_000, row % 3 === 0 ? 'async' : 'sync']
    const status = row % 5 === 0 ? 'failed' : 'completed'
    const started = row % 4 === 0 ? null : finished - 20
    const values = [row, `job_${row}`, `org_${row % 2}`, `tok_${row % 3}`, kind, `m${row % 2}`, status]
    insert.run(...values, finished - 50, started, finished, row % 7 === 0 ? null : row)
  }
  migrate(connection, { backup() {} })
  const contradictions = () =>
    Object.entries(usageContradictions)
      .filter(([, sql]) => connection.prepare(sql).pluck().get() !== 0)
      .map(([sentence]) => sentence.replace('#', '1'))
  expect(contradictions()).toEqual([])
  const read = () =>
    usageReads(connection).read({
      organizationId: 'org_1',
      from: Date.UTC(2026, 0, 1) / 1000,
      to: Date.UTC(2026, 2, 1) / 1000,
      width: 'month',
      groupBy: ['token_id'],
      only: {},
      buckets: 2,
      results: 100,
      format: 'json',
    })
  expect(read().totals).toMatchObject({ requests: 20, jobs: 10, failed: 6, input_tokens: 300, cost: 0.00009 })
  const totals = openUsageTotals(connection)
  openLedger(connection, totals).appendCalls(
    callRows([finishedCall({ organizationId: 'org_1', finishedAt: at, cost: 10 })]),
  )
  totals.write()
  expect(read().totals).toMatchObject({ requests: 21, cost: 0.0001 })
  expect(contradictions()).toEqual([])
  connection.close()
})

test('a revert keeps what was added before the mark, also to the same sums', () => {
  using directory = temporaryDirectory()
  const connection = openDatabase(join(directory.path, 'infer.db'))
  migrate(connection, { backup() {} })
  const totals = openUsageTotals(connection)
  const ledger = openLedger(connection, totals)
  ledger.append(finishedCall({ cost: 1, finishedAt: at }))
  const revert = totals.mark()
  ledger.append(finishedCall({ cost: 10, finishedAt: at }))
  revert()
  ledger.append(finishedCall({ cost: 100, finishedAt: at }))
  totals.write()
  expect(connection.prepare('SELECT jobs, cost FROM usage_hours').raw().all()).toEqual([[2, 101]])
  connection.close()
})

test.each([
  ['UPDATE usage_hours SET cost = cost + 1', /hourly sums .* ledger.*/],
  ['DELETE FROM usage_days WHERE key = (SELECT min(key) FROM usage_days)', /daily sums of usage \(full\)/],
  [
    `UPDATE usage_days SET requests = 7 WHERE series = (SELECT id FROM usage_series WHERE detail = 'token')`,
    /daily sums of usage \(token\)/,
  ],
  ['UPDATE usage_months SET run_ms = run_ms + 1', /monthly sums/],
  ['UPDATE ledger_hours SET last_sequence = 0', /not found by their hour/],
])('infer db check finds sums that are not those of the ledger: %s', async (sql, finding) => {
  await using opened = await openTestStore()
  await opened.store.jobs.record([finishedCall({ organizationId, finishedAt: at })])
  await opened.store.close()
  expect((await checkDatabase(opened.dataDir)).findings).toEqual([])
  const connection = openDatabase(join(opened.dataDir, 'infer.db'))
  connection.exec(sql)
  connection.close()
  expect((await checkDatabase(opened.dataDir)).findings).toContainEqual(expect.stringMatching(finding))
})

test('a hash covers the user and the workflow of a row', async () => {
  await using opened = await openTestStore()
  const connection = openDatabase(join(opened.dataDir, 'infer.db'))
  connection.exec(
    `INSERT INTO users VALUES ('${organizationId}', 'user_1', 'Ann', 'ann@example.com', 'member', 1, 1, NULL)`,
  )
  const token = await opened.store.tokens.create({
    id: 'tok_ann',
    publicId: 'aaaaaaaaaaaa',
    organizationId,
    name: 'ann',
    scopes: [],
    digest: Buffer.alloc(32),
    hint: 'abcd',
    models: null,
    userId: 'user_1',
    createdAt: 1,
    expiresAt: null,
    createdBy: null,
  })
  await opened.store.jobs.record([finishedCall({ tokenId: token.id, finishedAt: at })])
  expect(connection.prepare('SELECT user_id FROM ledger').pluck().all()).toEqual(['user_1'])
  expect((await checkDatabase(opened.dataDir)).findings).toEqual([])
  connection.exec('DROP TRIGGER ledger_is_final; UPDATE ledger SET user_id = NULL')
  expect((await checkDatabase(opened.dataDir, { quick: true })).findings).toEqual([expect.stringContaining('row 1')])
  connection.close()
})
