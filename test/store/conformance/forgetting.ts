import { expect, test } from 'vitest'
import type { JobRecord } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { completed, finishedCall, newFile, newJob, newVideo, organizationId } from './records.ts'

/** Logs, and the deletion and retention of jobs, keys and idempotency records. */
export function forgettingRules({ store }: Subject): void {
  const logs = (...messages: string[]) => JSON.stringify(messages.map(message => ({ at: 1, level: 'INFO', message })))

  async function claimed(job: Parameters<typeof newJob>[0] = {}): Promise<JobRecord> {
    const { id } = (await store.jobs.submit(newJob(job))).job
    return (await store.jobs.claim(organizationId, id, Date.now()))!
  }
  async function video(job: Parameters<typeof newJob>[0] = {}, at = Date.now()): Promise<JobRecord> {
    const run = await claimed(job)
    await store.files.add(newFile({ jobId: run.id, purpose: 'input', expiresAt: at + 1 }))
    const made = newVideo({ jobId: run.id })
    const outcome = { ...completed(at), ...made, logs: logs('done') }
    await store.jobs.settle(run, outcome)
    return (await store.jobs.find(organizationId, run.id))!
  }
  const filesOf = async (jobId: string) =>
    (await store.files.list(organizationId, { limit: 1000 })).filter(file => file.jobId === jobId)

  test('the logs of all attempts are kept, in order', async () => {
    const run = await claimed({ maxAttempts: 2 })
    expect(await store.jobs.logs(organizationId, run.id)).toBe('[]')
    const error = { code: 'worker_error' as const, message: 'No.', type: 'server_error', retryable: true, attempt: 1 }
    const failure = { status: 'failed' as const, error, engineId: null, at: 1 }
    await store.jobs.settle(run, { ...failure, retryAt: 1, logs: logs('a', 'it said "]"') })
    await store.jobs.wake(1, 10)
    const again = (await store.jobs.claim(organizationId, run.id, 2))!
    await store.jobs.settle(run, { ...completed(), logs: logs('too late') })
    await store.jobs.settle(again, { ...failure, retryAt: null, logs: logs('b') })
    expect(JSON.parse(await store.jobs.logs(organizationId, run.id))).toEqual(JSON.parse(logs('a', 'it said "]"', 'b')))
    expect(await store.jobs.logs('org_absent', run.id)).toBe('[]')
  })

  test('a deleted job is removed with its files, its videos and its events; its ledger row is kept', async () => {
    const job = await video()
    const { ledgerRows } = store.stats()
    const before = await store.jobs.counts()
    const files = await filesOf(job.id)
    expect(files.map(({ purpose }) => purpose).sort()).toEqual(['input', 'output', 'thumbnail'])
    expect(await store.jobs.remove('org_absent', job.id, 9)).toBeUndefined()
    expect(await store.jobs.wasRemoved(organizationId, job.id)).toBe(false)
    expect(await store.jobs.remove(organizationId, job.id, 9)).toBe(true)
    expect(await store.jobs.find(organizationId, job.id)).toBeUndefined()
    expect(await store.jobs.logs(organizationId, job.id)).toBe('[]')
    expect(await store.events.after(organizationId, { sequence: 0, limit: 10, jobId: job.id })).toEqual([])
    expect(await filesOf(job.id)).toEqual([])
    for (const { id } of files) expect((await store.files.find(id))?.removedAt).toBe(9)
    expect((await store.library.list(organizationId, { limit: 10 })).items).toEqual([])
    expect(store.stats().ledgerRows).toBe(ledgerRows)
    expect(await store.jobs.counts()).toEqual({ ...before, completed: before.completed - 1 })
    expect(await store.jobs.remove(organizationId, job.id, 10)).toBeUndefined()
    expect(await store.jobs.wasRemoved(organizationId, job.id)).toBe(true)
    expect(await store.jobs.wasRemoved('org_absent', job.id)).toBe(false)
    expect(await store.jobs.wasRemoved(organizationId, newJob().id)).toBe(false)
  })

  test('a running job, and the ledger row of a call, cannot be deleted', async () => {
    const run = await claimed()
    const waiting = (await store.jobs.submit(newJob())).job
    for (const [{ id }, status] of [
      [run, 'processing'],
      [waiting, 'pending'],
    ] as const)
      await expect(store.jobs.remove(organizationId, id, 1)).rejects.toMatchObject({
        code: 'conflict',
        message: `The job ${id} is ${status}. Cancel it before you delete it.`,
      })
    const call = finishedCall()
    await store.jobs.record([call])
    await expect(store.jobs.remove(organizationId, call.id, 1)).rejects.toMatchObject({ code: 'conflict' })
    expect(await store.jobs.wasRemoved(organizationId, call.id)).toBe(false)
    for (const { id } of [run, waiting]) await store.jobs.cancel(organizationId, id, 1)
  })

  test('a job and its files are kept for its retention time after its end, and without one until they are deleted', async () => {
    const end = Date.now()
    const [brief, kept] = [await video({ retentionMs: 1000 }, end), await video({}, end)]
    expect([brief.expiresAt, kept.expiresAt]).toEqual([end + 1000, null])
    for (const file of await filesOf(brief.id)) expect(file.expiresAt).toBe(end + 1000)
    for (const file of await filesOf(kept.id)) expect(file.expiresAt).toBeNull()
    await store.jobs.sweep(end + 999, 1000)
    expect(await store.jobs.find(organizationId, brief.id)).toBeDefined()
    expect(await store.jobs.sweep(end + 1000, 1000)).toBe(1)
    expect(await store.jobs.find(organizationId, brief.id)).toBeUndefined()
    expect(await store.jobs.wasRemoved(organizationId, brief.id)).toBe(true)
    expect(await filesOf(brief.id)).toEqual([])
    expect(await filesOf(kept.id)).toHaveLength(3)
    expect(await store.jobs.find(organizationId, kept.id)).toEqual(kept)
  })

  test('jobs are swept a few at a time, the earliest expiry first', async () => {
    const jobs = []
    for (const retentionMs of [30, 10, 20]) jobs.push(await video({ retentionMs }, 1_000))
    expect(await store.jobs.sweep(1_100, 2)).toBe(2)
    const left = await Promise.all(jobs.map(({ id }) => store.jobs.find(organizationId, id)))
    expect(left.map(job => job !== undefined)).toEqual([true, false, false])
    expect(await store.jobs.sweep(1_100, 2)).toBe(1)
  })

  test('a key whose job has run and is no longer kept is refused, because the caller did not ask for a second run', async () => {
    const idempotency = { key: 'POST /api/jobs gone', bodyHash: 'h' }
    const run = await claimed({ idempotency })
    await store.jobs.settle(run, completed())
    await store.jobs.remove(organizationId, run.id, 1)
    await expect(store.jobs.submit(newJob({ idempotency }))).rejects.toMatchObject({
      code: 'output_expired',
      message: expect.stringContaining(run.id),
    })
  })

  test('the key of a job that was deleted before it began is free again', async () => {
    const idempotency = { key: 'POST /api/jobs withdrawn', bodyHash: 'h' }
    const { job } = await store.jobs.submit(newJob({ idempotency }))
    await store.jobs.cancel(organizationId, job.id, 1)
    expect(await store.jobs.submit(newJob({ idempotency }))).toMatchObject({ replayed: true })
    await store.jobs.remove(organizationId, job.id, 1)
    const again = await store.jobs.submit(newJob({ idempotency }))
    expect(again.replayed).toBe(false)
    await store.jobs.cancel(organizationId, again.job.id, 1)
  })

  test('an idempotency record is kept once for its key, for 24 hours', async () => {
    const reply = (body: string, createdAt: number) => ({ bodyHash: 'h', status: 200, body, jobId: null, createdAt })
    const day = 24 * 3_600_000
    expect(await store.idempotency.find('d1')).toBeUndefined()
    await store.idempotency.keep('d1', reply('{"a":1}', 1_000))
    await store.idempotency.keep('d1', reply('{"a":2}', 2_000))
    expect(await store.idempotency.find('d1')).toEqual(reply('{"a":1}', 1_000))
    await store.idempotency.keep('d1', { ...reply('{"a":3}', 1_000 + day), jobId: 'job_x' })
    expect(await store.idempotency.find('d1')).toEqual({ ...reply('{"a":3}', 1_000 + day), jobId: 'job_x' })
    await store.idempotency.keep('d2', reply('late', 1_001 + day))
    await store.jobs.sweep(1_001 + 2 * day, 1)
    expect(await store.idempotency.find('d1')).toBeUndefined()
    expect(await store.idempotency.find('d2')).toBeDefined()
  })
}
