import { expect, test } from 'vitest'
import { openEventPages } from '../../../../server/surfaces/native/event-pages.ts'

test('a reader that shares a read from before an event reads the event itself', async () => {
  const event = { sequence: 6, type: 'quota.warning', at: 1, data: '{}', jobId: null, executionId: null, attempt: 0 }
  const first = Promise.withResolvers<unknown[]>()
  const reads = [first.promise, Promise.resolve([event])]
  const owners = {
    jobs: { events: { last: async () => 6 } },
    executions: { events: { ofOrganization: () => reads.shift() } },
  }
  const pages = openEventPages(owners as never)
  const exchange = { caller: { organizationId: 'org_a' }, origin: 'http://a' } as never
  const [early, late] = [pages.next(exchange, 5, undefined), pages.next(exchange, 5, undefined)]
  await Promise.resolve()
  first.resolve([])
  expect(await early).toBeUndefined()
  expect(await late).toMatchObject({ sequence: 6 })
})
