import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openAdminStore } from '../../../core/store/sqlite/admin.ts'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import { finishedCall, organizationId } from '../../store/conformance/records.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

/** A data directory whose ledger has two rows in October and one in November 2026. */
async function installation() {
  const dataDir = join(temporaryFolder(), 'data')
  const store = await openAdminStore(dataDir)
  await store.organizations.create({ id: organizationId, name: 'acme', plan: 'pro', createdAt: 1 })
  const november = Date.UTC(2026, 10, 1)
  for (const [cost, finishedAt] of [
    [1_500_000, november - 2],
    [250_000, november - 1],
    [4, november],
  ] as const)
    await store.jobs.record([finishedCall({ cost, finishedAt })])
  await store.close()
  return { dataDir, run: (...args: string[]) => infer([...args, '--data-dir', dataDir]) }
}

test('an unchanged ledger is verified, with the sum of each month in UTC', async () => {
  const { run } = await installation()
  const verified = await run('ledger', 'verify', '--json')
  expect([verified.exitCode, verified.stderr]).toEqual([0, ''])
  expect(json(verified)).toEqual({
    whole: true,
    rows: 3,
    months: [
      { month: '2026-10', rows: 2, cost: 1.75 },
      { month: '2026-11', rows: 1, cost: 0.000004 },
    ],
    findings: [],
  })
  const text = await run('ledger', 'verify')
  expect(text.stdout).toMatch(/^month +rows +cost\n2026-10 +2 +1\.75\n2026-11 +1 +0\.000004\n/)
  expect(text.stdout).toContain('The ledger is intact: 3 rows.')
})

test.each([
  ['a changed cost', 'UPDATE ledger SET cost = 5 WHERE sequence = 2', 'Ledger row 2'],
  ['a missing row', 'DELETE FROM ledger WHERE sequence = 2', 'The ledger jumps from row 1 to row 3'],
  ['a changed sum', 'UPDATE spend SET spent = spent + 1', 'is not the sum of the ledger'],
])('%s is found: exit code 65', async (_, sql, finding) => {
  const { dataDir, run } = await installation()
  const connection = openDatabase(join(dataDir, 'infer.db'))
  connection.exec(`DROP TRIGGER ledger_is_final; DROP TRIGGER ledger_is_kept; ${sql}`)
  connection.close()
  const verified = await run('ledger', 'verify')
  expect(verified.exitCode).toBe(65)
  expect(verified.stdout).toContain(finding)
  expect(verified.stderr).toContain('infer restore')
  expect((await run('db', 'check')).exitCode).toBe(65)
})

test('without a database there is nothing to verify', async () => {
  const ended = await infer(['ledger', 'verify', '--data-dir', join(temporaryFolder(), 'none')])
  expect([ended.exitCode, ended.stderr.includes('There is no database')]).toEqual([64, true])
})
