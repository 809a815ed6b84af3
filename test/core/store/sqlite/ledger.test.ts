import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { callRows } from '../../../../core/store/ledger-rows.ts'
import { usageContradictions } from '../../../../core/store/sqlite/check.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { brokenLinks, ledgerLength, openLedger } from '../../../../core/store/sqlite/ledger.ts'
import { openUsageTotals } from '../../../../core/store/sqlite/usage-totals.ts'
import { finishedCall, openTestStore, organizationId, temporaryDirectory } from '../_store.ts'

/** Two processes write the same database, as a server and the command line beside it do. */
async function two() {
  const directory = temporaryDirectory()
  const dataDir = join(directory.path, 'data')
  {
    await using opened = await openTestStore({ dataDir })
    await opened.store.organizations.find(organizationId)
  }
  const connections = [1, 2].map(() => openDatabase(join(dataDir, 'infer.db')))
  const [first, second] = connections.map(connection => ({ connection, ledger: openLedger(connection) }))
  return {
    first: first!,
    second: second!,
    length: ledgerLength(connections[0]!),
    [Symbol.dispose]() {
      for (const connection of connections) connection.close()
      directory[Symbol.dispose]()
    },
  }
}

test('the rows of another process are continued, and the chain is valid', async () => {
  using both = await two()
  const { first, second } = both
  for (let job = 0; job < 2; job++) first.ledger.append(finishedCall())
  second.ledger.append(finishedCall())
  first.ledger.appendCalls(callRows([finishedCall(), finishedCall()]))
  first.ledger.append(finishedCall())
  second.ledger.appendCalls(callRows([finishedCall()]))
  expect(both.length()).toBe(7)
  expect(brokenLinks(first.connection)).toEqual([])
})

test('an existing call is skipped, also where its number is taken', async () => {
  using both = await two()
  const { first, second } = both
  const [one, other] = [finishedCall(), finishedCall()]
  first.ledger.appendCalls(callRows([one]))
  second.ledger.appendCalls(callRows([other]))
  first.ledger.appendCalls(callRows([one, other, finishedCall()]))
  expect(both.length()).toBe(3)
  expect(brokenLinks(first.connection)).toEqual([])
})

test('of calls that two processes record, some of them again, each is in the chain and in the sums once', async () => {
  using both = await two()
  const writers = [both.first, both.second].map(({ connection }) => {
    const totals = openUsageTotals(connection)
    return { connection, totals, ledger: openLedger(connection, totals) }
  })
  const calls = Array.from({ length: 400 }, () => finishedCall())
  const requests = both.first.connection.prepare('SELECT coalesce(sum(requests), 0) FROM usage_hours').pluck()
  const recorded = new Set<number>()
  const batch = fc.tuple(fc.nat(1), fc.nat(380), fc.nat(70), fc.nat(12))
  fc.assert(
    fc.property(batch, ([writer, from, count, again]) => {
      const { connection, ledger, totals } = writers[writer]!
      const chosen = [...calls.keys()].slice(from, from + count)
      const places = [...chosen, ...chosen.slice(0, again)]
      connection.transaction(() => {
        ledger.appendCalls(callRows(places.map(place => calls[place]!)))
        totals.write()
      })()
      for (const place of places) recorded.add(place)
      expect(both.length()).toBe(recorded.size)
      expect(requests.get()).toBe(recorded.size)
    }),
    { numRuns: 60, endOnFailure: true },
  )
  expect(brokenLinks(both.first.connection)).toEqual([])
  for (const [what, query] of Object.entries(usageContradictions))
    expect([what, both.first.connection.prepare(query).pluck().get()]).toEqual([what, 0])
})

test('a rolled-back row is forgotten: the next row gets its number', async () => {
  using both = await two()
  const { connection, ledger } = both.first
  ledger.append(finishedCall())
  const back = ledger.mark()
  connection.exec('BEGIN')
  for (let job = 0; job < 2; job++) ledger.append(finishedCall())
  connection.exec('ROLLBACK')
  back()
  ledger.append(finishedCall())
  expect(both.length()).toBe(2)
  expect(brokenLinks(connection)).toEqual([])
})

test('a job is billed once', async () => {
  using both = await two()
  const job = finishedCall()
  both.first.ledger.append(job)
  expect(() => both.second.ledger.append(job)).toThrow(/UNIQUE constraint failed: ledger.organization_id/)
})

test('the hash of a row stays what released versions compute', async () => {
  using both = await two()
  const { connection, ledger } = both.first
  const call = {
    id: 'req_1',
    tokenId: 'tok_1',
    engineId: null,
    createdAt: 1_764_000_000_000,
    startedAt: 1_764_000_000_001,
    finishedAt: 1_764_000_000_250,
  }
  const failed = finishedCall({
    ...call,
    status: 'failed',
    error: { code: 'timeout', type: 'timeout', message: 'Späť', retryable: true, attempt: 1 },
    usage: { inputTokens: 3, cachedTokens: 2, outputTokens: 4, gpuMs: 249, energyMj: 12 },
    requestedModel: 'other',
    fallbackReason: 'failed',
  })
  ledger.appendCalls(callRows([finishedCall({ ...call, referenceQueueMs: 5 })]))
  ledger.append({ ...failed, id: 'job_1' })
  const hashes = connection.prepare('SELECT lower(hex(hash)) FROM ledger').pluck().all()
  expect(hashes).toEqual([
    '6f138af6d48ebd38f1f923f3efae9c6648ea19f57e00882dc63e19368120a923',
    '932011fcf748d4028c5fc984e38cce7f5df10f0527d70173fb5a4d82d6ab9a0d',
  ])
})
