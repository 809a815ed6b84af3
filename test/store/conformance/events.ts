import { expect, test } from 'vitest'
import type { Store } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { completed, createOrganization, failed, newJob, organizationId } from './records.ts'

/** Checks that the numbers grow, and returns the events in short form. */
export async function told(
  store: Store,
  jobId?: string,
  of = organizationId,
): Promise<[type: string, attempt: number][]> {
  const events = await store.events.after(of, { sequence: 0, limit: 1000, ...(jobId ? { jobId } : {}) })
  const sequences = events.map(({ sequence }) => sequence)
  expect(sequences).toEqual(sequences.toSorted((a, b) => a - b))
  expect(new Set(sequences).size).toBe(sequences.length)
  return events.map(({ type, attempt }) => [type.slice('job.'.length), attempt])
}

/** Events of jobs: one for each change, with numbers that grow. */
export function eventRules({ fresh }: Subject): void {
  test('each end has its event, and a command without effect has none', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { job: first } = await store.jobs.submit(newJob({ createdAt: 7 }))
    const claim = (await store.jobs.claim(organizationId, first.id, 8))!
    await store.jobs.settle(claim, { ...failed(), at: 9 })
    await store.jobs.settle(claim, completed())
    await store.jobs.release(claim, 0)
    await store.jobs.claim(organizationId, first.id, 10)
    const { job: second } = await store.jobs.submit(newJob())
    await store.jobs.cancel(organizationId, second.id, 1)
    await store.jobs.cancel(organizationId, second.id, 2)
    const { job: third } = await store.jobs.submit(newJob({ startBy: 3, createdAt: 1 }))
    await store.jobs.expire(3, 10)
    expect(await store.events.after(organizationId, { sequence: 0, limit: 3 })).toEqual([
      { sequence: 1, type: 'job.created', jobId: first.id, attempt: 0, at: 7, data: null },
      { sequence: 2, type: 'job.started', jobId: first.id, attempt: 1, at: 8, data: null },
      { sequence: 3, type: 'job.failed', jobId: first.id, attempt: 1, at: 9, data: null },
    ])
    expect(await told(store, second.id)).toEqual([
      ['created', 0],
      ['cancelled', 0],
    ])
    expect(await told(store, third.id)).toEqual([
      ['created', 0],
      ['failed', 0],
    ])
    expect(await store.events.last()).toBe(7)
  })

  test('an attempt that failed and is tried again says why; one that was given back does not', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { job } = await store.jobs.submit(newJob({ maxAttempts: 3 }))
    const claim = async () => {
      await store.jobs.wake(Number.MAX_SAFE_INTEGER, 10)
      return (await store.jobs.claim(organizationId, job.id, Date.now()))!
    }
    const attempt = failed(1)
    await store.jobs.settle(await claim(), attempt)
    await store.jobs.release(await claim(), 0)
    await store.jobs.settle(await claim(), completed())
    const events = await store.events.after(organizationId, { sequence: 0, limit: 100 })
    const retrying = events.filter(({ type }) => type === 'job.retrying')
    expect(retrying.map(({ data }) => data && JSON.parse(data))).toEqual([attempt.error, null])
    expect(events.filter(({ type, data }) => type !== 'job.retrying' && data !== null)).toEqual([])
  })

  test('events are read after a number, of one organization, and of a job only by its own organization', async () => {
    await using opened = await fresh()
    const { store } = opened
    expect(await store.events.last()).toBe(0)
    const other = (await createOrganization(store, 'org_other')).id
    const { job } = await store.jobs.submit(newJob())
    const { job: foreign } = await store.jobs.submit(newJob({ organizationId: other }))
    await store.jobs.cancel(organizationId, job.id, 1)
    expect(await told(store)).toEqual([
      ['created', 0],
      ['cancelled', 0],
    ])
    expect(await told(store, foreign.id)).toEqual([])
    expect(await told(store, foreign.id, other)).toEqual([['created', 0]])
    const after = await store.events.after(organizationId, { sequence: 1, limit: 10 })
    expect(after.map(({ sequence }) => sequence)).toEqual([3])
    expect(await store.events.after(organizationId, { sequence: 1, limit: 10, jobId: job.id })).toEqual(after)
    expect(await store.events.after(organizationId, { sequence: 3, limit: 10 })).toEqual([])
  })

  test('a number is never reused, whatever was swept', async () => {
    await using opened = await fresh()
    const { store } = opened
    const { job } = await store.jobs.submit(newJob({ createdAt: 1, retentionMs: 0 }))
    await store.jobs.cancel(organizationId, job.id, 1)
    expect(await store.jobs.sweep(1, 100)).toBe(1)
    expect(await told(store)).toEqual([])
    expect(await store.events.last()).toBe(2)
    await store.jobs.submit(newJob())
    expect(await store.events.last()).toBe(3)
  })

  test('events are kept for 24 hours, and the rest has no gaps, whatever happened to the clock', async () => {
    await using opened = await fresh()
    const { store } = opened
    const day = 24 * 3_600_000
    for (const createdAt of [10, 20, 500, 30, 40]) await store.jobs.submit(newJob({ createdAt }))
    const left = async () => (await store.events.after(organizationId, { sequence: 0, limit: 9 })).map(({ at }) => at)
    expect(await store.jobs.sweep(day + 10, 9)).toBe(0)
    expect(await store.jobs.sweep(day + 41, 1)).toBe(1)
    expect(await left()).toEqual([20, 500, 30, 40])
    expect(await store.jobs.sweep(day + 41, 9)).toBe(1)
    expect(await left()).toEqual([500, 30, 40])
  })
}
