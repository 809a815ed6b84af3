import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { claimWaiting, completed, createOrganization, newJob, organizationId } from './records.ts'

/** Waiting jobs: their order, their classes, start times, claims and start deadlines. */
export function queueRules({ store }: Subject): void {
  // Each test has its own model.
  let modelId: string

  const submit = async (job: Parameters<typeof newJob>[0] = {}): Promise<JobRecord> =>
    (await store.jobs.submit(newJob({ modelId, ...job }))).job
  const waiting = (from = Number.MIN_SAFE_INTEGER, limit = 100) =>
    store.jobs.waiting({ modelId, class: 'async', organizationId, from, limit })
  const idsOf = (jobs: { id: string }[]): string[] => jobs.map(({ id }) => id)
  const fresh = () => (modelId = newId('evt'))

  test('jobs wait by rank: a point of priority is worth a minute, and among equals the first comes first', async () => {
    fresh()
    const now = Date.now()
    const plain = await submit({ createdAt: now })
    const same = await submit({ createdAt: now })
    const urgent = await submit({ createdAt: now + 59_000, priority: 1 })
    const tooLate = await submit({ createdAt: now + 61_000, priority: 1 })
    const patient = await submit({ createdAt: now - 599_500, priority: -10 })
    const old = await submit({ createdAt: now - 602_000, priority: -10 })
    const order = [old, urgent, plain, same, patient, tooLate]
    expect(idsOf(await waiting())).toEqual(idsOf(order))
    expect(idsOf(await claimWaiting(store, { modelId }))).toEqual(idsOf(order))
  })

  test('waiting jobs are read from a rank on, inclusive, of one model and organization', async () => {
    fresh()
    const other = (await createOrganization(store, 'org_waiting')).id
    const jobs = []
    for (let rank = 10; rank < 15; rank++) jobs.push(await submit({ rank }))
    await submit({ organizationId: other, rank: 11 })
    expect(await waiting(12, 2)).toEqual(
      [jobs[2]!, jobs[3]!].map(({ id, rank }) => ({ id, organizationId, modelId, class: 'async', rank })),
    )
    expect(await waiting(15)).toEqual([])
    const lines = (await store.jobs.backlog()).filter(line => line.modelId === modelId)
    expect(lines).toEqual(
      expect.arrayContaining([
        { modelId, class: 'async', organizationId, jobs: 5 },
        { modelId, class: 'async', organizationId: other, jobs: 1 },
      ]),
    )
    expect(lines).toHaveLength(2)
  })

  test('the details of waiting jobs have their attempts, and since when they wait: not before they are due', async () => {
    fresh()
    const now = Date.now()
    const plain = await submit({ createdAt: now, maxAttempts: 7 })
    const delayed = await submit({ createdAt: now, notBefore: now + 90_000 })
    const details = () =>
      store.jobs.waitingDetails({ modelId, class: 'async', organizationId, from: Number.MIN_SAFE_INTEGER, limit: 100 })
    const common = { organizationId, modelId, class: 'async', fallbackReason: null }
    const first = { ...common, id: plain.id, rank: plain.rank, maxAttempts: 7, since: now }
    expect(await details()).toEqual([first])
    await store.jobs.wake(now + 90_000, 100)
    const second = { ...common, id: delayed.id, rank: delayed.rank, maxAttempts: 3, since: now + 90_000 }
    expect(await details()).toEqual([first, second])
  })

  test('jobs of one class are read and counted separately from those of another', async () => {
    fresh()
    const [batch, plain] = [await submit({ rank: 1, class: 'batch' }), await submit({ rank: 2 })]
    expect([batch.class, plain.class]).toEqual(['batch', 'async'])
    expect(idsOf(await waiting())).toEqual([plain.id])
    const want = { modelId, class: 'batch', organizationId, from: 0, limit: 10 } as const
    expect(await store.jobs.waiting(want)).toEqual([{ id: batch.id, organizationId, modelId, class: 'batch', rank: 1 }])
    const lines = (await store.jobs.backlog()).filter(line => line.modelId === modelId)
    expect(lines.map(line => [line.class, line.jobs])).toEqual([
      ['async', 1],
      ['batch', 1],
    ])
    const claimed = await store.jobs.claim(organizationId, batch.id, Date.now())
    expect(claimed?.class).toBe('batch')
    expect((await store.jobs.find(organizationId, batch.id))?.class).toBe('batch')
    await store.jobs.release(claimed!, 1)
    expect((await store.jobs.wake(2, 10)).map(job => job.class)).toEqual(['batch'])
  })

  test('a delayed job is in no queue until it is woken, the earliest first', async () => {
    fresh()
    const now = Date.now()
    const [late, early] = [await submit({ notBefore: now + 2000 }), await submit({ notBefore: now + 1000 })]
    expect(await waiting()).toEqual([])
    expect((await store.jobs.backlog()).filter(line => line.modelId === modelId)).toEqual([])
    expect(await store.jobs.claim(organizationId, early.id, now)).toBeUndefined()
    expect(await store.jobs.nextDue()).toBe(now + 1000)
    expect(await store.jobs.wake(now + 999, 10)).toEqual([])
    expect(idsOf(await store.jobs.wake(now + 5000, 1))).toEqual([early.id])
    expect(await store.jobs.nextDue()).toBe(now + 2000)
    expect(idsOf(await store.jobs.wake(now + 5000, 10))).toEqual([late.id])
    expect(await store.jobs.nextDue()).toBeNull()
    expect(idsOf(await waiting())).toEqual(idsOf([late, early]))
    for (const { id } of [late, early]) await store.jobs.cancel(organizationId, id, now)
  })

  test('a claim takes a job once, of its own organization, and never an ended one', async () => {
    fresh()
    const [job, ended] = [await submit(), await submit()]
    await store.jobs.cancel(organizationId, ended.id, 1)
    expect(await store.jobs.claim('org_absent', job.id, Date.now())).toBeUndefined()
    expect(await store.jobs.claim(organizationId, ended.id, Date.now())).toBeUndefined()
    const claims = await Promise.all(Array.from({ length: 20 }, () => store.jobs.claim(organizationId, job.id, 5_000)))
    const [claimed, ...others] = claims.filter(claim => claim !== undefined)
    expect(others).toEqual([])
    expect(claimed).toEqual({
      ...job,
      status: 'processing',
      attempt: 1,
      claims: 1,
      boot: store.recovery.bootId,
      startedAt: 5_000,
      updatedAt: 5_000,
    })
    expect(await waiting()).toEqual([])
  })

  test('a released job keeps its rank, and a postponed one is not in the queue meanwhile', async () => {
    fresh()
    const now = Date.now()
    const [first, second] = [await submit({ rank: 1 }), await submit({ rank: 2 })]
    const claimed = await store.jobs.claim(organizationId, first.id, now)
    expect(await store.jobs.release(claimed!, 0)).toBe(true)
    expect(idsOf(await waiting())).toEqual(idsOf([first, second]))
    const again = await store.jobs.claim(organizationId, first.id, now)
    await store.jobs.release(again!, now + 1000)
    expect(idsOf(await waiting())).toEqual([second.id])
    expect(await store.jobs.wake(now + 1000, 10)).toEqual([
      { id: first.id, organizationId, modelId, class: 'async', rank: 1 },
    ])
  })

  test('a job that has not begun by its start deadline fails with timeout, is billed with nothing and cannot start', async () => {
    fresh()
    const now = Date.now()
    const [doomed, later] = [
      await submit({ startBy: now + 1000, retentionMs: 500 }),
      await submit({ startBy: now + 3000 }),
    ]
    expect(await store.jobs.nextDue()).toBe(now + 1000)
    expect(await store.jobs.expire(now + 999, 10)).toEqual([])
    expect(await store.jobs.claim(organizationId, doomed.id, now + 1000)).toBeUndefined()
    const { ledgerRows } = store.stats()
    const ended = await store.jobs.expire(now + 1000, 10)
    expect(ended).toEqual([await store.jobs.find(organizationId, doomed.id)])
    expect(ended[0]).toMatchObject({
      status: 'failed',
      attempt: 0,
      cost: 0,
      finishedAt: now + 1000,
      expiresAt: now + 1500,
      error: {
        code: 'timeout',
        retryable: true,
        message: expect.stringContaining(`start deadline, ${new Date(now + 1000).toISOString()}`),
      },
    })
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
    expect(await store.jobs.expire(now + 1000, 10)).toEqual([])
    expect(await store.jobs.nextDue()).toBe(now + 3000)
    await store.jobs.cancel(organizationId, later.id, now)
  })

  test('the first attempt meets a start deadline; a job released uncharged has not begun', async () => {
    fresh()
    const now = Date.now()
    const [tried, given] = [await submit({ startBy: now + 10 }), await submit({ startBy: now + 10 })]
    const [attempt, back] = [
      await store.jobs.claim(organizationId, tried.id, now),
      await store.jobs.claim(organizationId, given.id, now),
    ]
    expect(await store.jobs.expire(now + 10, 10)).toEqual([])
    const error = { code: 'worker_error' as const, message: 'No.', type: 'server_error', retryable: true, attempt: 1 }
    await store.jobs.settle(attempt!, {
      status: 'failed',
      error,
      retryAt: now + 20,
      engineId: null,
      at: now,
      logs: null,
    })
    await store.jobs.release(back!, 0)
    expect(idsOf(await store.jobs.expire(now + 10, 10))).toEqual([given.id])
    await store.jobs.wake(now + 20, 10)
    const again = await store.jobs.claim(organizationId, tried.id, now + 20)
    expect(again).toMatchObject({ attempt: 2, startBy: now + 10 })
    expect(await store.jobs.settle(again!, completed())).toBe(true)
  })

  test('deadlines expire a few at a time, the earliest first', async () => {
    fresh()
    const jobs = []
    for (const startBy of [30, 10, 20]) jobs.push(await submit({ startBy, createdAt: 1 }))
    const [third, first, second] = jobs
    expect(idsOf(await store.jobs.expire(100, 2))).toEqual(idsOf([first!, second!]))
    expect(idsOf(await store.jobs.expire(100, 2))).toEqual([third!.id])
  })
}
