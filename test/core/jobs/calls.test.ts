import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AbortSource } from '../../../core/abort-source.ts'
import { Failure } from '../../../core/failure.ts'
import type { CallEnd } from '../../../core/jobs/call.ts'
import { type Jobs, openJobs } from '../../../core/jobs/jobs.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import { Model } from '../../../core/models/model.ts'
import { admittedWork } from '../_admission.ts'
import { keptLog, newJob, openTestStore, organizationId, type TestStore } from '../store/_store.ts'
import { type SlotsOnly, slotsOnly } from './_fleet.ts'
import { byHand } from './_runs.ts'

let opened: TestStore
let slots: SlotsOnly
let jobs: Jobs
let hand: ReturnType<typeof byHand>

beforeEach(async () => {
  opened = await openTestStore()
  slots = slotsOnly({ slots: 1 })
  hand = byHand()
  jobs = openJobs({
    store: opened.store,
    fleet: slots.fleet,
    models: slots.models,
    weightOf: () => 1,
    log: keptLog().log,
    run: hand.run,
    tickMs: 20,
  })
})
afterEach(async () => {
  await jobs.drain(0)
  await jobs.recorder.close()
  await opened[Symbol.asyncDispose]()
})

const usage = { inputTokens: 1, outputTokens: 2 }
const model = (of: object = {}): Model => Model.parse({ id: 'm', ...of })

interface Started {
  /** Resolves when it has its slot. */
  began: Promise<Lease>
  end(how?: CallEnd): void
  leave(): void
  result: ReturnType<Jobs['calls']['run']>
}

/** A call that the test ends by hand. */
function call({ of = model(), waitMs = 60_000, organization = organizationId } = {}): Started {
  const caller = new AbortSource()
  const began = Promise.withResolvers<Lease>()
  const ended = Promise.withResolvers<CallEnd>()
  const named = { organizationId: organization, tokenId: 'tok', task: 'std/chat-completion' as const, modelId: of.id }
  const result = jobs.calls.run(
    { admitted: { ...admittedWork(named), model: of }, createdAt: Date.now(), waitMs, caller },
    lease => {
      began.resolve(lease)
      caller.addEventListener('abort', () => ended.reject(caller.reason))
      return ended.promise
    },
  )
  result.catch(() => {})
  return {
    began: began.promise,
    end: (how = { how: 'completed', usage }) => ended.resolve(how),
    leave: () => caller.abort(new Failure('cancelled', 'The client disconnected.')),
    result,
  }
}
const ids = (): string[] => Array.from(jobs.calls.waiting(), ({ job }) => job.id)

test('a call takes a free slot, leaves one record, and releases the slot', async () => {
  const one = call()
  expect((await one.began).waitedMs).toBe(0)
  expect(slots.held('m')).toBe(1)
  one.end()
  const { call: ran } = await one.result
  expect(slots.held('m')).toBe(0)
  expect(jobs.calls.find(organizationId, ran.id)).toMatchObject({ status: 'completed', kind: 'sync', usage })
  await jobs.recorder.close()
  expect(await opened.store.jobs.find(organizationId, ran.id)).toMatchObject({ status: 'completed', attempt: 1 })
})

test('what an engine reports is recorded in whole numbers from 0', async () => {
  const one = call()
  await one.began
  one.end({ how: 'completed', usage: { inputTokens: -1, outputTokens: Number.NaN, images: 0.6 } })
  const { call: ran } = await one.result
  await jobs.recorder.close()
  const { usage: recorded, cost } = (await opened.store.jobs.find(organizationId, ran.id))!
  expect(recorded).toMatchObject({ inputTokens: 0, outputTokens: 0, images: 1 })
  expect(cost).toBe(0)
})

test('a call knows what it has waited, and what the reference order would have cost it', async () => {
  const first = call()
  await first.began
  const [served, later, last] = [call(), call(), call()]
  const at = performance.now()
  // It begins the first at once, the second in a minute, and the third later still.
  slots.beginReference(at)
  slots.beginReference(at + 60_000)
  // As when the last model that waited is being loaded: what was begun is still known.
  slots.resetReference()
  for (const one of [first, served, later, last]) {
    await one.began
    one.end()
  }
  const [none, early, late, unknown] = await Promise.all(
    [first, served, later, last].map(async one => (await one.result).call),
  )
  expect(none).toMatchObject({ queuedMs: 0, referenceQueuedMs: 0 })
  expect(early!.referenceQueuedMs).toBeLessThanOrEqual(early!.queuedMs)
  expect(late!.referenceQueuedMs).toBeGreaterThan(59_000)
  expect(unknown!.queuedMs).toBeGreaterThan(0)
  expect(unknown!.referenceQueuedMs).toBe(unknown!.queuedMs)
  // Only what the order has begun is recorded.
  expect([none, early, late, unknown].map(one => one!.hasReference)).toEqual([false, true, true, false])
})

