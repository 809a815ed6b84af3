import { afterEach, expect, test, vi } from 'vitest'
import { type BatchesOptions, openBatches } from '../../../core/batches/batches.ts'
import type { BatchRecord } from '../../../core/store/store.ts'

/** The loop of a batch whose next step fails each time. */
afterEach(() => {
  vi.useRealTimers()
})

/** Returns batches over a store with one batch, whose files cannot be found for an unknown reason. */
function openBroken(status: BatchRecord['status']) {
  const batch = {
    organizationId: 'org_a',
    id: 'batch_a',
    status,
    endpoint: '/v1/embeddings',
    total: 2,
    fed: status === 'in_progress' ? 0 : 2,
    completed: 0,
    failed: status === 'in_progress' ? 0 : 2,
    restError: null,
    finishedAt: null,
    expiresAt: Date.now() + 86_400_000,
  } as unknown as BatchRecord
  const written: unknown[] = []
  const errors: string[] = []
  let committed = () => {}
  const options = {
    store: {
      onCommitted: (listener: (commit: object) => void) => {
        committed = () => listener({ batches: [batch] })
      },
      batches: {
        find: async () => batch,
        unfinished: async () => [batch],
        sweep: async () => 0,
        fail: async (_key: unknown, faults: unknown) => {
          written.push(faults)
          Object.assign(batch, { status: 'failed', finishedAt: 1 })
        },
        refuseRest: async (_key: unknown, error: unknown) => {
          written.push(error)
          Object.assign(batch, { restError: error, status: 'finalizing' })
        },
      },
    },
    files: { api: { find: () => Promise.reject(new RangeError('Maximum call stack size exceeded')) } },
    endpoints: { find: () => ({ path: '/v1/embeddings' }) },
    requesterOf: async () => ({ limits: { pendingJobs: 0 } }),
    config: { limits: { job_retention: 0 } },
    cpu: { calling: () => () => {} },
    log: { error: (text: string) => errors.push(text) },
  } as unknown as BatchesOptions
  return { batches: openBatches(options), committed: () => committed(), batch, written, errors }
}

test.each<[status: BatchRecord['status'], written: number]>([
  ['validating', 1],
  ['in_progress', 2],
  ['finalizing', 1],
  ['cancelling', 1],
])('a batch that is %s and cannot go on ends with its reason', async (status, count) => {
  vi.useFakeTimers()
  const { batches, batch, written, errors } = openBroken(status)
  await batches.resume()
  await vi.advanceTimersByTimeAsync(600_000)
  expect(batch).toMatchObject({ status: 'failed' })
  expect(written).toHaveLength(count)
  expect(JSON.stringify(written[0])).toContain('under the batch batch_a')
  expect(errors).toHaveLength(6 * count)
  await batches.close()
})

test('a step that failed is not repeated sooner because lines end, but at once after a cancellation', async () => {
  vi.useFakeTimers()
  const { batches, committed, batch, errors } = openBroken('in_progress')
  await batches.resume()
  for (let ms = 0; ms < 4_000; ms += 100) {
    committed()
    await vi.advanceTimersByTimeAsync(100)
  }
  expect(errors).toHaveLength(1)
  batch.status = 'cancelling'
  committed()
  await vi.advanceTimersByTimeAsync(100)
  expect(errors).toHaveLength(2)
  await batches.close()
})
