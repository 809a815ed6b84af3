import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Ended, infer, json, temporaryFolder } from '../_infer.ts'
import {
  type Answerer,
  done,
  event,
  failed,
  jobId,
  jobServer,
  png,
  record,
  refuses,
  type Script,
  says,
  snapshot,
  streams,
} from '../_jobs.ts'

const other = 'job_01K2YYYYYY7QK2M9XDBBBBBBBB'
const third = 'job_01K2XXXXXX7QK2M9XDAAAAAAAA'

async function setUp(script: Script = {}) {
  const server = await jobServer(script)
  return { ...server, run: (...args: string[]): Promise<Ended> => infer(['job', ...args], { env: server.env }) }
}
const page = (jobs: object[], next: string | null = null) => says({ jobs, has_more: next !== null, next_cursor: next })

/** A job as a list contains it: without inputs and result. */
const summary = (more: object) => {
  const { inputs: _, result: __, ...rest } = record(more) as Record<string, unknown>
  return rest
}

test('list: jobs of all organizations, and by words of the prompt', async () => {
  const foreign = summary({ organization_id: 'org_2', prompt: null, thumbnail_url: null })
  const server = await setUp({
    list: [page([foreign])],
    other: says({
      organizations: [{ id: 'org_2', name: 'acme', status: 'active' }],
      has_more: false,
      next_cursor: null,
    }),
  })
  const all = await server.run('list', '--all', '--status', 'pending')
  expect(
    all.stdout
      .trim()
      .split('\n')
      .map(line => line.split(/ {2,}/).slice(0, 2)),
  ).toEqual([
    ['organization', 'id'],
    ['acme', jobId],
  ])
  await server.run('list', '--org', 'org_2')
  await server.run('list', '--search', 'red boat')
  const queries = server.asked('GET /api/jobs?').map(({ path }) => path)
  expect(queries.map(path => Object.fromEntries(new URLSearchParams(path.slice(10))))).toEqual([
    { status: 'pending', organization: 'all', limit: '21' },
    { organization: 'org_2', limit: '21' },
    { q: 'red boat', limit: '21' },
  ])
  const both = await server.run('list', '--all', '--search', 'boat')
  expect([both.exitCode, both.stderr]).toEqual([64, expect.stringContaining('cannot be used with')])
})

test('list: a table with state, time and details', async () => {
  const now = Math.floor(Date.now() / 1000)
  const { run, asked } = await setUp({
    list: [
      page([
        summary({ created_at: now - 5, queue_position: 4, waiting_for: { reason: 'no_capacity', detail: '' } }),
        summary({ id: other, status: 'processing', progress: 0.4, eta_seconds: 50, created_at: now - 3_700 }),
        summary({
          id: third,
          status: 'failed',
          created_at: now - 90_000,
          metrics: { run_ms: 1_234 },
          error: { code: 'worker_error', message: 'It\nbroke.\u001b[2J' },
        }),
      ]),
    ],
  })
  const { exitCode, stdout } = await run('list')
  expect(exitCode).toBe(0)
  expect(stdout.split('\n').map(line => line.split(/ {2,}/))).toEqual([
    ['id', 'status', 'task', 'model', 'age', 'took', 'note'],
    [
      jobId,
      'pending',
      'slug/text-to-image',
      'demo/picture',
      expect.stringMatching(/^\d+ s$/),
      '-',
      '4 ahead of it, no device has enough free memory',
    ],
    [other, 'processing', 'slug/text-to-image', 'demo/picture', '1 h 1 min', '-', '40 %, about 50 s left'],
    [third, 'failed', 'slug/text-to-image', 'demo/picture', '1 d 1 h', '1.2 s', 'It broke.[2J'],
    [''],
  ])
  expect(asked('/api/jobs')[0]!.path).toBe('/api/jobs?limit=21')
})

test('a stored error names commands, not routes', async () => {
  const error = { code: 'model_not_found', message: "No model 'x'. GET /std/v1/models lists those that are here." }
  const status = { status: 'failed', error }
  const { run } = await setUp({ list: [page([summary(status)])], job: [says(record(status))] })
  expect((await run('list')).stdout).toContain("No model 'x'. infer ls lists those that are here.")
  expect((await run('show', jobId)).stdout).toContain("model_not_found: No model 'x'. infer ls lists")
  // A program reads the record as the API returns it.
  expect((await run('show', jobId, '--json')).stdout).toContain('GET /std/v1/models')
})

