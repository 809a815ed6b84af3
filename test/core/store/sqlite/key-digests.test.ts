import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Connection, openDatabase } from '../../../../core/store/sqlite/database.ts'
import {
  forgetKeys,
  keyLifetimeMs,
  openIdempotencyKeys,
  openKeyHolders,
} from '../../../../core/store/sqlite/idempotency-keys.ts'
import { migrate, migrations } from '../../../../core/store/sqlite/migrations.ts'
import { temporaryDirectory } from '../_store.ts'

const organizationId = 'org_keys'
const work = (key: string, id: string, at: number) => ({
  organizationId,
  id,
  createdAt: at,
  idempotency: { key, bodyHash: 'h' },
})

/** Numbers that look random, the same in each run. */
function generator(seed: number): (below: number) => number {
  let state = seed
  return below => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** Digests in the index whose key is gone. */
const orphans = (connection: Connection): number =>
  connection.scalar<number>`SELECT count(*) FROM key_digests AS d WHERE NOT EXISTS
    (SELECT 1 FROM idempotency_keys AS k WHERE k.number = d.number AND k.digest = d.digest)`.get()!

const indexed = (connection: Connection): number => connection.scalar<number>`SELECT count(*) FROM key_digests`.get()!

test('keys are found before, while and after they are indexed, through rollbacks, restarts and expiry', () => {
  using directory = temporaryDirectory()
  const path = join(directory.path, 'infer.db')
  const connection = openDatabase(path)
  migrate(connection, { backup() {} })
  const reader = openDatabase(path, { readonly: true })
  let holderOf = openKeyHolders(reader)
  let keys = openIdempotencyKeys(connection)
  const forget = forgetKeys(connection)
  const random = generator(7)
  let model = new Map<string, { id: string; at: number }>()
  let at = 1_000
  let mostIndexed = 0
  const fresh = (found: { id: string; at: number } | undefined) =>
    found && at - found.at < keyLifetimeMs ? found.id : undefined

  for (let round = 0; round < 220; round++) {
    at += round % 50 === 49 ? keyLifetimeMs / 3 : 10
    const before = new Map(model)
    connection.exec('BEGIN')
    keys.begin()
    let mark = keys.mark()
    let marked = new Map(model)
    for (let step = 0; step < 200; step++) {
      if (step === 100) {
        if (round % 7 === 3) keys.write()
        connection.exec('SAVEPOINT half')
        mark = keys.mark()
        marked = new Map(model)
      }
      // Mostly new keys, and some that were used just now or long ago.
      const key = random(4) > 0 ? `${round} ${step}` : `${random(round + 1)} ${random(200)}`
      const id = `job_${round}_${step}`
      expect(keys.assign(work(key, id, at))).toBe(fresh(model.get(key)))
      if (fresh(model.get(key)) !== undefined) continue
      model.set(key, { id, at })
      if (random(40) > 0) continue
      keys.release(work(key, id, at))
      model.delete(key)
    }
    if (round % 5 === 2) {
      connection.exec('ROLLBACK TO half')
      mark()
      model = marked
    }
    keys.write()
    if (round % 11 === 6) {
      connection.exec('ROLLBACK')
      keys.forget()
      model = before
    } else connection.exec('COMMIT')
    if (round % 60 === 30) keys = openIdempotencyKeys(connection)
    if (round % 60 === 50) holderOf = openKeyHolders(reader)
    mostIndexed = Math.max(mostIndexed, indexed(connection))
    if (round % 20 === 0) forget(at - keyLifetimeMs, 3_000)
    if (round % 9 === 0)
      for (let look = 0; look < 50; look++) {
        const key = `${random(round + 1)} ${random(200)}`
        expect(holderOf(organizationId, { key, bodyHash: 'h' }, at)).toBe(fresh(model.get(key)))
      }
  }
  expect(mostIndexed).toBeGreaterThan(8_000)
  expect(orphans(connection)).toBe(0)
  forget(at + 1, 1_000_000)
  expect(orphans(connection)).toBe(0)
  expect(connection.scalar`SELECT count(*) FROM idempotency_keys`.get()).toBe(1)
  for (const one of [reader, connection]) one.close()
})

test('keys that take the numbers of a transaction that failed are found, and those that expired are not indexed', () => {
  using directory = temporaryDirectory()
  const connection = openDatabase(join(directory.path, 'infer.db'))
  migrate(connection, { backup() {} })
  const keys = openIdempotencyKeys(connection)
  let made = 0
  const add = (count: number, at: number) => {
    for (let one = 0; one < count; one++, made++) keys.assign(work(`key ${made}`, `job_${made}`, at))
  }
  const transaction = (count: number, at: number, end: 'COMMIT' | 'ROLLBACK' = 'COMMIT') => {
    connection.exec('BEGIN')
    keys.begin()
    add(count, at)
    keys.write()
    connection.exec(end)
    if (end === 'ROLLBACK') keys.forget()
  }
  transaction(8_000, 1)
  transaction(300, 1, 'ROLLBACK')
  made = 8_000
  for (let round = 0; round < 30; round++) transaction(300, 1)
  expect(indexed(connection)).toBeGreaterThan(8_000)
  const reader = openKeyHolders(connection)
  for (let one = 0; one < made; one += 7)
    expect(reader(organizationId, { key: `key ${one}`, bodyHash: 'h' }, 2)).toBe(`job_${one}`)
  const forget = forgetKeys(connection)
  forget(2, 1_000_000)
  for (let round = 0; round < 60; round++) {
    transaction(300, 3 + round)
    forget(3 + round, 1_000_000)
  }
  expect(orphans(connection)).toBe(0)
  connection.close()
})

test('an upgrade indexes the keys that are there', () => {
  using directory = temporaryDirectory()
  const connection = openDatabase(join(directory.path, 'infer.db'))
  const version = migrations.findIndex(({ sql }) => sql.includes('key_digests')) + 1
  migrate(connection, { backup() {}, steps: migrations.slice(0, version - 1) })
  connection.exec(`INSERT INTO idempotency_keys (digest, body_hash, job_id, created_at)
    VALUES ('digest-of-one', 'h', 'job_1', 5), ('digest-of-two', 'h', 'job_2', 6)`)
  migrate(connection, { backup() {} })
  expect(connection.query`SELECT digest, number FROM key_digests ORDER BY number`.all()).toEqual([
    { digest: 'digest-of-one', number: 1 },
    { digest: 'digest-of-two', number: 2 },
  ])
  expect(connection.scalar`SELECT number FROM last_indexed_key`.get()).toBe(2)
  connection.close()
})
