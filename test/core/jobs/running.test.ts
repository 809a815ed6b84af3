import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPlans } from '../../../core/accounts/plans.ts'
import { openSpend } from '../../../core/admission/spend.ts'
import { Failure } from '../../../core/failure.ts'
import { type Jobs, type JobsOptions, openJobs } from '../../../core/jobs/jobs.ts'
import { openDatabase } from '../../../core/store/sqlite/database.ts'
import type { JobRecord, Store } from '../../../core/store/store.ts'
import type { RunJob, RunResult } from '../../../core/tasks/run-job.ts'
import { keptLog, newJob, openTestStore, organizationId, type TestStore } from '../store/_store.ts'
import { type SlotsOnly, slotsOnly } from './_fleet.ts'
import { byHand, done, runner } from './_runs.ts'

let opened: TestStore
let store: Store
let slots: SlotsOnly
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
const open = (run: RunJob, more: Partial<JobsOptions> = {}): Jobs =>
  openJobs({
    store,
    fleet: slots.fleet,
    models: slots.models,
    weightOf: () => 1,
    run,
    log: log.log,
    tickMs: 60_000,
    ...more,
  })
/** Resolves with the status of a pending job once it has a reason of this kind. */
const waitsFor = (jobs: Jobs, id: string, reason: string) =>
  expect.poll(async () => jobs.progressOf(await find(id)).waitingFor?.reason).toBe(reason)

test('no job is claimed before a slot is held', async () => {
  slots.setSlots('tiny-chat', 0)
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const urgent = (await jobs.submit(newJob({ priority: 10 }))).job
  expect(jobs.queueForecast('tiny-chat').waiting).toBe(2)
  expect((await find(job.id)).status).toBe('pending')
  // The last and urgent one still goes first: the order is decided now.
  slots.setSlots('tiny-chat', 1)
  expect((await hand.begun(1))[0]!.job.id).toBe(urgent.id)
  await jobs.drain(0)
})

test('a job cancelled while it waits leaves nothing in the queue', async () => {
  slots.setSlots('tiny-chat', 0)
  const jobs = open(byHand().run)
  const ids = await Promise.all(Array.from({ length: 20 }, async () => (await jobs.submit(newJob())).job.id))
  expect(jobs.queueForecast('tiny-chat').waiting).toBe(20)
  for (const id of ids) await jobs.cancel(organizationId, id)
  expect(jobs.queueForecast('tiny-chat').waiting).toBe(0)
  expect(slots.held()).toBe(0)
  await jobs.drain(0)
})

test('a job that can never be claimed fails with a reason, is logged once, and holds up no other', async () => {
  slots.setSlots('tiny-chat', 0)
  const hand = byHand()
  const jobs = open(hand.run)
  const bad = (await jobs.submit(newJob())).job.id
  const usual = (await jobs.submit(newJob())).job.id
  const connection = openDatabase(join(opened.dataDir, 'infer.db'))
  // An object, as the table demands, but without an address: no event of the job can be delivered.
  connection.prepare("UPDATE jobs SET webhook = '{}' WHERE id = ?").run(bad)
  connection.close()
  const ended = jobs.wait(bad, never)
  slots.setSlots('tiny-chat', 1)
  expect((await hand.begun(1))[0]!.job.id).toBe(usual)
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'internal_error', retryable: false } })
  hand.runs[0]!.finish()
  await expect.poll(async () => (await find(usual)).status).toBe('completed')
  expect(log.lines.splice(0).filter(line => line.includes(bad))).toHaveLength(1)
  expect(slots.held()).toBe(0)
  await jobs.drain(0)
})

test('a slot is released in every outcome', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const ids = await Promise.all(
    Array.from({ length: 4 }, async () => (await jobs.submit(newJob({ maxAttempts: 1 }))).job.id),
  )
  const runs = await hand.begun(4)
  expect(slots.held()).toBe(4)
  const of = (id: string | undefined) => runs.find(run => run.job.id === id)!
  of(ids[0]).finish()
  of(ids[1]).fail(new Failure('worker_error', 'Engine exited.'))
  of(ids[2]).fail(new Failure('invalid_value', 'It is wrong.'))
  await jobs.cancel(organizationId, ids[3]!)
  await expect.poll(() => slots.held()).toBe(0)
  await expect
    .poll(async () => Promise.all(ids.map(async id => (await find(id)).status)))
    .toEqual(['completed', 'failed', 'failed', 'cancelled'])
  await jobs.drain(0)
})

