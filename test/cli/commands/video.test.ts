import { readdirSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runInProcess } from '../_in-process.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { type Answerer, event, failed, jobServer, png, record, refuses, says, snapshot, streams } from '../_jobs.ts'
import { hasTerminal, inTerminal } from '../_terminal.ts'

const ids = ['1', '2', '3'].map(digit => `job_01K2ZZZZZZ7QK2M9XDAAAAAAA${digit}`) as [string, string, string]

/** Answers by the job whose id is in the path. */
const each =
  (answers: readonly Answerer[]): Answerer =>
  (response, seen, request) =>
    answers[ids.findIndex(id => seen.path.includes(id))]!(response, seen, request)

const clip = (url: string, id: string) =>
  record({
    id,
    status: 'completed',
    metrics: { run_ms: 61_000 },
    result: {
      video: {
        url: `${url}/files/${id}/video.mp4`,
        content_type: 'video/mp4',
        file_size: png.length,
        width: 832,
        height: 480,
      },
      duration_seconds: 5.0625,
      seed_used: 9,
    },
  })

/** A server that makes three videos; the test decides how each job ends. The aspect ratios get ids in their order. */
async function setUp(
  ends: readonly ((url: string, id: string) => object)[],
  listening?: (response: ServerResponse, at: number) => void,
) {
  const held = { url: '' }
  const shapes: string[] = []
  const server = await jobServer({
    submit: [
      (response, seen, request) => {
        const { aspect_ratios } = seen.body as { aspect_ratios?: string[] }
        shapes.push(...(aspect_ratios ?? []))
        const requests = aspect_ratios?.map((aspect_ratio, at) => ({
          aspect_ratio,
          request_id: ids[at]!.replace('job_', 'q_'),
        }))
        says(requests ? { status: 'processing', requests } : { id: ids[0], status: 'pending' }, 202)(
          response,
          seen,
          request,
        )
      },
    ],
    events: [
      listening
        ? each(ids.map((_, at) => response => listening(response, at)))
        : each(ids.map(() => streams([snapshot(record({ status: 'processing' })), event('job.completed', {})]))),
    ],
    job: [
      each(
        ids.map(
          (id, at) =>
            (...args) =>
              says(ends[at]!(held.url, id))(...args),
        ),
      ),
    ],
  })
  held.url = server.url
  return { ...server, shapes, folder: temporaryFolder() }
}

const broken = (_: string, id: string) => ({ ...failed('Out of memory.'), id })

test('one video prints its path, its size and length', async () => {
  const { env, folder, seen } = await setUp([clip])
  const { exitCode, stdout, stderr } = await infer(
    ['video', 'demo/clip', 'A cat', '--preset', 'balanced', '--out', folder],
    { env },
  )
  expect([exitCode, stdout]).toEqual([0, `${folder}/a-cat-9.mp4\n`])
  expect(stderr).toContain(`832×480, 5.1 s long, ${png.length} B, seed 9, made in 1 min\n`)
  expect(seen.find(({ method }) => method === 'POST')!.body).toEqual({
    task: 'slug/text-to-video',
    model_id: 'demo/clip',
    inputs: { prompt: 'A cat', preset: 'balanced' },
  })
})

test('without a model the first one that makes such a video is taken, and a word that is none begins the prompt', async () => {
  const { env, folder, seen } = await setUp([clip])
  const { exitCode, stdout } = await runInProcess(['video', 'A', 'cat', '--out', folder], env)
  expect([exitCode, stdout.toString()]).toEqual([0, `${folder}/a-cat-9.mp4\n`])
  const body = { task: 'slug/text-to-video', model_id: 'demo/clip', inputs: { prompt: 'A cat' } }
  expect(seen.find(({ method }) => method === 'POST')!.body).toEqual(body)
  const none = await runInProcess(['video', 'it moves', '--image', 'https://example.com/cat.png'], env)
  expect(none.failure?.message).toMatch(/offers no model that makes videos from --image\. See: infer model list$/)
})

