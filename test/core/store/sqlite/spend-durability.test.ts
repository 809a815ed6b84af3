import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { checkDatabase } from '../../../../core/store/sqlite/admin.ts'
import { verifyLedger } from '../../../../core/store/sqlite/check.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { killsOf } from '../../../_full.ts'
import { heard, startChild } from '../_children.ts'
import { organizationId, temporaryDirectory } from '../_store.ts'

const kills = killsOf(6, 20)
/** What each job holds. */
const hold = 3
/** Left of the limit when the last run begins. */
const left = 500

test('kill -9 under load: the ledger has what was settled, and no limit is passed by more than a hold', {
  timeout: 60_000 + kills * 5_000,
}, async () => {
  using directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  const database = join(dataDir, 'infer.db')
  const one = (sql: string) => {
    const connection = openDatabase(database, { readonly: true })
    try {
      return connection.prepare<[], number>(sql).pluck().get() ?? 0
    } finally {
      connection.close()
    }
  }
  let requeued = 0
  for (let round = 0; round < kills; round++) {
    const child = startChild('spend', dataDir)
    const died = once(child, 'exit')
    const { ready } = await heard(child, 'ready')
    requeued += (ready as { requeued: number }).requeued
    await delay(50 + Math.random() * 250)
    child.kill('SIGKILL')
    await died
  }
  const before = one('SELECT sum(cost) FROM ledger')
  const limit = before + one('SELECT sum(held) FROM jobs') + left
  const connection = openDatabase(database)
  connection.prepare('UPDATE organizations SET monthly_spend_limit = ?').run(limit)
  connection.close()

  const child = startChild('spend', dataDir)
  const { refused } = await heard(child, 'refused')
  const died = once(child, 'exit')
  child.kill('SIGKILL')
  await died

  const spent = one('SELECT sum(cost) FROM ledger')
  expect(refused).toMatchObject({ unfinished: 0, held: 0, spent, limit })
  expect(spent).toBeGreaterThanOrEqual(limit)
  expect(spent - limit).toBeLessThan(hold)
  expect(one('SELECT sum(cost) FROM jobs')).toBe(spent)
  expect(one("SELECT sum(spent) FROM spend WHERE origin_id = ''")).toBe(spent)
  expect(one('SELECT sum(held) FROM jobs')).toBe(0)
  expect(one('SELECT count(*) FROM ledger')).toBe(one('SELECT count(*) FROM jobs'))
  expect(one("SELECT count(*) FROM events WHERE type = 'quota.exceeded'")).toBe(1)
  expect(one("SELECT count(*) FROM events WHERE type = 'quota.warning'")).toBe(1)
  expect(verifyLedger(dataDir).findings).toEqual([])
  expect((await checkDatabase(dataDir)).findings).toEqual([])
  expect(requeued).toBeGreaterThan(0)
  process.stdout.write(
    `spend: ${kills} kills, ${one('SELECT count(*) FROM ledger')} jobs of ${organizationId} settled ${spent}, ` +
      `ledger ${spent}, ${requeued} requeued, ${spent - limit} over the limit with holds of ${hold}\n`,
  )
})

test('kill -9 under 16 clients: the other side never bills more than the limit of a fallback', {
  timeout: 60_000 + kills * 5_000,
}, async () => {
  using directory = temporaryDirectory()
  const [dataDir, bill] = [join(directory.path, 'data'), join(directory.path, 'bill')]
  const billed = () =>
    existsSync(bill)
      ? readFileSync(bill, 'utf8')
          .split('\n')
          .reduce((sum, line) => sum + Number(line), 0)
      : 0
  let limit = 20_000
  const run = async (until: 'billed' | 'refused') => {
    const child = startChild('spill', dataDir, bill, String(limit))
    const died = once(child, 'exit')
    if (until === 'refused') await heard(child, 'refused')
    else {
      const before = billed()
      await expect.poll(billed, { interval: 5 }).toBeGreaterThan(before)
      // The answers take 40 ms at most, so some are under way.
      await delay(Math.random() * 20)
    }
    child.kill('SIGKILL')
    await died
    expect(billed()).toBeLessThanOrEqual(limit)
  }
  for (let round = 0; round < kills; round++) await run('billed')
  limit = billed() + 2_000
  await run('refused')
  const connection = openDatabase(join(dataDir, 'infer.db'), { readonly: true })
  const one = (sql: string) => connection.prepare<[], number>(sql).pluck().get() ?? 0
  const [counted, recorded] = [
    one("SELECT spent FROM spend WHERE origin_id = 'fallback:hosted'"),
    one('SELECT sum(cost) FROM ledger'),
  ]
  connection.close()
  process.stdout.write(`spilled: ${kills} kills, ${billed()} billed, ${counted} counted, ${recorded} recorded\n`)
  // Requests that were under way are counted with what they might have cost.
  expect(counted).toBeGreaterThanOrEqual(billed())
  expect(recorded).toBeLessThan(billed())
})