test('a call waits behind another one of its organization, and one of another organization does not wait for all of them', async () => {
  const first = call()
  await first.began
  const backlog = Array.from({ length: 10 }, () => call())
  const other = call({ organization: 'org_other' })
  expect(jobs.queueForecast('m')).toMatchObject({ waiting: 11, interactive: 11 })
  const order: string[] = []
  backlog.forEach((one, at) => void one.began.then(() => order.push(`a${at}`)))
  void other.began.then(() => order.push('b'))
  first.end()
  await backlog[0]!.began
  backlog[0]!.end()
  await other.began
  expect(order).toEqual(['a0', 'b'])
  other.end()
  for (const one of backlog.slice(1)) {
    await one.began
    one.end()
  }
})

test('a call precedes a backlog of jobs', async () => {
  const first = call()
  await first.began
  for (let i = 0; i < 3; i++) await jobs.submit(newJob({ modelId: 'm' }))
  const second = call()
  first.end()
  await second.began
  expect(hand.runs).toHaveLength(0)
  second.end()
  const [run] = await hand.begun(1)
  run!.finish()
})

test('a single job of another organization precedes a backlog of calls', async () => {
  const first = call()
  await first.began
  const backlog = Array.from({ length: 5 }, () => call({ organization: 'org_other' }))
  await jobs.submit(newJob({ modelId: 'm' }))
  let calls = 0
  for (const one of backlog)
    void one.began.then(() => {
      calls++
      one.end()
    })
  first.end()
  const [run] = await hand.begun(1)
  // At most one call of the others came first: then they had received more.
  expect(calls).toBeLessThanOrEqual(1)
  run!.finish()
  await Promise.all(backlog.map(({ result }) => result))
})

describe('the limit of the queue', () => {
  test('max_queue calls wait for a busy engine; one more is refused at once', async () => {
    const of = model({ max_queue: 2 })
    const first = call({ of })
    await first.began
    const waiting = [call({ of }), call({ of })]
    await expect(call({ of }).result).rejects.toMatchObject({ code: 'queue_full' })
    expect(() => jobs.calls.requireRoom(of)).toThrow(/2 requests already wait for 'm'/)
    waiting[1]!.leave()
    await expect(waiting[1]!.result).rejects.toMatchObject({ code: 'cancelled' })
    expect(() => jobs.calls.requireRoom(of)).not.toThrow()
    first.end()
    await waiting[0]!.began
    waiting[0]!.end()
  })

  test('max_queue 0: a free slot or nothing', async () => {
    const of = model({ max_queue: 0 })
    const first = call({ of })
    await first.began
    await expect(call({ of }).result).rejects.toMatchObject({ code: 'queue_full' })
    first.end()
    await first.result
    const next = call({ of })
    await next.began
    next.end()
  })

  test('while the model loads, as many more wait as it will have slots', async () => {
    slots.load('m', { planned: 3 })
    const of = model({ max_queue: 1 })
    const waiting = Array.from({ length: 4 }, () => call({ of }))
    await expect(call({ of }).result).rejects.toMatchObject({ code: 'queue_full' })
    expect(ids()).toHaveLength(4)
    slots.setSlots('m', 4)
    for (const one of waiting) {
      await one.began
      one.end()
    }
  })

  test('jobs do not count in the limit of calls', async () => {
    const of = model({ max_queue: 1 })
    const first = call({ of })
    await first.began
    for (let i = 0; i < 5; i++) await jobs.submit(newJob({ modelId: 'm' }))
    const second = call({ of })
    expect(ids()).toHaveLength(1)
    first.end()
    await second.began
    second.end()
  })
})

describe('a wait ends', () => {
  test('at its timeout: the failure says whether the model is loading, busy or without memory', async () => {
    const first = call()
    await first.began
    await expect(call({ waitMs: 20 }).result).rejects.toMatchObject({
      code: 'no_capacity',
      message: expect.stringContaining("All slots of 'm' are busy") as string,
    })
    await expect(call({ waitMs: 0 }).result).rejects.toMatchObject({ code: 'no_capacity' })
    slots.load('m', { planned: 1 })
    await expect(call({ waitMs: 20 }).result).rejects.toMatchObject({ code: 'model_warming_up' })
    first.end()
  })

  test('when the fleet refuses, at once; jobs continue to wait', async () => {
    slots.setSlots('m', 0)
    const { job } = await jobs.submit(newJob({ modelId: 'm' }))
    const waiting = call()
    slots.refuse('m', new Failure('worker_error', 'It cannot be started.', { retryAfterMs: 60_000 }))
    await expect(waiting.result).rejects.toMatchObject({ code: 'worker_error' })
    expect((await opened.store.jobs.find(organizationId, job.id))!.status).toBe('pending')
    expect(jobs.progressOf(job).waitingFor?.reason).toBe('engine_failing')
  })

  test('when its caller disconnects, and leaves no record', async () => {
    const first = call()
    await first.began
    const second = call()
    second.leave()
    await expect(second.result).rejects.toMatchObject({ code: 'cancelled' })
    expect(jobs.queueForecast('m').waiting).toBe(0)
    first.leave()
    await expect(first.result).rejects.toMatchObject({ code: 'cancelled' })
    expect(slots.held('m')).toBe(0)
  })

  test('when it is cancelled by id, which resolves when it is recorded', async () => {
    const first = call()
    await first.began
    const second = call()
    const [id] = ids()
    expect(jobs.progressOf(jobs.calls.find(organizationId, id!)!)).toMatchObject({
      queuePosition: 0,
      waitingFor: { reason: 'queue' },
    })
    expect(await jobs.calls.cancel('org_other', id!)).toBeUndefined()
    expect(await jobs.calls.cancel(organizationId, id!)).toMatchObject({ id, status: 'cancelled' })
    await expect(second.result).rejects.toMatchObject({ code: 'cancelled' })
    first.end()
    await first.result
    await expect(jobs.calls.cancel(organizationId, (await first.result).call.id)).rejects.toMatchObject({
      code: 'job_already_finished',
    })
  })
})

