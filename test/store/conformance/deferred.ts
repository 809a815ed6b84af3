import { expect, test } from 'vitest'
import { newId } from '../../../core/ids.ts'
import { deferredUntil } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { claimWaiting, createOrganization, newJob, organizationId } from './records.ts'

/** Held jobs, and jobs that are submitted together. */
export function deferredRules({ store }: Subject): void {
  const deferred = async (more: object = {}) =>
    (await store.jobs.submit(newJob({ modelId: newId('evt'), notBefore: deferredUntil, ...more }))).job
  const error = { code: 'worker_error', message: 'No.', type: 'server_error', retryable: true, attempt: 1 } as const

  test('a deferred job is in no queue, and is listed as deferred', async () => {
    const job = await deferred()
    expect(job.notBefore).toBe(deferredUntil)
    expect(await store.jobs.deferred()).toContainEqual({ organizationId, id: job.id })
    expect(await claimWaiting(store, { modelId: job.modelId })).toEqual([])
    expect(await store.jobs.wake(Date.now() + 1e9, 100)).toEqual([])
    await store.jobs.cancel(organizationId, job.id, 1)
    expect(await store.jobs.deferred()).not.toContainEqual({ organizationId, id: job.id })
  })

  test('a resumed job runs with its new inputs', async () => {
    const job = await deferred()
    const resumed = await store.jobs.resume(organizationId, job.id, { inputs: '{"prompt":"new"}', notBefore: 0 }, 5)
    expect(resumed).toMatchObject({ status: 'pending', inputs: '{"prompt":"new"}', updatedAt: 5 })
    const [claimed] = await claimWaiting(store, { modelId: job.modelId })
    expect(claimed).toMatchObject({ id: job.id, inputs: '{"prompt":"new"}', attempt: 1 })
    await store.jobs.cancel(organizationId, job.id, 1)
  })

  test('a resumed job keeps its earliest start', async () => {
    const job = await deferred()
    const notBefore = Date.now() + 3_600_000
    expect(await store.jobs.resume(organizationId, job.id, { inputs: '{}', notBefore }, 5)).toMatchObject({ notBefore })
    expect(await claimWaiting(store, { modelId: job.modelId })).toEqual([])
    expect((await store.jobs.wake(notBefore, 100)).map(({ id }) => id)).toContain(job.id)
    await store.jobs.cancel(organizationId, job.id, 1)
  })

  test('a deferred job can fail without an attempt', async () => {
    const job = await deferred()
    expect(await store.jobs.resume(organizationId, job.id, { error }, 9)).toMatchObject({
      status: 'failed',
      error,
      attempt: 0,
      startedAt: null,
      finishedAt: 9,
    })
  })

  test('a job is resumed once, by its own organization only, and not after it was cancelled', async () => {
    const other = (await createOrganization(store, newId('org'))).id
    const how = { inputs: '{}', notBefore: 0 }
    const first = await deferred()
    expect(await store.jobs.resume(other, first.id, how, 1)).toBeUndefined()
    expect(await store.jobs.resume(organizationId, first.id, how, 1)).toBeDefined()
    expect(await store.jobs.resume(organizationId, first.id, { error }, 2)).toBeUndefined()
    const second = await deferred()
    await store.jobs.cancel(organizationId, second.id, 1)
    expect(await store.jobs.resume(organizationId, second.id, how, 2)).toBeUndefined()
    expect(await store.jobs.resume(organizationId, newId('job'), how, 2)).toBeUndefined()
    await store.jobs.cancel(organizationId, first.id, 1)
  })

  test('a deferred job that may no longer start fails', async () => {
    const job = await deferred({ createdAt: 1, startBy: 2 })
    expect((await store.jobs.expire(3, 1_000)).map(({ id }) => id)).toContain(job.id)
    expect(await store.jobs.find(organizationId, job.id)).toMatchObject({
      status: 'failed',
      error: { code: 'timeout' },
    })
  })

  test('a job keeps its region', async () => {
    const { job } = await store.jobs.submit(newJob({ modelId: newId('evt'), region: 'EU' }))
    expect(job.region).toBe('EU')
    expect(await store.jobs.find(organizationId, job.id)).toEqual(job)
    const [claimed] = await claimWaiting(store, { modelId: job.modelId })
    expect(claimed!.region).toBe('EU')
    await store.jobs.cancel(organizationId, job.id, 1)
  })

  test('jobs that are submitted together are stored together', async () => {
    const modelId = newId('evt')
    const jobs = [newJob({ modelId }), newJob({ modelId })]
    const answers = await store.jobs.submitAll(jobs)
    expect(answers.map(({ job, replayed }) => [job.id, replayed])).toEqual(jobs.map(({ id }) => [id, false]))
    for (const { job } of answers) expect(await store.jobs.find(organizationId, job.id)).toEqual(job)
    for (const { id } of jobs) await store.jobs.cancel(organizationId, id, 1)
  })

  test('or none of them', async () => {
    const modelId = newId('evt')
    const keyed = (bodyHash: string) => newJob({ modelId, idempotency: { key: `together ${modelId}`, bodyHash } })
    const { job } = await store.jobs.submit(keyed('a'))
    const first = newJob({ modelId })
    await expect(store.jobs.submitAll([first, keyed('b')])).rejects.toMatchObject({ code: 'idempotency_key_reused' })
    expect(await store.jobs.find(organizationId, first.id)).toBeUndefined()
    const [, again] = await store.jobs.submitAll([first, keyed('a')])
    expect([again!.job.id, again!.replayed]).toEqual([job.id, true])
    for (const { id } of [job, first]) await store.jobs.cancel(organizationId, id, 1)
  })
}
