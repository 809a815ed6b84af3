import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { type Jobs, openJobs } from '../../../core/jobs/jobs.ts'
import type { JobRecord, JobStatus } from '../../../core/store/store.ts'
import type { RunResult } from '../../../core/tasks/run-job.ts'
import { createOrganization, keptLog, newJob, openTestStore, type TestStore } from '../store/_store.ts'
import { slotsOnly } from './_fleet.ts'
import { done, runner } from './_runs.ts'

let opened: TestStore
beforeAll(async () => {
  opened = await openTestStore()
})
afterAll(async () => {
  await opened[Symbol.asyncDispose]()
})

type Op =
  | { do: 'submit'; organization: number; model: number; priority: number; later: boolean; deadline: boolean }
  | { do: 'cancel'; which: number }
  | { do: 'end'; which: number; how: 'well' | 'broken' | 'wrong' | 'busy' }
  | { do: 'ignoreCancel'; which: number }
  | { do: 'refuse'; model: number; code: 'no_capacity' | 'worker_error' }
  | { do: 'allow'; model: number }
  | { do: 'pass time' }
  | { do: 'restart' }
  | { do: 'turn'; times: number }

const is = <Name extends Op['do']>(name: Name) => fc.constant(name)
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: is('submit'),
      organization: fc.nat(1),
      model: fc.nat(1),
      priority: fc.integer({ min: -2, max: 2 }),
      later: fc.boolean(),
      deadline: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: is('cancel'), which: fc.nat(50) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: is('end'), which: fc.nat(9), how: fc.constantFrom('well', 'broken', 'wrong', 'busy') }),
  },
  { weight: 1, arbitrary: fc.record({ do: is('ignoreCancel'), which: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: is('refuse'), model: fc.nat(1), code: fc.constantFrom('no_capacity', 'worker_error') }),
  },
  { weight: 1, arbitrary: fc.record({ do: is('allow'), model: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: is('pass time') }) },
  { weight: 1, arbitrary: fc.record({ do: is('restart') }) },
  { weight: 6, arbitrary: fc.record({ do: is('turn'), times: fc.nat(4) }) },
)

const failures = {
  broken: () => new Failure('worker_error', 'Engine exited.'),
  wrong: () => new Failure('invalid_value', 'It is wrong.'),
  busy: () => new Failure('no_capacity', 'It cannot now.', { retryAfterMs: 100 }),
}
const terminal: readonly JobStatus[] = ['completed', 'failed', 'cancelled']

interface Active {
  job: JobRecord
  ignoresCancel: boolean
  end: (how: 'well' | keyof typeof failures) => void
}

