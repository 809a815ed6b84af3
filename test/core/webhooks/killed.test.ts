import { expect, test } from 'vitest'
import { temporaryDirectory } from '../store/_store.ts'
import { type Delivered, deliverAll, seeded } from './_delivered.ts'

// test/bench/webhooks.ts does the same with 5,000 jobs.
const jobs = 250
const bothInOrder = 'job.created job.cancelled'

function expectAll({ findings, messages, stored, orders }: Delivered): void {
  expect(findings).toEqual([])
  expect(stored).toEqual({ deliveries: messages, events: messages, unfinished: 0 })
  // The second event of a job whose cancellation was not committed at a kill does not exist.
  expect(orders.filter(order => !bothInOrder.startsWith(order))).toEqual([])
}

test('a receiver that fails half the time gets every message, in order per object, and none twice', async () => {
  using directory = temporaryDirectory()
  const delivered = await deliverAll({ dataDir: directory.path, jobs, kills: 0, random: seeded(20_261_122) })
  expectAll(delivered)
  expect(delivered).toMatchObject({ messages: 2 * jobs, acceptedTwice: 0 })
  expect(delivered.requests).toBeGreaterThan(3 * jobs)
  expect(new Set(delivered.orders)).toEqual(new Set([bothInOrder]))
})

test('kill -9 loses no message, keeps the order of each object, and repeats none whose success was recorded', {
  timeout: 120_000,
}, async () => {
  using directory = temporaryDirectory()
  const delivered = await deliverAll({ dataDir: directory.path, jobs, kills: 6, random: seeded(20_261_123) })
  expectAll(delivered)
  expect(delivered.recorded).toBeGreaterThan(0)
  expect(delivered.repeated).toEqual([])
})
