import { afterEach, beforeEach, expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { type Jobs, type JobsOptions, openJobs } from '../../../core/jobs/jobs.ts'
import type { JobRecord, Store } from '../../../core/store/store.ts'
import type { RunJob, RunResult } from '../../../core/tasks/run-job.ts'
import { keptLog, newJob, openTestStore, organizationId, type TestStore } from '../store/_store.ts'
import { type SlotsOnly, slotsOnly } from './_fleet.ts'
import { byHand, done, runner } from './_runs.ts'

let opened: TestStore
let store: Store
let log: ReturnType<typeof keptLog>
beforeEach(async () => {
  opened = await openTestStore()
  store = opened.store
  log = keptLog()
  slots = slotsOnly()
})
afterEach(async () => {
  await opened[Symbol.asyncDispose]()
  expect(log.lines.filter(line => line.includes('"level":"error"'))).toEqual([])
})

const never = new AbortController().signal
const find = (id: string) => store.jobs.find(organizationId, id) as Promise<JobRecord>

let slots: SlotsOnly
const open = (run: RunJob, more: Partial<JobsOptions> = {}): Jobs => {
  return openJobs({
    store,
    fleet: slots.fleet,
    models: slots.models,
    weightOf: () => 1,
    run,
    log: log.log,
    tickMs: 60_000,
    ...more,
  })
}

test('a submitted job runs at once, and its waiting caller gets its end', async () => {
  const jobs = open(runner(async job => ({ ...done, result: job.inputs })))
  const { job, replayed } = await jobs.submit(newJob({ inputs: '{"n":1}' }))
  expect({ status: job.status, replayed }).toEqual({ status: 'pending', replayed: false })
  const ended = await jobs.wait(job.id, never)
  expect(ended).toMatchObject({
    id: job.id,
    status: 'completed',
    result: '{"n":1}',
    engineId: 'wkr_1',
    cost: 3,
    attempt: 1,
  })
  expect(await find(job.id)).toEqual(ended)
  await jobs.drain(0)
})

test('jobs from before the start run without a request', async () => {
  const { job } = await store.jobs.submit(newJob())
  const hand = byHand()
  const jobs = open(hand.run)
  const [run] = await hand.begun(1)
  expect(run!.job.id).toBe(job.id)
  run!.finish()
  expect((await jobs.wait(job.id, never))?.status).toBe('completed')
  await jobs.drain(0)
})

test('at most as many run as there are slots, in total and for one model, and each end starts the next', async () => {
  const hand = byHand()
  const jobs = open(hand.run, { slots: 3, slotsPerModel: 2 })
  for (let i = 0; i < 5; i++) await jobs.submit(newJob({ modelId: 'a' }))
  await hand.begun(2)
  for (let i = 0; i < 3; i++) await jobs.submit(newJob({ modelId: 'b' }))
  const runs = await hand.begun(3)
  expect(jobs.stats().running).toBe(3)
  expect(runs.map(({ job }) => job.modelId).sort()).toEqual(['a', 'a', 'b'])
  for (let next = 0; next < 8; next++) {
    await hand.begun(Math.min(next + 3, 8))
    expect(jobs.stats().running).toBeLessThanOrEqual(3)
    hand.runs[next]!.finish()
    await jobs.wait(hand.runs[next]!.job.id, never)
  }
  expect((await store.jobs.counts()).completed).toBe(8)
  await jobs.drain(0)
})

test('a failed engine is tried again after the back-off; the last failure is the answer', async () => {
  let clock = Date.now()
  const hand = byHand()
  const jobs = open(hand.run, { clock: { now: () => clock }, tickMs: 20 })
  const { job } = await jobs.submit(newJob({ maxAttempts: 2 }))
  const broken = new Failure('worker_error', 'Engine exited (3): CUDA out of memory.')
  ;(await hand.begun(1))[0]!.fail(broken)
  await expect.poll(async () => (await find(job.id)).status).toBe('pending')
  expect(await find(job.id)).toMatchObject({ attempt: 1, error: { code: 'worker_error', attempt: 1, retryable: true } })
  expect(hand.runs).toHaveLength(1)
  clock += 1250
  const again = (await hand.begun(2))[1]!
  expect(again.job.attempt).toBe(2)
  const waiting = jobs.wait(job.id, never)
  again.fail(broken)
  expect(await waiting).toMatchObject({
    status: 'failed',
    error: { code: 'worker_error', message: 'Engine exited (3): CUDA out of memory.', attempt: 2 },
  })
  await jobs.drain(0)
})

test('without capacity the job keeps its attempt and its position, and only its model is paused', async () => {
  const hand = byHand()
  const jobs = open(hand.run, { slots: 1, tickMs: 20 })
  const first = (await jobs.submit(newJob({ modelId: 'cold' }))).job
  await hand.begun(1)
  const second = (await jobs.submit(newJob({ modelId: 'cold' }))).job
  const other = (await jobs.submit(newJob({ modelId: 'warm' }))).job
  hand.runs[0]!.fail(new Failure('model_warming_up', 'It loads.', { retryAfterMs: 300 }))
  await hand.begun(2)
  expect(hand.runs[1]!.job.id).toBe(other.id)
  expect(await find(first.id)).toMatchObject({ status: 'pending', attempt: 0, error: null })
  hand.runs[1]!.finish()
  const [, , third] = await hand.begun(3)
  expect(third!.job).toMatchObject({ id: first.id, attempt: 1, claims: 2 })
  third!.finish()
  const [, , , fourth] = await hand.begun(4)
  expect(fourth!.job.id).toBe(second.id)
  fourth!.finish()
  await jobs.wait(second.id, never)
  await jobs.drain(0)
})

test('a cancel is stored before the run is aborted, ends the wait, and frees the slot', async () => {
  const hand = byHand()
  const jobs = open(hand.run, { slots: 1 })
  const { job } = await jobs.submit(newJob())
  const next = (await jobs.submit(newJob())).job
  const [run] = await hand.begun(1)
  let statusWhenTold: Promise<JobRecord> | undefined
  run!.signal.addEventListener('abort', () => {
    statusWhenTold = find(job.id)
  })
  const waiting = jobs.wait(job.id, never)
  expect((await jobs.cancel(organizationId, job.id))?.status).toBe('cancelled')
  expect((await statusWhenTold!).status).toBe('cancelled')
  expect(run!.signal.reason).toMatchObject({ code: 'cancelled' })
  expect((await waiting)?.status).toBe('cancelled')
  expect((await hand.begun(2))[1]!.job.id).toBe(next.id)
  expect(store.stats().lateResults).toBe(0)
  await jobs.cancel(organizationId, next.id)
  await expect(jobs.cancel(organizationId, job.id)).resolves.toMatchObject({ status: 'cancelled' })
  expect(await jobs.cancel('org_foreign', job.id)).toBeUndefined()
  await jobs.drain(0)
})

test('a cancel of another organization does not affect the run', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const [run] = await hand.begun(1)
  expect(await jobs.cancel('org_foreign', job.id)).toBeUndefined()
  expect(run!.signal.aborted).toBe(false)
  run!.finish()
  expect((await jobs.wait(job.id, never))?.status).toBe('completed')
  await expect(jobs.cancel(organizationId, job.id)).rejects.toMatchObject({ code: 'job_already_finished' })
  await jobs.drain(0)
})