test('--all-formats: three jobs by one request; a failed one makes the exit code 1, the others are kept', async () => {
  const { env, folder, seen, shapes } = await setUp([clip, broken, clip])
  const { exitCode, stdout, stderr } = await infer(['video', 'clip/fast', 'A cat', '--all-formats', '--out', folder], {
    env,
  })
  expect(exitCode).toBe(1)
  expect(shapes).toEqual(['16:9', '9:16', '1:1'])
  expect(seen.filter(({ method }) => method === 'POST').map(({ path, body }) => [path, body])).toEqual([
    ['/slug/clip/fast', { prompt: 'A cat', aspect_ratios: ['16:9', '9:16', '1:1'] }],
  ])
  const names = ['a-cat-9-16x9.mp4', 'a-cat-9-1x1.mp4']
  expect(stdout.trimEnd().split('\n').toSorted()).toEqual(names.map(name => join(folder, name)))
  expect(readdirSync(folder).toSorted()).toEqual(names)
  expect(stderr).toContain(`Error: 9:16: The job ${ids[1]} failed: Out of memory.\n`)
  expect(stderr.match(/Error/g)).toHaveLength(1)
})

test('--all-formats --json prints the three records, with the outcome of each', async () => {
  const { env, folder } = await setUp([clip, broken, clip])
  const ended = await infer(['video', 'clip/fast', 'A cat', '--all-formats', '--out', folder, '--json'], { env })
  expect(ended.exitCode).toBe(1)
  const saved = (name: string) => [join(folder, name)]
  expect(json(ended)).toMatchObject([
    { id: ids[0], status: 'completed', saved: saved('a-cat-9-16x9.mp4') },
    { id: ids[1], status: 'failed', saved: [] },
    { id: ids[2], status: 'completed', saved: saved('a-cat-9-1x1.mp4') },
  ])
  expect(JSON.parse(ended.stderr)).toMatchObject({ error: { code: 'worker_error' } })
})

test('an error for all three is reported for each', async () => {
  const server = await jobServer({ submit: [refuses(429, 'queue_full', 'The queue is full.')] })
  const { exitCode, stdout, stderr } = await infer(['video', 'clip/fast', 'A cat', '--all-formats'], {
    env: server.env,
  })
  expect([exitCode, stdout, stderr.match(/The queue is full\./g)?.length]).toEqual([1, '', 3])
})

test.skipIf(!hasTerminal)('in a terminal each has a bar, which is removed when the job ends', async () => {
  const open: ServerResponse[] = []
  const { env, folder } = await setUp([clip, clip, clip], (response, at) => {
    open[at] = response
    streams([snapshot(record({ status: 'processing', progress: (at + 1) / 4 }))], { hold: true })(
      response,
      undefined as never,
      undefined as never,
    )
  })
  const screen = inTerminal(['video', 'clip/fast', 'A cat', '--all-formats', '--out', folder], env)
  const bar = (percent: number) =>
    `${'━'.repeat((24 * percent) / 100)}${'─'.repeat(24 - (24 * percent) / 100)}  ${percent} %`
  await expect.poll(() => open.filter(Boolean).length).toBe(3)
  // The three are below each other in one frame.
  await expect
    .poll(() => screen.everything())
    .toMatch(new RegExp(`16:9  ${bar(25)}[^\\n]*\\n9:16  ${bar(50)}[^\\n]*\\n1:1   ${bar(75)}`))
  for (const response of open) response.end(event('job.completed', {}))
  expect(await screen.ends()).toBe(0)
  // Each frame overwrites the one before: the cursor goes up as many lines as there are below the first.
  expect(screen.everything()).toContain('\u001b[2A\u001b[J')
  expect(readdirSync(folder)).toHaveLength(3)
})

test.skipIf(!hasTerminal)('in a terminal printed lines are above the bars, which continue', async () => {
  const open: ServerResponse[] = []
  const { env, folder } = await setUp([clip, clip, clip], (response, at) => {
    open[at] = response
    const working = snapshot(record({ status: 'processing' }))
    streams([working], { hold: true })(response, undefined as never, undefined as never)
  })
  const screen = inTerminal(['video', 'clip/fast', 'A cat', '--all-formats', '--out', folder], env)
  await screen.sees('1:1   ──')
  open[0]!.end(event('job.completed', {}))
  await screen.sees('seed 9')
  await screen.sees(`\u001b[J${folder}/a-cat-9-16x9.mp4\r\n`)
  await screen.sees('9:16  ──')
  for (const response of open.slice(1)) response.end(event('job.completed', {}))
  expect(await screen.ends()).toBe(0)
})