test('list: the server applies the filters, and pages are read until there are enough jobs', async () => {
  const many = Array.from({ length: 100 }, (_, at) =>
    summary({ id: `${jobId.slice(0, -3)}${String(at).padStart(3, '0')}` }),
  )
  const { run, asked } = await setUp({ list: [page(many, 'c1'), page([], 'c2'), page(many, 'c3')] })
  const filters = ['--status', 'failed', '--task', 'text-to-image', '--model', 'demo/picture', '--since', '2026-01-31']
  const ended = await run('list', ...filters, '--limit', '150', '--json')
  const { jobs, has_more } = json(ended) as { jobs: object[]; has_more: boolean }
  expect([jobs.length, has_more]).toEqual([150, true])
  const query = 'status=failed&task=slug%2Ftext-to-image&model_id=demo%2Fpicture&created_after=1769817600&limit=100'
  expect(asked('/api/jobs').map(({ path }) => path)).toEqual([
    `/api/jobs?${query}`,
    `/api/jobs?${query}&after=c1`,
    `/api/jobs?${query}&after=c2`,
  ])
})

test('show: facts, inputs and result; --json is the record', async () => {
  const job = done('http://h', { inputs: { prompt: 'a cat', seed: null }, metadata: { ref: '42' } })
  const { run, asked } = await setUp({ job: [says(job)] })
  const { exitCode, stdout } = await run('show', jobId.replace('job_', 'q_'))
  expect(exitCode).toBe(0)
  for (const line of [
    'status     completed',
    'took       2.5 s',
    'waited     12 s (in strict order 15 s)',
    'metadata   {"ref":"42"}',
    '  prompt  a cat',
  ])
    expect(stdout).toContain(`${line}\n`)
  expect(stdout).toContain('http://h/files/file-0/image.png')
  expect(json(await run('show', jobId, '--json'))).toEqual(job)
  expect(asked('GET').map(({ path }) => path)).toEqual([`/api/jobs/${jobId}`, `/api/jobs/${jobId}`])
})

test('show: the longest name of a fact stands apart from its value, and the others stand below it', async () => {
  const metrics = { queue_ms: 2, reference_queue_ms: null, time_to_first_token_ms: 10, run_ms: 19 }
  const { run } = await setUp({ job: [says(done('http://h', { metrics }))] })
  const { stdout } = await run('show', jobId)
  for (const line of ['first token  10 ms', 'took         19 ms']) expect(stdout).toContain(`${line}\n`)
})

test.each([
  ['the end of its id', 'xdaaaaaaaa', jobId],
  ['the end, in any case', 'BBBBBBBB', other],
  ['the beginning', 'job_01K2Y', other],
  ['the beginning of a request', 'q_01K2ZZ', jobId],
])('a job is found by %s', async (_, text, found) => {
  const { run, asked } = await setUp({
    list: [page([summary({ id: other }), summary({ id: jobId })])],
    job: [says(record())],
  })
  expect((await run('show', text)).exitCode).toBe(0)
  expect(asked('GET').at(-1)!.path).toBe(`/api/jobs/${found}`)
})

test.each<[text: string, exitCode: number, said: string]>([
  ['7QK2M9XDAAAAAAAA', 64, `matches ${jobId} and ${third}. Give more of the id.`],
  ['01K2', 64, 'matches'],
  ['ABCDEF', 1, "None of the newest 3 jobs has an id that begins or ends with 'ABCDEF'"],
  ['AB', 64, 'is not a job id'],
  ['../../x', 64, 'is not a job id'],
])('%s is not a job: exit code %i', async (text, exitCode, said) => {
  const { run, asked } = await setUp({ list: [page([jobId, other, third].map(id => summary({ id })))] })
  const ended = await run('cancel', text)
  expect([ended.exitCode, ended.stdout, asked('POST')]).toEqual([exitCode, '', []])
  expect(ended.stderr).toContain(said)
})

test('cancel: several jobs, each reported; one that had already ended makes the exit code 1', async () => {
  const { run, asked } = await setUp({
    cancel: [says(record({ status: 'cancelled' })), refuses(409, 'job_already_finished', 'It is completed.')],
  })
  const { exitCode, stdout, stderr } = await run('cancel', jobId, other)
  expect([exitCode, stdout, stderr]).toEqual([1, `${jobId} is cancelled.\n`, 'Error: It is completed.\n'])
  expect(asked('POST').map(({ path }) => path)).toEqual([`/api/jobs/${jobId}/cancel`, `/api/jobs/${other}/cancel`])
})

test('retry prints the id of the new job', async () => {
  const { run, asked } = await setUp({ other: says({ id: other, queue_id: null, status: 'pending' }, 202) })
  expect(await run('retry', jobId)).toEqual({ exitCode: 0, stdout: `${other}\n`, stderr: '' })
  expect(asked('POST')[0]!.path).toBe(`/api/jobs/${jobId}/retry`)
})

