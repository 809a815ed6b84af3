import { expect, test } from 'vitest'
import type { Failure } from '../../../core/failure.ts'
import { newId } from '../../../core/ids.ts'
import { dayStartOf, type JobRecord, type NewJob } from '../../../core/store/store.ts'
import type { Subject } from './conformance.ts'
import { newExecution } from './drawn.ts'
import { claimWaiting, completed, createOrganization, failed, newFile, newJob, newVideo } from './records.ts'

/** Limits of organizations on what the store holds: exact, whatever ends, fails, is removed or is sent at once. */
export function limitRules({ store, fresh }: Subject): void {
  const organization = async (): Promise<string> => (await createOrganization(store, newId('org'))).id
  const dayStart = dayStartOf(1_700_000_000_000)
  const use = (id: string) => store.organizations.use(id, dayStart)
  const codeOf = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'stored',
      (thrown: Failure) => thrown.code,
    )
  const tally = async (work: Promise<unknown>[]): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {}
    for (const code of await Promise.all(work.map(codeOf))) counts[code] = (counts[code] ?? 0) + 1
    return counts
  }
  const together = <T>(count: number, send: (at: number) => T): T[] =>
    Array.from({ length: count }, (_, at) => send(at))

  test('50 jobs at once, 6 may wait or run: 6 are stored, 44 are queue_full; other organizations are not concerned', async () => {
    const [owner, other] = [await organization(), await organization()]
    const limits = { pendingJobs: 6, storedBytes: 0 }
    const sent = together(50, () => store.jobs.submit(newJob({ organizationId: owner, limits })))
    expect(await tally(sent)).toEqual({ stored: 6, queue_full: 44 })
    expect((await use(owner)).pendingJobs).toBe(6)
    expect(await codeOf(store.jobs.submit(newJob({ organizationId: other, limits })))).toBe('stored')
    const refused = (await store.jobs
      .submit(newJob({ organizationId: owner, limits }))
      .catch((thrown: unknown) => thrown)) as Failure
    expect(refused.message).toBe(
      `The organization 'name of ${owner}' has 6 jobs that wait or run, and may have 6. Submit this one when one has ended, or cancel one: GET /api/jobs?status=pending lists them.`,
    )
    expect(refused.facts).toEqual({ limit: 'pending_jobs', limit_of: 'organization' })
  })

  test('a job counts until it has ended, however it ends; a failed command of the same moment changes nothing', async () => {
    const owner = await organization()
    const modelId = newId('evt')
    const make = async (job: Partial<NewJob> = {}): Promise<JobRecord> =>
      (await store.jobs.submit(newJob({ organizationId: owner, modelId, ...job }))).job
    const pending = async () => (await use(owner)).pendingJobs
    const [first, second, third, late] = [await make(), await make(), await make(), await make({ startBy: 5 })]
    await make({ notBefore: Date.now() + 3_600_000 })
    expect(await pending()).toBe(5)
    const [claimed] = await claimWaiting(store, { modelId, limit: 1 })
    expect(await pending()).toBe(5)
    await store.jobs.settle(claimed!, failed(Date.now()))
    expect(await pending()).toBe(5)
    const again = (await store.jobs.claim(owner, claimed!.id, Date.now() + 1))!
    await store.jobs.settle(again, completed())
    expect(await pending()).toBe(4)
    const left = [first, second, third].find(({ id }) => id !== again.id)!
    await store.jobs.expire(Date.now(), 10)
    expect((await store.jobs.find(owner, late.id))!.status).toBe('failed')
    expect(await pending()).toBe(3)
    // One group: the cancel of an ended job fails, and the others are run again without it.
    const group = await tally([
      store.jobs.submit(newJob({ organizationId: owner, modelId })),
      store.jobs.cancel(owner, again.id, Date.now()),
      store.jobs.cancel(owner, left.id, Date.now()),
    ])
    expect(group).toEqual({ stored: 2, job_already_finished: 1 })
    expect(await pending()).toBe(3)
    await store.jobs.remove(owner, again.id, Date.now())
    await store.jobs.remove(owner, left.id, Date.now())
    expect(await pending()).toBe(3)
  })

  test('an idempotency key returns its job although the limit is reached', async () => {
    const owner = await organization()
    const limits = { pendingJobs: 1, storedBytes: 0 }
    const idempotency = { key: 'POST /api/jobs k', bodyHash: 'h' }
    const { job } = await store.jobs.submit(newJob({ organizationId: owner, limits, idempotency }))
    const again = await store.jobs.submit(newJob({ organizationId: owner, limits, idempotency }))
    expect([again.replayed, again.job.id]).toEqual([true, job.id])
  })

  test('an execution needs room for a job when it is created; the jobs of its later nodes are counted and never refused', async () => {
    const owner = await organization()
    const limits = { pendingJobs: 1, storedBytes: 0 }
    const draw = () => {
      const { modelId: _, ...made } = newExecution({ nodes: { a: ['c'], b: ['c'], c: [] } })
      return { ...made, organizationId: owner, limits }
    }
    const { execution } = await store.executions.create(draw())
    expect((await use(owner)).pendingJobs).toBe(2)
    expect(await codeOf(store.executions.create(draw()))).toBe('queue_full')
    await store.executions.cancel(owner, execution.id, Date.now())
    expect((await use(owner)).pendingJobs).toBe(0)
    expect(await codeOf(store.executions.create(draw()))).toBe('stored')
  })

  test('a node whose result is reused no longer counts, whether its job waits or runs', async () => {
    const owner = await organization()
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    await store.jobs.settle((await store.jobs.claim(owner, job.id, Date.now()))!, completed())
    const draw = async () => {
      const { modelId: _, ...made } = newExecution({ nodes: { a: ['b'], b: [] } })
      await store.executions.create({ ...made, organizationId: owner })
      return made.nodes.map(({ jobId }) => jobId) as [string, string]
    }
    const [waiting] = await draw()
    const [running, after] = await draw()
    expect((await use(owner)).pendingJobs).toBe(2)
    expect(await store.executions.reuse(owner, waiting, { jobId: job.id, at: Date.now() })).toBe(true)
    const claim = (await store.jobs.claim(owner, running, Date.now()))!
    expect(await store.executions.reuse(owner, running, { jobId: job.id, at: Date.now(), claim })).toBe(true)
    // The two second nodes have begun to wait.
    expect((await use(owner)).pendingJobs).toBe(2)
    await store.jobs.settle((await store.jobs.claim(owner, after, Date.now()))!, completed())
    expect((await use(owner)).pendingJobs).toBe(1)
  })

  test('50 files of 100 bytes at once, 650 may be stored: 6 are added; removing one makes room for one', async () => {
    const owner = await organization()
    const limits = { storedBytes: 650, uploadsPerDay: 0, dayStart }
    const add = (bytes = 100) => store.files.add(newFile({ organizationId: owner, bytes }), limits)
    expect(await tally(together(50, () => add()))).toEqual({ stored: 6, storage_full: 44 })
    expect(await use(owner)).toMatchObject({ storedBytes: 600, uploadsToday: 0 })
    expect([await codeOf(add(51)), await codeOf(add(50)), await codeOf(add(1))]).toEqual([
      'storage_full',
      'stored',
      'storage_full',
    ])
    const room = (bytes: number) => codeOf(store.files.requireRoom(owner, { bytes, isUpload: false }, limits))
    expect([await room(1), await room(0)]).toEqual(['storage_full', 'stored'])
    const [newest] = await store.files.list(owner, { limit: 1 })
    for (const at of [1, 2]) await store.files.remove(owner, newest!.id, at)
    expect((await use(owner)).storedBytes).toBe(650 - newest!.bytes)
    expect(await room(newest!.bytes)).toBe('stored')
  })

  test('files of results count, are never refused, and forbid jobs that write files', async () => {
    const owner = await organization()
    const { job } = await store.jobs.submit(newJob({ organizationId: owner }))
    const claim = (await store.jobs.claim(owner, job.id, Date.now()))!
    const video = newVideo({ organizationId: owner, jobId: job.id })
    await store.jobs.settle(claim, { ...completed(), ...video })
    expect((await use(owner)).storedBytes).toBe(2000)
    const submit = (storedBytes: number) =>
      codeOf(store.jobs.submit(newJob({ organizationId: owner, limits: { pendingJobs: 0, storedBytes } })))
    expect([await submit(2000), await submit(2001), await submit(0)]).toEqual(['storage_full', 'stored', 'stored'])
    await store.library.remove(owner, video.library[0]!.id, Date.now())
    expect((await use(owner)).storedBytes).toBe(0)
    expect(await submit(2000)).toBe('stored')
  })

  test('50 uploads at once, 6 a day: 6 are added; a removed one still counts, and the next day begins at midnight UTC', async () => {
    const owner = await organization()
    const upload = (createdAt: number) =>
      store.files.add(newFile({ organizationId: owner, purpose: 'upload', createdAt }), {
        storedBytes: 0,
        uploadsPerDay: 6,
        dayStart: dayStartOf(createdAt),
      })
    const night = dayStart + 86_400_000 - 1
    expect(await tally(together(50, () => upload(night)))).toEqual({ stored: 6, rate_limit: 44 })
    const [newest] = await store.files.list(owner, { limit: 1 })
    await store.files.remove(owner, newest!.id, night)
    expect((await use(owner)).uploadsToday).toBe(6)
    expect([await codeOf(upload(night)), await codeOf(upload(night + 1))]).toEqual(['rate_limit', 'stored'])
  })

  test('after a restart the counts are those of the rows', async () => {
    await using opened = await fresh()
    const { place } = opened
    const owner = (await createOrganization(opened.store, newId('org'))).id
    for (const job of [{}, {}, { notBefore: Date.now() + 3_600_000 }])
      await opened.store.jobs.submit(newJob({ organizationId: owner, ...job }))
    await claimWaiting(opened.store, { limit: 1 })
    await opened.store.files.add(newFile({ organizationId: owner, purpose: 'upload', bytes: 7 }))
    await opened.store.close()
    const again = await place.open()
    expect(await again.organizations.use(owner, dayStart)).toEqual({ pendingJobs: 3, storedBytes: 7, uploadsToday: 1 })
    await again.close()
  })
}
