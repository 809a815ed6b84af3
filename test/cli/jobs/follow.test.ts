import { expect, test, vi } from 'vitest'
import { openClient } from '../../../cli/client/client.ts'
import { followJob, type JobSnapshot } from '../../../cli/jobs/follow.ts'
import { exitCodeOf } from '../../../cli/terminal/exit-codes.ts'
import { Failure } from '../../../core/failure.ts'
import {
  type Answerer,
  breaks,
  done,
  event,
  failed,
  jobId,
  jobServer,
  record,
  refuses,
  type Script,
  says,
  silent,
  snapshot,
  streams,
} from '../_jobs.ts'

/** Follows a job of a scripted server, with a clock that advances only during waits. */
async function follow(script: Script, signal = new AbortController().signal) {
  const server = await jobServer(script)
  vi.stubEnv('INFER_URL', server.url)
  vi.stubEnv('INFER_TOKEN', 'sk-test')
  const waits: number[] = []
  const moments: JobSnapshot[] = []
  const troubles: (string | undefined)[] = []
  let clock = 0
  const end = await followJob(() => openClient('/nonexistent'), jobId, {
    signal,
    onChange: snapshot => moments.push(snapshot),
    onTrouble: sentence => troubles.push(sentence),
    firstEventMs: 300,
    silenceMs: 400,
    now: () => clock,
    wait: ms => {
      waits.push(ms)
      clock += ms
      return Promise.resolve()
    },
  }).then(
    job => ({ job, failure: undefined }),
    (thrown: unknown) => ({ job: undefined, failure: thrown as Failure }),
  )
  vi.unstubAllEnvs()
  return { ...server, ...end, waits, moments, troubles }
}

const url = 'http://h'
const noEvents: Answerer[] = [refuses(404, 'unknown_url')]

test('with events, every change is reported, the record is read once, and there is no polling delay', async () => {
  const { job, waits, moments, asked } = await follow({
    events: [
      streams([
        'retry: 2000\n\n',
        snapshot(record({ queue_position: 3, waiting_for: { reason: 'queue', detail: 'Three jobs are before it.' } })),
        ': ping\n\n',
        event('job.progress', { id: jobId, queue_position: 1 }),
        event('job.started', { id: jobId }),
        event('job.progress', { id: jobId, progress: 0.5, eta_seconds: 4 }),
        event('job.completed', { id: jobId, status: 'completed' }),
      ]),
    ],
    job: [says(done(url))],
  })
  expect(job?.status).toBe('completed')
  expect(waits).toEqual([])
  expect(asked('GET /api/jobs')).toHaveLength(2)
  expect(
    moments.map(({ status, queuePosition, progress, etaSeconds }) => [status, queuePosition, progress, etaSeconds]),
  ).toEqual([
    ['pending', 3, null, null],
    ['pending', 1, null, null],
    ['processing', null, null, null],
    ['processing', null, 0.5, 4],
    ['completed', null, null, null],
    ['completed', null, 1, null],
  ])
})

test.each<[name: string, events: Answerer[]]>([
  ['where no events are served', noEvents],
  ['where a proxy rejects them', [says('<html>no</html>', 405)]],
  ['where a stream ends without an event', [streams([])]],
  ['where a stream has no known event', [streams(['data: <html>\n\n', 'event: x\ndata: [1]\n\n'])]],
])('%s the polling schedule of the specification applies: 2, 5, 10, 20, 30, 30 s', async (_, events) => {
  const answers = Array.from({ length: 7 }, () => says(record({ status: 'processing' })))
  const { job, waits, asked } = await follow({ events, job: [...answers, says(done(url))] })
  expect(job?.status).toBe('completed')
  expect(waits).toEqual([2_000, 5_000, 10_000, 20_000, 30_000, 30_000, 30_000, 30_000])
  expect(asked('/events')).toHaveLength(1)
})

test('a stream that sends no events does not delay polling', async () => {
  const { job, waits, asked } = await follow({
    events: [silent],
    job: [says(record({ status: 'processing' })), says(done(url))],
  })
  expect([job?.status, waits, asked('/events').length]).toEqual(['completed', [2_000, 5_000], 1])
})

test('a stream that stops sending is replaced by a new one', async () => {
  const { job, waits, asked } = await follow({
    events: [
      streams([snapshot(record({ status: 'processing' }))], { hold: true }),
      streams([event('job.completed', { status: 'completed' })]),
    ],
    job: [says(record({ status: 'processing' })), says(done(url))],
  })
  expect([job?.status, waits, asked('/events').length]).toEqual(['completed', [2_000], 2])
})

