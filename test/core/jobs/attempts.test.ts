import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { attemptJob } from '../../../core/jobs/attempts.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import type { RunJob, RunResult } from '../../../core/tasks/run-job.ts'
import { done, runner } from './_runs.ts'

const report = { progress() {}, log() {} }
const lease = {} as Lease
const job = (timeoutMs: number | null = null) => ({ id: 'job_x', timeoutMs }) as JobRecord
const cancelled = new Failure('cancelled', 'The job job_x was cancelled.')
const begin = (run: RunJob, more: { timeoutMs?: number; graceMs?: number; abort?: AbortController } = {}) =>
  attemptJob(job(more.timeoutMs ?? null), lease, {
    run,
    abort: more.abort ?? new AbortController(),
    report,
    graceMs: more.graceMs ?? 10_000,
  })
const obedient = runner(
  (_job, _lease, signal) =>
    new Promise<RunResult>((_, reject) =>
      signal.addEventListener('abort', () => reject(new TypeError('it was aborted'))),
    ),
)

test('a run that succeeds has its result', async () => {
  expect(await begin(runner(async () => done))).toEqual({ end: done, unresponsive: undefined })
})

test('a run that throws at once has failed like any other', async () => {
  const run = runner(() => {
    throw new Failure('worker_error', 'Engine exited.')
  })
  expect((await begin(run)).end).toMatchObject({ code: 'worker_error' })
})

test('a stopped run ends for the reason of the stop, whatever it threw', async () => {
  const abort = new AbortController()
  const came = begin(obedient, { abort })
  await turn()
  abort.abort(cancelled)
  expect(await came).toEqual({ end: cancelled, unresponsive: undefined })
})

test('a run stopped before its start never begins', async () => {
  const run = runner(() => {
    throw new Error('It began')
  })
  const abort = new AbortController()
  abort.abort(cancelled)
  expect((await begin(run, { abort })).end).toBe(cancelled)
})

test('its time limit is measured from its start, and is in the message', async () => {
  const { end } = await begin(obedient, { timeoutMs: 100 })
  expect(end).toMatchObject({ code: 'timeout', retryable: false })
  expect((end as Failure).message).toBe('The job job_x ran for 0.1 s, which is its time limit (timeout).')
})

test('a run that ignores its stop is abandoned after the grace period, and its late result is not lost', async () => {
  const release = Promise.withResolvers<RunResult>()
  const { end, unresponsive } = await begin(
    runner(() => release.promise),
    { timeoutMs: 20, graceMs: 20 },
  )
  expect(end).toMatchObject({ code: 'timeout' })
  release.resolve(done)
  expect(await unresponsive).toBe(done)
})
