import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import type { Subject } from './conformance.ts'
import {
  claimWaiting,
  completed,
  createOrganization,
  failed,
  finishedCall,
  newJob,
  newVideo,
  organizationId,
} from './records.ts'

/** Jobs from submission to their end, idempotency keys, bills and counts. */
export function jobRules({ store }: Subject): void {
  /** Each test has its own model, so that it does not claim the jobs of another. */
  const alone = () => {
    const modelId = newId('evt')
    return {
      modelId,
      submit: (job = {}) => store.jobs.submit(newJob({ modelId, ...job })).then(({ job }) => job),
      claim: (limit = 100, now = Date.now()) => claimWaiting(store, { limit, now, modelId }),
    }
  }

  test('a submitted one is pending, and the answer equals the stored job', async () => {
    const { submit } = alone()
    const job = await submit({ metadata: '{"ref":"1"}', priority: 5 })
    expect(job).toMatchObject({ status: 'pending', kind: 'async', attempt: 0, claims: 0, metadata: '{"ref":"1"}' })
    expect(await store.jobs.find(organizationId, job.id)).toEqual(job)
    expect(await store.jobs.find('org_absent', job.id)).toBeUndefined()
  })

  test('one whose request was passed on by another infer says so, also when it is claimed', async () => {
    const { submit, claim } = alone()
    const [own, passedOn] = [await submit(), await submit({ relayed: true })]
    expect([own.relayed, passedOn.relayed]).toEqual([false, true])
    expect((await store.jobs.find(organizationId, passedOn.id))?.relayed).toBe(true)
    expect((await claim()).map(({ id, relayed }) => [id, relayed])).toEqual([
      [own.id, false],
      [passedOn.id, true],
    ])
  })

  test('one that waited for a load keeps what it would have waited in the order of the queue', async () => {
    const { submit } = alone()
    const [before, after, never] = await Promise.all(
      [0, 1, 2].map(() => submit({ createdAt: 1_000, notBefore: 1_000 })),
    )
    const claims = [
      await store.jobs.claim(organizationId, before!.id, 13_000, 3_000),
      await store.jobs.claim(organizationId, after!.id, 13_000, -3_000),
      await store.jobs.claim(organizationId, never!.id, 13_000),
    ]
    expect(claims.map(job => job?.referenceQueueMs)).toEqual([9_000, 15_000, null])
    await store.jobs.settle(claims[1]!, completed())
    expect(await store.jobs.find(organizationId, after!.id)).toMatchObject({
      startedAt: 13_000,
      referenceQueueMs: 15_000,
    })
    for (const { id } of [before!, never!]) await store.jobs.cancel(organizationId, id, 14_000)
  })

  test('an excerpt has the beginning of the prompt and the first small image, and no other organization has it', async () => {
    const { submit, claim } = alone()
    const [drawn, large, silent] = [
      await submit({ inputs: JSON.stringify({ prompt: `A boat ${'x'.repeat(300)}` }) }),
      await submit({ inputs: JSON.stringify({ prompt: 'y'.repeat(9_000) }) }),
      await submit({ inputs: '{"n":1}' }),
    ]
    const ids = [drawn.id, large.id, silent.id]
    expect(await store.jobs.excerpts(organizationId, [...ids, 'job_absent'])).toEqual([
      { id: drawn.id, prompt: `A boat ${'x'.repeat(192)}…`, thumbnailId: null },
      { id: large.id, prompt: null, thumbnailId: null },
      { id: silent.id, prompt: null, thumbnailId: null },
    ])
    const [first] = await claim()
    const video = newVideo({ jobId: drawn.id })
    await store.jobs.settle(first!, { ...completed(), ...video })
    const { thumbnailId } = video.library[0]!
    expect(await store.jobs.excerpts(organizationId, [drawn.id])).toMatchObject([{ thumbnailId }])
    expect(await store.jobs.excerpts('org_absent', ids)).toEqual([])
    await store.files.remove(organizationId, video.library[0]!.id, Date.now())
    expect(await store.jobs.excerpts(organizationId, [drawn.id])).toMatchObject([{ thumbnailId: null }])
    for (const { id } of [large, silent]) await store.jobs.cancel(organizationId, id, Date.now())
  })

  test('the same key is the same job for 24 hours, with another body it is refused', async () => {
    const { submit } = alone()
    const key = (bodyHash = 'h1', createdAt = 1_000) => ({
      createdAt,
      idempotency: { key: 'POST /api/jobs k', bodyHash },
    })
    const first = await submit(key())
    expect(await store.jobs.submit(newJob(key('h1', 5_000)))).toEqual({ job: first, replayed: true })
    await expect(store.jobs.submit(newJob(key('h2')))).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    const later = await store.jobs.submit(newJob(key('h2', 1_000 + 24 * 3_600_000)))
    expect(later.replayed).toBe(false)
    const elsewhere = (await createOrganization(store, 'org_keys')).id
    expect((await store.jobs.submit(newJob({ ...key(), organizationId: elsewhere }))).replayed).toBe(false)
    for (const { id, organizationId } of [first, later.job]) await store.jobs.cancel(organizationId, id, 1)
  })

  test('a clock set forward expires no key', async () => {
    const { submit } = alone()
    const keyed = (at: number, createdAt: number) => ({
      createdAt,
      idempotency: { key: 'POST /api/jobs forward', bodyHash: 'h', at },
    })
    const first = await submit(keyed(1_000, 1_000))
    const jumped = 5_000 + 26 * 3_600_000
    expect(await store.jobs.submit(newJob(keyed(5_000, jumped)))).toMatchObject({ job: first, replayed: true })
    await store.jobs.sweep(jumped, 1_000, 6_000)
    expect(await store.jobs.submit(newJob(keyed(7_000, jumped)))).toMatchObject({ job: first, replayed: true })
    expect((await store.jobs.submit(newJob(keyed(1_000 + 24 * 3_600_000, jumped)))).replayed).toBe(false)
    for (const { id } of (await store.jobs.list(organizationId, { limit: 2, modelId: first.modelId })).jobs)
      await store.jobs.cancel(organizationId, id, 1)
  })

  test('a hundred at once with each of twenty keys create twenty jobs', async () => {
    const { modelId } = alone()
    const submits = Array.from({ length: 20 }, (_, k) =>
      Array.from({ length: 100 }, () =>
        store.jobs.submit(newJob({ modelId, idempotency: { key: `race ${modelId} ${k}`, bodyHash: 'h' } })),
      ),
    )
    const answers = await Promise.all(submits.flat())
    expect(new Set(answers.map(({ job }) => job.id)).size).toBe(20)
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(20)
    const claimed = await claimWaiting(store, { modelId })
    expect(claimed).toHaveLength(20)
    for (const job of claimed) await store.jobs.cancel(job.organizationId, job.id, 1)
  })

  test('a clock set back does not delay a job that is due at once', async () => {
    const { submit, claim } = alone()
    const job = await submit()
    expect((await claim(1, Date.now() - 3_600_000)).map(({ id }) => id)).toEqual([job.id])
  })

  test('a completed job holds its result, is billed once, and a second result is late', async () => {
    const { submit, claim } = alone()
    await submit()
    const [job] = await claim()
    const { ledgerRows, lateResults } = store.stats()
    const now = () => store.jobs.find(organizationId, job!.id)
    expect(await store.jobs.settle(job!, completed(5_000))).toBe(true)
    const ended = await now()
    expect(ended).toMatchObject({
      status: 'completed',
      result: '{"ok":true}',
      cost: 7,
      finishedAt: 5_000,
      error: null,
      boot: null,
    })
    expect(await store.jobs.settle(job!, { ...completed(), result: '"other"' })).toBe(false)
    expect(await now()).toEqual(ended)
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
    expect(store.stats().lateResults).toBe(lateResults + 1)
  })

  test('a job goes to a fallback with as many attempts as before, and is billed once', async () => {
    const { submit, claim, modelId } = alone()
    const { id } = await submit()
    const [job] = await claim()
    const { ledgerRows } = store.stats()
    const at = Date.now()
    const fallback = { modelId: `${modelId}-other`, reason: 'failed', held: 9 } as const
    expect(await store.jobs.settle(job!, { ...failed(at), fallback })).toBe(true)
    expect(await store.jobs.find(organizationId, id)).toMatchObject({
      status: 'pending',
      modelId: fallback.modelId,
      requestedModel: modelId,
      fallbackReason: 'failed',
      attempt: 1,
      maxAttempts: job!.maxAttempts + 1,
      error: { code: 'worker_error' },
    })
    expect(store.stats().ledgerRows).toBe(ledgerRows)
    const again = await store.jobs.claim(organizationId, id, at + 1)
    expect(again).toMatchObject({ modelId: fallback.modelId, requestedModel: modelId, attempt: 2 })
    expect(await store.jobs.settle(again!, completed(at + 2))).toBe(true)
    expect(await store.jobs.settle(job!, completed(at + 2))).toBe(false)
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
  })

  test('a failed attempt with a retry waits for its time, charged, and is not billed; without one it ends', async () => {
    const { submit, claim } = alone()
    await submit()
    const [job] = await claim()
    const { ledgerRows } = store.stats()
    const at = Date.now() + 60_000
    expect(await store.jobs.settle(job!, failed(at))).toBe(true)
    expect(await store.jobs.find(organizationId, job!.id)).toMatchObject({
      status: 'pending',
      attempt: 1,
      notBefore: at,
      error: { code: 'worker_error' },
    })
    expect(await claim()).toEqual([])
    expect(store.stats().ledgerRows).toBe(ledgerRows)
    const [again] = await claim(1, at)
    expect(again).toMatchObject({ attempt: 2, claims: 2 })
    expect(await store.jobs.settle(again!, failed(null, 'timeout'))).toBe(true)
    expect(await store.jobs.find(organizationId, again!.id)).toMatchObject({
      status: 'failed',
      error: { code: 'timeout' },
      cost: 0,
      usage: { inputTokens: 0, outputTokens: 0 },
    })
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
  })

  test('a released job is uncharged, keeps its position, and its old claim does not match the new attempt', async () => {
    const { submit, claim } = alone()
    const [first, second] = [await submit(), await submit()]
    const [claimed] = await claim(1)
    expect(claimed!.id).toBe(first.id)
    expect(await store.jobs.release(claimed!, 0)).toBe(true)
    expect(await store.jobs.release(claimed!, 0)).toBe(false)
    const again = await claim()
    expect(again.map(({ id }) => id)).toEqual([first.id, second.id])
    expect(again.map(({ attempt, claims }) => [attempt, claims])).toEqual([
      [1, 2],
      [1, 1],
    ])
    expect(await store.jobs.settle(claimed!, completed())).toBe(false)
    expect(await store.jobs.settle({ ...again[0]!, boot: 'another' }, completed())).toBe(false)
    expect(await store.jobs.settle(again[0]!, completed())).toBe(true)
  })

  test('a job that is submitted after its cancellation, in the same commit, is not reported as cancelled', async () => {
    const job = newJob({ modelId: newId('evt') })
    const [cancelled] = await Promise.all([store.jobs.cancel(organizationId, job.id, 1), store.jobs.submit(job)])
    expect(cancelled).toBeUndefined()
    expect(await store.jobs.cancel(organizationId, job.id, 1)).toMatchObject({ status: 'cancelled' })
  })

  test('cancel ends a pending and a processing job, is idempotent, and comes too late for an ended one', async () => {
    const { submit, claim } = alone()
    const waiting = await submit()
    expect(await store.jobs.cancel(organizationId, waiting.id, 10)).toMatchObject({
      status: 'cancelled',
      finishedAt: 10,
    })
    await submit()
    const [runs] = await claim()
    const { ledgerRows } = store.stats()
    expect((await store.jobs.cancel(organizationId, runs!.id, 20))?.status).toBe('cancelled')
    expect((await store.jobs.cancel(organizationId, runs!.id, 30))?.finishedAt).toBe(20)
    expect(await store.jobs.settle(runs!, completed())).toBe(false)
    expect(await store.jobs.find(organizationId, runs!.id)).toMatchObject({ status: 'cancelled', result: null })
    expect(store.stats().ledgerRows).toBe(ledgerRows + 1)
    await submit()
    const [done] = await claim()
    await store.jobs.settle(done!, completed())
    await expect(store.jobs.cancel(organizationId, done!.id, 1)).rejects.toMatchObject({
      code: 'job_already_finished',
      message: expect.stringContaining(done!.id),
    })
    expect(await store.jobs.cancel('org_absent', done!.id, 1)).toBeUndefined()
  })

  test('records of finished calls are jobs with a bill, however often they are sent', async () => {
    const { ledgerRows } = store.stats()
    const calls = [
      finishedCall({ referenceQueueMs: 15_000, timeToFirstTokenMs: 120 }),
      finishedCall({ status: 'cancelled' }),
      finishedCall({
        status: 'failed',
        error: { code: 'timeout', message: 'Too slow.', type: 'timeout_error', retryable: true, attempt: 1 },
      }),
    ]
    await store.jobs.record(calls)
    await store.jobs.record([...calls, finishedCall()])
    expect(store.stats().ledgerRows).toBe(ledgerRows + 4)
    expect(await store.jobs.find(organizationId, calls[0]!.id)).toMatchObject({
      kind: 'sync',
      status: 'completed',
      inputs: 'null',
      result: null,
      cost: 15,
      usage: { inputTokens: 10, outputTokens: 5 },
      referenceQueueMs: 15_000,
      timeToFirstTokenMs: 120,
    })
    expect((await store.jobs.find(organizationId, calls[2]!.id))?.error?.code).toBe('timeout')
    expect(await store.jobs.find('org_absent', calls[0]!.id)).toBeUndefined()
    await expect(store.jobs.cancel(organizationId, calls[0]!.id, 1)).rejects.toMatchObject({
      code: 'job_already_finished',
    })
    expect((await store.jobs.cancel(organizationId, calls[1]!.id, 1))?.status).toBe('cancelled')
    expect(await store.jobs.cancel('org_absent', calls[1]!.id, 1)).toBeUndefined()
  })

  test('a failed command does not affect the others', async () => {
    const { modelId } = alone()
    const good = () => store.jobs.submit(newJob({ modelId }))
    const twice = newJob({ modelId })
    const outcomes = await Promise.allSettled([
      good(),
      store.jobs.submit(twice),
      store.jobs.submit(twice),
      store.jobs.submit(newJob({ organizationId: 'org_absent' })),
      good(),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
      'fulfilled',
    ])
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled')
        expect(await store.jobs.cancel(organizationId, outcome.value.job.id, 1)).toBeDefined()
  })

  test('the counts follow every change', async () => {
    const { submit, claim } = alone()
    const before = await store.jobs.counts()
    await submit()
    const doomed = await submit()
    await store.jobs.cancel(organizationId, doomed.id, 1)
    const [job] = await claim()
    const processing = await store.jobs.counts()
    expect(processing).toEqual({
      ...before,
      processing: before.processing + 1,
      cancelled: before.cancelled + 1,
    })
    await store.jobs.settle(job!, completed())
    expect(await store.jobs.counts()).toEqual({
      ...before,
      completed: before.completed + 1,
      cancelled: before.cancelled + 1,
    })
  })
}