test.each<[name: string, headers: Record<string, string>, second: number]>([
  ['Retry-After', { 'retry-after': '12' }, 12_000],
  ['retry-after-ms', { 'retry-after-ms': '7500' }, 7_500],
  ['openai-poll-after-ms', { 'openai-poll-after-ms': '40000', 'retry-after': '1' }, 40_000],
  ['a time shorter than the schedule', { 'retry-after': '2' }, 5_000],
  ['a value that is not a time', { 'retry-after': 'soon' }, 5_000],
])('%s of an answer is applied, and never shortens the wait', async (_, headers, second) => {
  const { waits } = await follow({
    events: noEvents,
    job: [says(record({ status: 'processing' }), 200, headers), says(done(url))],
  })
  expect(waits).toEqual([2_000, second])
})

test('on a rate limit the wait is the one that the server names', async () => {
  const { job, waits, troubles } = await follow({
    events: noEvents,
    job: [refuses(429, 'rate_limit', 'Slow down.', { 'retry-after': '25' }), says(done(url))],
  })
  expect([job?.status, waits, troubles]).toEqual(['completed', [2_000, 25_000], ['Slow down.', undefined]])
})

test('after 30 minutes of polling it fails, with the id of the job and what to do', async () => {
  const { failure, waits } = await follow({ events: noEvents, job: [says(record({ status: 'processing' }))] })
  expect(waits.reduce((sum, ms) => sum + ms)).toBeLessThanOrEqual(30 * 60_000)
  expect(waits.reduce((sum, ms) => sum + ms)).toBeGreaterThan(29 * 60_000)
  expect(failure).toBeInstanceOf(Failure)
  expect([failure!.code, exitCodeOf(failure!)]).toEqual(['timeout', 75])
  expect(failure!.message).toContain(`infer job watch ${jobId}`)
})

test('an interrupted stream is reopened after 2 s, and reported once', async () => {
  const working = snapshot(record({ status: 'processing', progress: 0.3 }))
  const { job, waits, troubles } = await follow({
    events: [streams([working], { cut: true }), streams([working, event('job.completed', { status: 'completed' })])],
    job: [says(record({ status: 'processing', progress: 0.4 })), says(done(url))],
  })
  expect([job?.status, waits]).toEqual(['completed', [2_000]])
  expect(troubles).toEqual([expect.stringContaining('was lost during the response'), undefined])
})

test('after a server restart the job is read again by its id', async () => {
  const { job, waits, troubles } = await follow({
    events: [streams([snapshot(record({}))]), streams([snapshot(done(url))])],
    job: [
      breaks,
      breaks,
      refuses(503, 'shutting_down', 'Stopping.'),
      says(record({ status: 'processing' })),
      says(done(url)),
    ],
  })
  expect([job?.status, waits]).toEqual(['completed', [2_000, 5_000, 10_000, 20_000]])
  expect(troubles).toHaveLength(2)
  expect(troubles[1]).toBeUndefined()
})

test.each<[code: string, answerer: Answerer]>([
  ['not_found', refuses(404, 'not_found', 'Job x was not found.')],
  ['output_expired', refuses(410, 'output_expired')],
  ['token_revoked', refuses(401, 'token_revoked')],
  ['insufficient_scope', refuses(403, 'insufficient_scope')],
])('a permanent error ends it: %s', async (code, answerer) => {
  const { failure, waits } = await follow({ events: noEvents, job: [answerer] })
  expect([failure?.code, waits]).toEqual([code, [2_000]])
})

test('two unreadable answers are tolerated', async () => {
  const odd = says('<html>Maintenance</html>')
  const good = await follow({ events: noEvents, job: [odd, odd, says(done(url))] })
  expect(good.job?.status).toBe('completed')
  const bad = await follow({ events: noEvents, job: [odd] })
  expect([bad.failure?.message, bad.waits]).toEqual([
    expect.stringContaining('cannot read the response'),
    [2_000, 5_000, 10_000],
  ])
})

test('a record without a status, of a server of another version, is an unreadable answer', async () => {
  const { failure, waits } = await follow({ events: noEvents, job: [says({ id: jobId })] })
  expect([failure?.message, waits]).toEqual([
    expect.stringContaining('cannot read the response'),
    [2_000, 5_000, 10_000],
  ])
})

test('when an event reports the end but the record does not, the record decides', async () => {
  const { job, waits } = await follow({
    events: [streams([event('job.completed', {})])],
    job: [says(record({ status: 'processing' })), says(failed('It broke.'))],
  })
  expect([job?.status, waits]).toEqual(['failed', [2_000]])
})

test('the signal ends it, whatever it is waiting for', async () => {
  const abort = new AbortController()
  const following = follow({ events: [streams([snapshot(record())], { hold: true })] }, abort.signal)
  setImmediate(() => abort.abort(new Error('enough')))
  expect((await following).failure?.message).toBe('enough')
})
