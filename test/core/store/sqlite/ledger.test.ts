import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { brokenLinks, ledgerLength, openLedger } from '../../../../core/store/sqlite/ledger.ts'
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
  first.ledger.append([finishedCall(), finishedCall()])
  second.ledger.append([finishedCall()])
  first.ledger.appendCalls([finishedCall(), finishedCall()])
  first.ledger.append([finishedCall()])
  second.ledger.appendCalls([finishedCall()])
  expect(both.length()).toBe(7)
  expect(brokenLinks(first.connection)).toEqual([])
})

test('an existing call is skipped, also where its number is taken', async () => {
  using both = await two()
  const { first, second } = both
  const [one, other] = [finishedCall(), finishedCall()]
  first.ledger.appendCalls([one])
  second.ledger.appendCalls([other])
  first.ledger.appendCalls([one, other, finishedCall()])
  expect(both.length()).toBe(3)
  expect(brokenLinks(first.connection)).toEqual([])
})

test('a rolled-back row is forgotten: the next row gets its number', async () => {
  using both = await two()
  const { connection, ledger } = both.first
  ledger.append([finishedCall()])
  const back = ledger.mark()
  connection.exec('BEGIN')
  ledger.append([finishedCall(), finishedCall()])
  connection.exec('ROLLBACK')
  back()
  ledger.append([finishedCall()])
  expect(both.length()).toBe(2)
  expect(brokenLinks(connection)).toEqual([])
})

test('a job is billed once', async () => {
  using both = await two()
  const job = finishedCall()
  both.first.ledger.append([job])
  expect(() => both.second.ledger.append([job])).toThrow(/UNIQUE constraint failed: ledger.organization_id/)
})