test('jobs that wait for an unavailable model begin as soon as it has a slot', async () => {
  slots.setSlots('m', 0)
  const { job } = await jobs.submit(newJob({ modelId: 'm' }))
  slots.refuse('m', new Failure('no_capacity', 'There is no room.', { retryAfterMs: 60_000 }))
  expect(jobs.progressOf(job).waitingFor?.reason).toBe('no_capacity')
  slots.refuse('m', undefined)
  slots.setSlots('m', 1)
  const [run] = await hand.begun(1)
  expect(run!.job.id).toBe(job.id)
  run!.finish()
})

test('an engine that fails before it answers is tried again, three times in all; refusals leave no record', async () => {
  let attempts = 0
  const failure = new Failure('worker_error', 'It broke.')
  const named = { organizationId, tokenId: 'tok', task: 'std/chat-completion' as const, modelId: 'm' }
  const run = (ends: CallEnd[]) =>
    jobs.calls.run(
      { admitted: admittedWork(named), createdAt: Date.now(), waitMs: 1_000, caller: new AbortSource() },
      () => {
        attempts++
        return Promise.resolve(ends.shift()!)
      },
    )
  const retry: CallEnd = { how: 'retry', failure }
  await run([retry, { how: 'completed', usage }])
  expect(attempts).toBe(2)
  await expect(run([retry, retry, retry])).rejects.toBe(failure)
  expect(attempts).toBe(5)
  const unsent: CallEnd = { how: 'retry', failure: failure.with({ unsent: true }) }
  await run([unsent, retry, unsent, retry, unsent, { how: 'completed', usage }])
  expect(attempts).toBe(11)
  const certain = new Failure('worker_error', 'Its certificate is not trusted.', { final: true })
  await expect(run([{ how: 'retry', failure: certain }])).rejects.toBe(certain)
  expect(attempts).toBe(12)
  expect(slots.held('m')).toBe(0)
  slots.setSlots('m', 0)
  await expect(run([])).rejects.toMatchObject({ code: 'no_capacity' })
  await jobs.recorder.close()
  const { jobs: recorded } = await opened.store.jobs.list(organizationId, { limit: 10, kind: 'sync' })
  expect(recorded.map(({ status, error }) => [status, error?.attempt])).toEqual([
    ['failed', 1],
    ['completed', undefined],
    ['failed', 3],
    ['completed', undefined],
  ])
})

describe('a call without a limit of its own', () => {
  const held = () => call({ waitMs: Number.POSITIVE_INFINITY })

  test('is held while it is expected to wait no longer than calls are held', async () => {
    const first = call()
    await first.began
    slots.expect('m', 599_000)
    const second = held()
    expect(ids()).toHaveLength(1)
    first.end()
    await second.began
    second.end()
    await second.result
  })

  test.each([
    ['warm', 'no_capacity'],
    ['loading', 'model_warming_up'],
  ])('is refused at once where it is expected to wait longer: %s', async (status, code) => {
    slots.setSlots('m', 0)
    if (status === 'loading') slots.load('m', { planned: 1 })
    slots.expect('m', 840_000)
    await expect(held().result).rejects.toMatchObject({
      code,
      message: "A slot of 'm' should be free in about 14 min, longer than requests are held (limits.hold_max).",
      retryAfterMs: 840_000,
      facts: { eta_seconds: 840 },
    })
    expect(ids()).toEqual([])
  })

  test('that sets one is refused at once where the load is known to take longer', async () => {
    slots.load('m', { planned: 1 })
    slots.expect('m', 45_000)
    await expect(call({ waitMs: 30_000 }).result).rejects.toMatchObject({
      code: 'model_warming_up',
      message: "A slot of 'm' should be free in about 45 s, longer than this request waits.",
      retryAfterMs: 45_000,
    })
  })

  test('has the exact limit that the model or the caller sets', async () => {
    slots.setSlots('m', 0)
    slots.expect('m', 840_000)
    await expect(call({ waitMs: 20 }).result).rejects.toMatchObject({ message: expect.stringContaining('in time') })
    const of = model({ dispatch_wait_ms: 20 })
    await expect(call({ of, waitMs: Number.POSITIVE_INFINITY }).result).rejects.toMatchObject({
      message: expect.stringContaining('in time'),
    })
  })
})