test('a run that ignores the cancel returns a late result, which is counted and changes nothing', async () => {
  const release = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const undone: RunResult[] = []
  const jobs = open(
    runner(async () => {
      begun.resolve()
      await release.promise
      return done
    }, undone),
  )
  const { job } = await jobs.submit(newJob())
  await begun.promise
  await jobs.cancel(organizationId, job.id)
  release.resolve()
  await expect.poll(() => store.stats().lateResults).toBe(1)
  expect(await find(job.id)).toMatchObject({ status: 'cancelled', result: null, cost: 0 })
  expect(store.stats().ledgerRows).toBe(1)
  await jobs.drain(0)
})

test('a drain waits for running jobs, starts none, and releases those that do not end in time', async () => {
  const hand = byHand()
  const jobs = open(hand.run, { slots: 2 })
  const [ends, stays, waits] = [newJob(), newJob(), newJob()]
  for (const job of [ends, stays, waits]) await jobs.submit(job)
  const runs = await hand.begun(2)
  const longPoll = jobs.wait(waits.id, never)
  const draining = jobs.drain(300)
  runs[0]!.finish()
  await expect(jobs.submit(newJob())).rejects.toMatchObject({ code: 'shutting_down', status: 503 })
  expect(await draining).toEqual({ released: 1 })
  expect(await longPoll).toBeUndefined()
  expect(runs[1]!.signal.reason).toMatchObject({ code: 'shutting_down' })
  expect(hand.runs).toHaveLength(2)
  expect((await find(ends.id)).status).toBe('completed')
  for (const job of [stays, waits]) expect(await find(job.id)).toMatchObject({ status: 'pending', attempt: 0 })
})

