import { expect, test } from 'vitest'
import { openUsageReports } from '../../../core/accounts/usage-report.ts'
import { usageSums } from '../../../core/store/usage-text.ts'

test('a reader of CSV can leave in a long time without usage', async () => {
  let reads = 0
  const totals = usageSums([])
  const usage = { read: async () => ({ totals, text: '', next: { start: 3600 * ++reads, offset: 0 } }) }
  const reports = openUsageReports({
    store: { usage, spend: { read: async () => [], held: async () => [] } },
  })
  const parts = reports.csv({
    organizationId: 'org_a',
    limits: { monthlySpendLimit: null },
    start: 0,
    end: 253_402_300_799,
    width: '1h',
    groupBy: [],
    only: {},
    limit: undefined,
    page: undefined,
  })
  expect((await parts.next()).value).toMatch(/^start_time,/)
  expect(await parts.next()).toEqual({ done: false, value: '' })
  await parts.return(undefined)
  expect(reads).toBe(1)
})
