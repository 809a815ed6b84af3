import { expect, test } from 'vitest'
import type { ClientExchange } from '../../../../server/http/request/exchange.ts'
import type { Owners } from '../../../../server/http/request/owners.ts'
import { openEventPages } from '../../../../server/surfaces/native/event-pages.ts'
import { openOrganizationSnapshots } from '../../../../server/surfaces/native/organization-snapshot.ts'

/** A log of this many events, each the creation of a job, and a count of its reads. */
function openLogOfEvents(length: number) {
  const log = { length, lists: 0, pages: 0 }
  const owners = {
    jobs: {
      events: { last: async () => log.length },
      find: async (organizationId: string, id: string) => ({ id, organizationId, task: 'std/embeddings' }),
      list: async () => {
        log.lists++
        return { jobs: [], next: null }
      },
    },
    executions: {
      list: async () => ({ executions: [], next: null }),
      events: {
        async ofOrganization(_: string, { sequence, limit }: { sequence: number; limit: number }) {
          log.pages++
          const last = Math.min(log.length, sequence + limit)
          return Array.from({ length: Math.max(0, last - sequence) }, (_item, at) => ({
            sequence: sequence + at + 1,
            type: 'job.created',
            jobId: `job_${sequence + at + 1}`,
            executionId: null,
            nodeId: null,
            attempt: 0,
            at: 0,
            data: null,
          }))
        },
      },
    },
  } as unknown as Owners<'executions' | 'files' | 'jobs'>
  return { log, owners }
}
const exchangeOf = (organizationId = 'org_1') =>
  ({ caller: { organizationId }, origin: 'http://here' }) as unknown as ClientExchange

test('readers that connect together share one snapshot; a reader ahead of it gets a newer one', async () => {
  const { log, owners } = openLogOfEvents(7)
  const snapshotOf = openOrganizationSnapshots(owners)
  const all = await Promise.all(Array.from({ length: 100 }, () => snapshotOf('org_1')))
  expect([new Set(all).size, log.lists, all[0]!.sequence]).toEqual([1, 2, 7])
  expect(await snapshotOf('org_2')).not.toBe(all[0])
  log.length = 8
  expect((await snapshotOf('org_1')).sequence).toBe(8)
  // Many connect during many changes: they begin a little earlier in the log.
  log.length = 9
  const manyReaders = true
  expect((await snapshotOf('org_1', { manyReaders })).sequence).toBe(8)
  // For a reader that had event 9, the state at 8 would be a step back.
  expect((await snapshotOf('org_1', { manyReaders, resume: 9 })).sequence).toBe(9)
  expect((await snapshotOf('org_1', { manyReaders, resume: 1_000 })).sequence).toBe(9)
})

test('readers at the same position share a page, and no page without events is kept', async () => {
  const { log, owners } = openLogOfEvents(0)
  const pages = openEventPages(owners)
  expect(await pages.next(exchangeOf(), 0, undefined)).toBeUndefined()
  log.length = 3
  const all = await Promise.all(Array.from({ length: 100 }, () => pages.next(exchangeOf(), 0, undefined)))
  expect([new Set(all).size, log.pages, all[0]!.sequence]).toEqual([1, 1, 3])
  expect(all[0]!.bytes.toString().match(/^id: evt_\d+$/gm)).toEqual(['id: evt_1', 'id: evt_2', 'id: evt_3'])
  expect(await pages.next(exchangeOf('org_2'), 0, undefined)).not.toBe(all[0])
  const unwanted = await pages.next(exchangeOf(), 0, 'job.failed')
  expect([unwanted!.sequence, unwanted!.bytes.length]).toEqual([3, 0])
  expect(await pages.next(exchangeOf(), 3, undefined)).toBeUndefined()
  log.length = 4
  expect((await pages.next(exchangeOf(), 3, undefined))!.sequence).toBe(4)
})