test('a model that cannot be started costs no attempt; the reason is shown until it can', async () => {
  slots.refuse(
    'tiny-chat',
    new Failure('worker_error', "Model 'tiny-chat' cannot be started: no such file.", { retryAfterMs: 150 }),
  )
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob({ maxAttempts: 1 }))
  await waitsFor(jobs, job.id, 'engine_failing')
  expect(jobs.progressOf(await find(job.id)).waitingFor?.detail).toBe(
    "Model 'tiny-chat' cannot be started: no such file.",
  )
  slots.refuse('tiny-chat', undefined)
  const [run] = await hand.begun(1)
  expect(run!.job).toMatchObject({ id: job.id, attempt: 1, claims: 1 })
  run!.finish()
  expect((await jobs.wait(job.id, never))?.status).toBe('completed')
  await jobs.drain(0)
})

test('a model that can never be loaded fails its jobs with the reason; missing files are waited for', async () => {
  const jobs = open(byHand().run)
  const reason = "The model 'tiny-chat' cannot be loaded. Its chat template is not valid."
  slots.refuse('tiny-chat', new Failure('model_load_failed', reason, { final: true }))
  const ids = await Promise.all(Array.from({ length: 3 }, async () => (await jobs.submit(newJob())).job.id))
  const error = { code: 'model_load_failed', message: reason }
  for (const id of ids) await expect.poll(() => find(id)).toMatchObject({ status: 'failed', attempt: 1, error })
  slots.refuse('tiny-chat', new Failure('model_load_failed', 'It lacks a part.', { final: true, retryAfterMs: 60_000 }))
  const { job } = await jobs.submit(newJob())
  await waitsFor(jobs, job.id, 'engine_failing')
  expect(jobs.progressOf(await find(job.id)).waitingFor).toMatchObject({ detail: 'It lacks a part.', final: true })
  await jobs.drain(0)
})

test('jobs of a disabled model wait, and run when it is enabled', async () => {
  slots.enable('tiny-chat', false)
  const hand = byHand()
  const jobs = open(hand.run, { tickMs: 20 })
  const { job } = await jobs.submit(newJob())
  await waitsFor(jobs, job.id, 'model_disabled')
  expect(slots.held()).toBe(0)
  slots.enable('tiny-chat', true)
  expect((await hand.begun(1))[0]!.job.id).toBe(job.id)
  await jobs.drain(0)
})

test('jobs of a removed model fail with this reason, without a slot', async () => {
  slots.remove('tiny-chat')
  const jobs = open(byHand().run)
  const ids = await Promise.all(Array.from({ length: 50 }, async () => (await jobs.submit(newJob())).job.id))
  await expect.poll(async () => (await store.jobs.counts()).failed).toBe(50)
  expect(await find(ids[7]!)).toMatchObject({ error: { code: 'model_not_found', retryable: false } })
  expect(slots.held()).toBe(0)
  await jobs.drain(0)
})

test('a job that exceeds its time limit fails, and is not tried again', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob({ timeoutMs: 50, maxAttempts: 3 }))
  const ended = await jobs.wait(job.id, never)
  expect(ended).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'timeout', retryable: false } })
  expect(hand.runs[0]!.signal.aborted).toBe(true)
  await jobs.drain(0)
})

test('an engine with its own timeout is tried again', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob({ timeoutMs: 60_000 }))
  ;(await hand.begun(1))[0]!.fail(new Failure('timeout', 'The engine made no progress for 300 s.'))
  await waitsFor(jobs, job.id, 'retry')
  expect((await hand.begun(2))[1]!.job).toMatchObject({ id: job.id, attempt: 2 })
  await jobs.drain(0)
})

test('a job that has not begun by its deadline fails, and leaves the queue', async () => {
  slots.setSlots('tiny-chat', 0)
  const jobs = open(byHand().run)
  const { job } = await jobs.submit(newJob({ startBy: Date.now() + 100 }))
  expect(jobs.stats().waiting).toBe(1)
  expect(await jobs.wait(job.id, never)).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
  expect(jobs.stats().waiting).toBe(0)
  await jobs.drain(0)
})

