import { expect, test } from 'vitest'
import { openWaiters } from '../../../core/jobs/waiters.ts'
import { openLog } from '../../../core/log.ts'
import type { JobRecord } from '../../../core/store/store.ts'

test('whoever waits for a job of another server gets its end, also after a read that failed', async () => {
  const ended = { id: 'job_1', finishedAt: 7 } as JobRecord
  const reads = [
    () => Promise.reject(new Error('busy')),
    () => Promise.resolve({ ...ended, finishedAt: null }),
    () => Promise.resolve(ended),
  ]
  const waiters = openWaiters({ store: { find: () => reads.shift()!() }, log: openLog('error', () => {}) })
  const waiting = waiters.wait('job_1', AbortSignal.timeout(10_000), 'org_1')
  waiters.poll(1)
  expect(await waiting).toBe(ended)
  expect(reads).toEqual([])
})