/** Every event in the life of jobs, in the order given, on a real store. */
async function play(ops: readonly Op[], name: string): Promise<void> {
  const { store } = opened
  const { log, lines } = keptLog()
  let skew = 0
  const slots = slotsOnly({ slots: 2 })
  const organizations = [`org_${name}a`, `org_${name}b`]
  for (const id of organizations) await createOrganization(store, id)
  const active = new Set<Active>()
  const claims = new Map<string, number[]>()
  const told: { id: string; status: JobStatus }[] = []
  const made = new Set<RunResult>()
  const undone: RunResult[] = []
  const run = runner(async (job, lease, signal) => {
    expect([...active].filter(one => one.job.id === job.id && !one.ignoresCancel)).toEqual([])
    expect(lease.modelId).toBe(job.modelId)
    claims.set(job.id, [...(claims.get(job.id) ?? []), job.claims])
    const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
    const one: Active = {
      job,
      ignoresCancel: false,
      end(how) {
        active.delete(one)
        const ran = { ...done, result: JSON.stringify({ claims: job.claims }) }
        if (how !== 'well') return reject(failures[how]())
        made.add(ran)
        resolve(ran)
      },
    }
    active.add(one)
    signal.addEventListener('abort', () => {
      if (one.ignoresCancel) return
      active.delete(one)
      reject(signal.reason as Error)
    })
    return promise
  }, undone)
  const open = (): Jobs =>
    openJobs({
      store,
      fleet: slots.fleet,
      models: slots.models,
      weightOf: () => 1,
      run,
      log,
      clock: { now: () => Date.now() + skew },
      tickMs: 5,
    })
  let jobs = open()
  const sent: { id: string; organizationId: string }[] = []
  const answers: Promise<unknown>[] = []

  /** Resolves when the store has written all earlier commands and reported them. */
  async function pass(): Promise<void> {
    await store.jobs.release({ organizationId: '', id: '', boot: null, claims: 0 }, 0)
    await turn()
  }

  async function restart(): Promise<void> {
    const stopped = jobs.drain(0)
    await pass()
    for (const one of active) if (one.ignoresCancel) one.end('well')
    await stopped
    jobs = open()
  }

  for (const one of ops) {
    if (one.do === 'submit') {
      const createdAt = Date.now() + skew
      const job = newJob({
        organizationId: organizations[one.organization]!,
        modelId: `${name}-${one.model}`,
        priority: one.priority,
        createdAt,
        notBefore: createdAt + (one.later ? 20_000 : 0),
        startBy: one.deadline ? createdAt + 100_000 : null,
      })
      sent.push(job)
      const submitted = jobs.submit(job)
      answers.push(submitted)
      void submitted.then(() => jobs.wait(job.id, new AbortController().signal).then(end => end && told.push(end)))
    } else if (one.do === 'cancel' && sent.length > 0) {
      const { organizationId, id } = sent[one.which % sent.length]!
      // Before its submission is answered there is no such job; after its end it cannot be cancelled.
      answers.push(
        jobs.cancel(organizationId, id).catch((thrown: Failure) => expect(thrown.code).toBe('job_already_finished')),
      )
    } else if (one.do === 'end') [...active][one.which % Math.max(1, active.size)]?.end(one.how)
    else if (one.do === 'ignoreCancel') {
      const some = [...active][one.which % Math.max(1, active.size)]
      if (some) some.ignoresCancel = true
    } else if (one.do === 'refuse')
      slots.refuse(`${name}-${one.model}`, new Failure(one.code, 'Not now.', { retryAfterMs: 100 }))
    else if (one.do === 'allow') slots.refuse(`${name}-${one.model}`, undefined)
    else if (one.do === 'pass time') skew += 40_000
    else if (one.do === 'restart') {
      await Promise.allSettled(answers)
      await restart()
    } else if (one.do === 'turn') for (let i = 0; i < one.times; i++) await pass()
  }

  await Promise.all(answers)
  for (const model of [0, 1]) slots.refuse(`${name}-${model}`, undefined)
  const all = () => Promise.all(sent.map(({ organizationId, id }) => store.jobs.find(organizationId, id)))
  const left = async () => (await all()).filter(job => !terminal.includes(job!.status)).length
  for (const from = performance.now(); (await left()) > 0; skew += 5_000) {
    if (performance.now() - from > 20_000) throw new Error(`${await left()} jobs do not end`)
    for (const one of active) one.end('well')
    for (let i = 0; i < 3; i++) await pass()
  }
  for (const one of active) one.end('well')
  await expect.poll(() => jobs.stats()).toMatchObject({ running: 0, waiting: 0, held: 0, lanes: 0 })
  await jobs.drain(0)

  expect(slots.held()).toBe(0)
  for (const organizationId of organizations) {
    const events = await store.events.after(organizationId, { sequence: 0, limit: 10_000 })
    for (const { id } of sent.filter(job => job.organizationId === organizationId)) {
      const types = events.filter(event => event.jobId === id).map(event => event.type)
      expect(types[0]).toBe('job.created')
      expect(types.filter(type => terminal.some(status => type === `job.${status}`))).toHaveLength(1)
      // Nothing happens after the end.
      expect(terminal.some(status => types.at(-1) === `job.${status}`)).toBe(true)
    }
  }
  for (const job of await all()) {
    const numbers = claims.get(job!.id) ?? []
    expect([...new Set(numbers)].sort((a, b) => a - b)).toEqual(numbers)
    if (job!.status === 'completed') expect(JSON.parse(job!.result as string)).toEqual({ claims: job!.claims })
    expect(told.filter(({ id }) => id === job!.id).every(({ status }) => status === job!.status)).toBe(true)
  }
  // Every result is kept by its job, or was undone.
  const kept = (await all()).filter(job => job!.status === 'completed').length
  expect(undone.length).toBe(made.size - kept)
  expect(lines.filter(line => line.includes('"level":"error"'))).toEqual([])
}

test('in any order of events each job has one end, none is lost, none runs twice at once', {
  timeout: 120_000,
}, async () => {
  let number = 0
  await fc.assert(
    fc.asyncProperty(fc.array(op, { size: 'max', minLength: 10, maxLength: 80 }), ops => play(ops, `s${++number}`)),
    { numRuns: 25, endOnFailure: true },
  )
  const { completed, failed, cancelled } = await opened.store.jobs.counts()
  expect(opened.store.stats().ledgerRows).toBe(completed + failed + cancelled)
})