test('a released job has its deadline again, though the timer found none while it ran', async () => {
  let skew = 0
  const hand = byHand()
  const jobs = open(hand.run, { clock: { now: () => Date.now() + skew }, tickMs: 10 })
  const { job } = await jobs.submit(newJob({ startBy: Date.now() + 50_000 }))
  const [run] = await hand.begun(1)
  // Something else becomes due meanwhile: that timer finds no deadline of a running job.
  const other = (await jobs.submit(newJob({ createdAt: Date.now(), notBefore: Date.now() + 1_000, modelId: 'other' })))
    .job
  skew = 2_000
  const [, second] = await hand.begun(2)
  expect(second!.job.id).toBe(other.id)
  second!.finish()
  skew = 60_000
  await expect.poll(() => store.jobs.nextDue()).toBeNull()
  const ended = jobs.wait(job.id, never)
  run!.fail(new Failure('no_capacity', 'It cannot now.', { retryAfterMs: 60_000 }))
  expect(await ended).toMatchObject({ status: 'failed', error: { code: 'timeout' } })
  await jobs.drain(0)
})

test('a job with a later start begins then, and shows that time until then', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const now = Date.now()
  const { job } = await jobs.submit(newJob({ createdAt: now, notBefore: now + 300 }))
  expect(jobs.progressOf(job).waitingFor?.reason).toBe('not_before')
  expect(jobs.stats().waiting).toBe(0)
  const [run] = await hand.begun(1)
  expect(run!.job.id).toBe(job.id)
  expect(Date.now()).toBeGreaterThanOrEqual(now + 300)
  await jobs.drain(0)
})

test('delayed jobs from before the start begin when they are due', async () => {
  const now = Date.now()
  const { job } = await store.jobs.submit({ ...newJob({ createdAt: now, notBefore: now + 200 }), rank: 1 })
  const hand = byHand()
  const jobs = open(hand.run)
  expect((await hand.begun(1))[0]!.job.id).toBe(job.id)
  await jobs.drain(0)
})

test('followers get progress, log and state, once per tick; the log is stored at the end', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const [run] = await hand.begun(1)
  let heard = 0
  let ofAll = 0
  let next = Promise.withResolvers<void>()
  const leave = jobs.follow(job.id, () => {
    heard++
    next.resolve()
    next = Promise.withResolvers()
  })
  jobs.followOrganization(organizationId, () => ofAll++)
  const told = next.promise
  for (let i = 1; i <= 100; i++) {
    run!.report.progress(i / 200)
    run!.report.log('INFO', `step ${i}`)
  }
  run!.report.progress(0.1)
  await told
  expect(heard).toBe(1)
  expect(ofAll).toBe(0)
  const processing = await find(job.id)
  expect(jobs.progressOf(processing)).toMatchObject({ progress: 0.5, waitingFor: null, queuePosition: null })
  expect(jobs.progressOf(processing).etaMs).toBeGreaterThanOrEqual(0)
  expect((await jobs.logs(processing)).map(line => line.message)).toEqual(
    Array.from({ length: 100 }, (_, i) => `step ${i + 1}`),
  )
  run!.finish()
  const ended = await jobs.wait(job.id, never)
  await expect.poll(() => ofAll).toBeGreaterThan(0)
  expect(await jobs.logs(ended!)).toHaveLength(100)
  expect(jobs.progressOf(ended!).progress).toBe(1)
  leave()
  const before = heard
  expect(await jobs.remove(organizationId, job.id)).toBe(true)
  expect(await jobs.remove(organizationId, job.id)).toBeUndefined()
  await expect.poll(() => ofAll).toBeGreaterThan(1)
  expect(heard).toBe(before)
  await jobs.drain(0)
})

test('a job that is cancelled and removed in one commit runs no longer, and nobody waits for it', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const [run] = await hand.begun(1)
  const ended = jobs.wait(job.id, never)
  const [, removed] = await Promise.all([
    jobs.cancel(organizationId, job.id),
    // `cancel` first waits a turn.
    Promise.resolve().then(() => jobs.remove(organizationId, job.id)),
  ])
  expect(removed).toBe(true)
  expect(run!.signal.aborted).toBe(true)
  expect(await ended).toBeUndefined()
  await jobs.drain(0)
})