test('a run that ignores the drain loses its claim', async () => {
  const release = Promise.withResolvers<void>()
  const begun = Promise.withResolvers<void>()
  const undone: RunResult[] = []
  const jobs = open(
    runner(async () => {
      begun.resolve()
      await release.promise
      return done
    }, undone),
  )
  const { job } = await jobs.submit(newJob())
  await begun.promise
  await jobs.drain(0)
  expect(await find(job.id)).toMatchObject({ status: 'pending', attempt: 0 })
  release.resolve()
  await expect.poll(() => store.stats().lateResults).toBe(1)
  expect((await find(job.id)).status).toBe('pending')
})

test('a wait ends with its signal and does not affect the job', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  await hand.begun(1)
  const patience = new AbortController()
  const waiting = jobs.wait(job.id, patience.signal)
  patience.abort()
  expect(await waiting).toBeUndefined()
  expect(await jobs.wait(job.id, AbortSignal.abort())).toBeUndefined()
  hand.runs[0]!.finish()
  expect((await jobs.wait(job.id, never))?.status).toBe('completed')
  await jobs.drain(0)
})

test('a hundred submissions at once with one key run once', async () => {
  let runs = 0
  const jobs = open(
    runner(async () => {
      runs += 1
      return done
    }),
  )
  const idempotency = { key: 'POST /api/jobs once', bodyHash: 'h' }
  const answers = await Promise.all(Array.from({ length: 100 }, () => jobs.submit(newJob({ idempotency }))))
  const ids = new Set(answers.map(({ job }) => job.id))
  expect(ids.size).toBe(1)
  await expect.poll(async () => (await store.jobs.counts()).completed).toBe(1)
  expect(runs).toBe(1)
  expect((await jobs.submit(newJob({ idempotency }))).job).toMatchObject({ status: 'completed' })
  await jobs.drain(0)
})

test('invalid usage is never billed', async () => {
  const jobs = open(
    runner(async () => ({
      ...done,
      usage: { inputTokens: Number.NaN, outputTokens: -5 },
      cost: 1.5,
    })),
  )
  const { job } = await jobs.submit(newJob())
  expect(await jobs.wait(job.id, never)).toMatchObject({ usage: { inputTokens: 0, outputTokens: 0 }, cost: 2 })
  await jobs.drain(0)
})

test('an exception that is no Failure ends the job as internal_error, with the cause in the log only', async () => {
  const jobs = open(
    runner(async () => {
      throw new TypeError('secret detail')
    }),
  )
  const { job } = await jobs.submit(newJob())
  const ended = await jobs.wait(job.id, never)
  expect(ended).toMatchObject({ status: 'failed', error: { code: 'internal_error', retryable: false } })
  expect(ended!.error!.message).not.toContain('secret detail')
  const errors = log.lines.splice(0).filter(line => line.includes('"level":"error"'))
  expect(errors).toEqual([expect.stringContaining('secret detail')])
  await jobs.drain(0)
})

test('on a full disk a result waits until there is space', async () => {
  let refusals = 2
  const settle = store.jobs.settle.bind(store.jobs)
  store = {
    ...store,
    jobs: {
      ...store.jobs,
      settle: async (claim, outcome) => {
        if (refusals-- > 0) throw new Failure('disk_full', 'No room.', { retryAfterMs: 1 })
        return settle(claim, outcome)
      },
    },
  }
  const jobs = open(runner(async () => done))
  const { job } = await jobs.submit(newJob())
  expect((await jobs.wait(job.id, never))?.status).toBe('completed')
  expect(refusals).toBe(-1)
  await jobs.drain(0)
})