test('delete asks for confirmation, and without a terminal requires --yes', async () => {
  const { run, asked } = await setUp({ other: says({ deleted: true }) })
  const unasked = await run('delete', jobId)
  expect([unasked.exitCode, unasked.stderr]).toEqual([64, expect.stringContaining('--yes')])
  expect(asked('DELETE')).toEqual([])
  expect(await run('delete', jobId, other, '--yes')).toEqual({
    exitCode: 0,
    stdout: `${jobId} is deleted.\n${other} is deleted.\n`,
    stderr: '',
  })
  expect(asked('DELETE')).toHaveLength(2)
})

const line = (second: number, message: string, level = 'INFO') => ({
  timestamp: `2026-11-21T12:00:0${second}.000Z`,
  level,
  message,
  source: 'USER',
})

test('logs: one line per entry, without characters that could control a terminal', async () => {
  const { run } = await setUp({ other: says({ logs: [line(1, 'step 1/2'), line(2, 'hot\u001b[2J', 'WARN')] }) })
  expect(await run('logs', jobId)).toEqual({
    exitCode: 0,
    stdout: '12:00:01 INFO   step 1/2\n12:00:02 WARN   hot[2J\n',
    stderr: '',
  })
})

test('logs --json: one object per line', async () => {
  const { run } = await setUp({ other: says({ logs: [line(1, 'one'), line(2, 'two')] }) })
  const { exitCode, stdout } = await run('logs', jobId, '--json')
  expect([
    exitCode,
    stdout
      .trimEnd()
      .split('\n')
      .map(text => JSON.parse(text) as object),
  ]).toEqual([0, [line(1, 'one'), line(2, 'two')]])
})

test('logs --follow: every line once, until the job ends', async () => {
  let asked = 0
  const lines = [line(1, 'one'), line(1, 'one'), line(2, 'two'), line(3, 'three')]
  const { run } = await setUp({
    events: [streams([snapshot(record({ status: 'processing' })), event('job.completed', {})])],
    job: [says(done('http://h'))],
    other: (...args) => says({ logs: lines.slice(0, 2 * ++asked) })(...args),
  })
  const { exitCode, stdout } = await run('logs', jobId, '-f', '--json')
  expect([
    exitCode,
    stdout
      .trimEnd()
      .split('\n')
      .map(text => (JSON.parse(text) as { message: string }).message),
  ]).toEqual([0, ['one', 'one', 'two', 'three']])
})

/** Answers for two jobs, by the id in the path. */
const each =
  (answers: Record<string, Answerer>): Answerer =>
  (response, seen, request) =>
    answers[Object.keys(answers).find(id => seen.path.includes(id))!]!(response, seen, request)

test('watch: several jobs at once, each with its own line; a failed one makes the exit code 1', async () => {
  const { run } = await setUp({
    events: [
      each({
        [jobId]: streams([snapshot(record({ status: 'processing', progress: 0.55 })), event('job.completed', {})]),
        [other]: streams([snapshot(record({ id: other, queue_position: 1 })), event('job.failed', {})]),
      }),
    ],
    job: [each({ [jobId]: says(done('http://h')), [other]: says({ ...failed('It broke.'), id: other }) })],
  })
  const { exitCode, stdout, stderr } = await run('watch', jobId, other)
  expect(exitCode).toBe(1)
  expect(stdout).toBe(`${jobId} completed  1×1, ${png.length} B, seed 42, made in 3 s\n`)
  expect(stderr).toContain(`Error: The job ${other} failed: It broke.\n`)
})

test('watch without ids: all jobs that wait or run; none is not an error', async () => {
  const { run } = await setUp({ list: [page([])] })
  expect(await run('watch')).toEqual({ exitCode: 0, stdout: '', stderr: 'No job is pending or running.\n' })
})

test('watch --out saves the results under the prompt of each result, and --json prints the paths', async () => {
  const url = { now: '' }
  const folder = temporaryFolder()
  const server = await setUp({
    events: [streams([snapshot(record())]), streams([event('job.completed', {})])],
    job: [(...args) => says(done(url.now))(...args)],
  })
  url.now = server.url
  const ended = await server.run('watch', jobId, '--out', folder, '--json')
  const path = join(folder, 'a-cat-sitting-42.png')
  expect([ended.exitCode, json(ended)]).toEqual([0, expect.objectContaining({ id: jobId, saved: [path] })])
  expect(readFileSync(path)).toEqual(png)
})

test('watch: an unknown job ends it at once', async () => {
  const { run } = await setUp({ job: [refuses(404, 'not_found', 'Job x was not found.')] })
  expect(await run('watch', jobId)).toEqual({ exitCode: 1, stdout: '', stderr: 'Error: Job x was not found.\n' })
})