test('of a long log the end is kept', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const [run] = await hand.begun(1)
  for (let i = 1; i <= 1_000; i++) run!.report.log('STDOUT', `line ${i}`)
  run!.finish()
  const lines = await jobs.logs((await jobs.wait(job.id, never))!)
  expect(lines).toHaveLength(201)
  expect(lines[0]).toMatchObject({ level: 'WARN', message: '800 earlier lines were not kept.' })
  expect(lines.at(-1)).toMatchObject({ level: 'STDOUT', message: 'line 1000' })
  await jobs.drain(0)
})

test('the logs of all attempts are kept, and a cancelled job keeps those of earlier attempts', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  const [first] = await hand.begun(1)
  first!.report.log('ERROR', 'first')
  first!.fail(new Failure('worker_error', 'Engine exited.'))
  const [, second] = await hand.begun(2)
  second!.report.log('ERROR', 'second')
  expect((await jobs.logs(await find(job.id))).map(line => line.message)).toEqual(['first', 'second'])
  const cancelled = await jobs.cancel(organizationId, job.id)
  await expect.poll(async () => (await jobs.logs(cancelled!)).map(line => line.message)).toEqual(['first'])
  await jobs.drain(0)
})

test('the outputs of a run are freed when its end is refused', async () => {
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
  expect(undone).toEqual([])
  release.resolve()
  await expect.poll(() => undone).toEqual([done])
  expect((await find(job.id)).status).toBe('cancelled')
  await jobs.drain(0)
})

test('the position counts down, by the fair order', async () => {
  slots.setSlots('tiny-chat', 0)
  const hand = byHand()
  const jobs = open(hand.run)
  const ids = await Promise.all(Array.from({ length: 3 }, async () => (await jobs.submit(newJob())).job.id))
  const positions = async () => Promise.all(ids.map(async id => jobs.progressOf(await find(id)).queuePosition))
  expect(await positions()).toEqual([0, 1, 2])
  slots.setSlots('tiny-chat', 1)
  await hand.begun(1)
  expect(await positions()).toEqual([null, 0, 1])
  await jobs.cancel(organizationId, ids[1]!)
  expect(await positions()).toEqual([null, null, 0])
  await jobs.drain(0)
})

test('waiting retries continue after a restart', async () => {
  const hand = byHand()
  const jobs = open(hand.run)
  const { job } = await jobs.submit(newJob())
  ;(await hand.begun(1))[0]!.fail(new Failure('worker_error', 'Engine exited.'))
  await waitsFor(jobs, job.id, 'retry')
  await jobs.drain(0)
  const again = byHand()
  const next = open(again.run)
  expect((await again.begun(1))[0]!.job).toMatchObject({ id: job.id, attempt: 2 })
  await next.drain(0)
})

test('a job that is cancelled while a fallback is looked for holds nothing afterwards', async () => {
  const spend = await openSpend({
    store,
    plans: openPlans({ configured: {}, log: log.log }),
    currency: 'EUR',
    log: log.log,
  })
  const who = { organizationId, originId: 'tok_test', tokenName: 't', organizationLimit: null, tokenLimit: null }
  const asked = Promise.withResolvers<void>()
  const found = Promise.withResolvers<void>()
  const hand = byHand()
  const jobs = open(hand.run, {
    spend,
    async fallbackOf({ id }) {
      asked.resolve()
      await found.promise
      const begin = () => {
        spend.release(id)
        spend.hold(id, { ...who, parents: [], fallback: { modelId: 'hosted', limit: 100 } }, 70)
        return true
      }
      return { modelId: 'hosted', reason: 'failed', held: 70, begin, moved: () => {}, dropped: () => spend.release(id) }
    },
  })
  const { job } = await jobs.submit(newJob({ maxAttempts: 1 }))
  const [run] = await hand.begun(1)
  run!.fail(new Failure('worker_error', 'It has failed.'))
  await asked.promise
  expect(await jobs.cancel(organizationId, job.id)).toMatchObject({ status: 'cancelled' })
  found.resolve()
  await jobs.drain(1_000)
  expect(spend.holdsFor(job.id)).toBe(false)
  expect(await find(job.id)).toMatchObject({ status: 'cancelled' })
})
