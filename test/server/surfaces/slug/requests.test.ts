import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, type Json, painters, small, statusOf, submitted, until } from './_painter.ts'

let app: TestApp
let stranger: string
let reader: string
beforeAll(async () => {
  app = await startApp({ models: painters })
  stranger = (await makeOrganization(app)).secret
  const made = await ask(app, `/api/organizations/${app.organizationId}/tokens`, {
    body: { name: 'reader', scopes: ['user:read'] },
  })
  reader = made.body.secret as string
})
afterAll(() => app[Symbol.asyncDispose]())

const image = 'fake/paint/text-to-image'
const video = 'fake/paint/text-to-video'
const result = (id: string) => ask(app, `/slug/requests/${id}`)

test('a video, from the submission to its bytes', async ({ skip }) => {
  skip(!hasFfmpeg)
  const id = await submitted(app, video, { num_frames: 16, fps: 8, seed: 42 })
  const status = await until(app, id, 'COMPLETED')
  const { status: code, headers, body } = await result(id)
  expect(code).toBe(200)
  expect(headers.get('x-fal-request-id')).toBe(id)
  expect(headers.get('retry-after')).toBeNull()
  expect(body).toEqual({
    request_id: id,
    status: 'completed',
    video: {
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/files\/file-\w+\/video\.mp4\?exp=\d+&sig=/),
      thumbnail_url: expect.stringContaining('thumbnail.webp'),
      file_name: 'video.mp4',
      content_type: 'video/mp4',
      file_size: expect.any(Number),
      width: 64,
      height: 64,
      duration: 2,
      fps: 8,
      num_frames: 16,
    },
    thumbnail_url: expect.stringContaining('thumbnail.webp'),
    duration_seconds: 2,
    width: 64,
    height: 64,
    num_frames: 16,
    fps: 8,
    seed_used: 42,
    seed: 42,
    prompt: 'a cat',
    timings: { inference: expect.any(Number), queue: expect.any(Number) },
    model_id: 'painter',
    created_at: expect.any(Number),
    completed_at: expect.any(Number),
  } as Json)
  const bytes = await fetch(body.video.url as string)
  expect([bytes.status, bytes.headers.get('content-type'), (await bytes.arrayBuffer()).byteLength]).toEqual([
    200,
    'video/mp4',
    body.video.file_size,
  ])
  // In both forms: embedded, and separate.
  const { status: _, request_id: __, ...payload } = body
  expect(status).toMatchObject({
    status: 'COMPLETED',
    request_id: id,
    metrics: { inference_time: body.timings.inference },
  })
  expect(Object.keys(status)).toEqual(expect.arrayContaining(Object.keys(payload)))
  expect(status.result).toMatchObject({ request_id: id, status: 'completed', seed_used: 42 })
  expect(status.logs[0]).toEqual({
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    level: 'INFO',
    message: expect.any(String),
    source: 'USER',
  } as Json)
  expect(await statusOf(app, id)).not.toHaveProperty('logs')
  const logs = await ask(app, `/slug/requests/${id}/logs`)
  expect(logs.body.logs).toEqual(status.logs)
  const library = await ask(app, '/api/library?q=cat')
  expect(library.text).toContain(`"job_id":"${id.replace('q_', 'job_')}"`)
})

test('images', async () => {
  const id = await submitted(app, image, { num_images: 2, output_format: 'jpeg' })
  await until(app, id, 'COMPLETED')
  const { body } = await result(id)
  expect(body).not.toHaveProperty('video')
  expect(body).not.toHaveProperty('num_frames')
  expect(body.images).toHaveLength(2)
  expect(body.images[0]).toMatchObject({ content_type: 'image/jpeg', width: 64, height: 64 })
  expect(body.images[0].url).not.toBe(body.images[1].url)
})

test('while it runs: progress, and when to ask again', async () => {
  const id = await submitted(app, image, { prompt: 'mode:slow,ms=60000,steps=100' })
  await expect.poll(async () => (await statusOf(app, id)).progress as number).toBeGreaterThan(0)
  const status = await ask(app, `/slug/requests/${id}/status?logs=1`)
  expect(status.body).toMatchObject({ status: 'IN_PROGRESS', request_id: id })
  expect(status.body.logs.length).toBeGreaterThan(0)
  const { body, headers } = await result(id)
  expect(body).toMatchObject({ request_id: id, status: 'processing', progress: expect.any(Number) as number })
  expect([headers.get('retry-after'), headers.get('openai-poll-after-ms')]).toEqual(['2', '2000'])
  const cancelled = await ask(app, `/slug/requests/${id}/cancel`, { method: 'PUT' })
  expect([cancelled.status, cancelled.body]).toEqual([202, { status: 'CANCELLATION_REQUESTED', request_id: id }])
  const after = await result(id)
  expect([after.status, after.body.status, after.body.error]).toEqual([
    200,
    'failed',
    { code: 'cancelled', message: `Request ${id} was cancelled.`, type: 'invalid_request_error' },
  ])
  expect(await statusOf(app, id)).toMatchObject({ status: 'FAILED', error_type: 'client_cancelled' })
})

test('while it waits: its position, the reason, and no entry once it is cancelled', async () => {
  const first = await submitted(app, 'fake/solo', { prompt: 'mode:slow,ms=60000' })
  await until(app, first, 'IN_PROGRESS')
  const second = await submitted(app, 'fake/solo')
  const third = await submitted(app, 'fake/solo')
  expect(await statusOf(app, second)).toMatchObject({ status: 'IN_QUEUE', queue_position: 0 })
  // The fleet is polled, so the model may be shown as loading for a short time.
  await expect
    .poll(() => statusOf(app, third))
    .toMatchObject({
      status: 'IN_QUEUE',
      queue_position: 1,
      waiting_for: { reason: 'queue', detail: expect.any(String) as string },
    })
  expect((await result(third)).body).toMatchObject({ status: 'processing', queue_position: 1 })
  expect((await ask(app, `/slug/requests/${second}/cancel`, { method: 'POST' })).status).toBe(202)
  await expect.poll(async () => (await statusOf(app, third)).queue_position as number).toBe(0)
  await ask(app, `/slug/requests/${first}/cancel`, { method: 'POST' })
  await until(app, third, 'COMPLETED')
})

test('a request that the engine refuses has failed: reading its status succeeds', async () => {
  const id = await submitted(app, image, { prompt: 'mode:invalid,text=too-wild' })
  const status = await until(app, id, 'FAILED')
  expect(status).toMatchObject({ error_type: 'bad_request', error: { code: 'invalid_value' } })
  const { status: code, body } = await result(id)
  expect([code, body.status, body.error.code]).toEqual([200, 'failed', 'invalid_value'])
  expect(body.error.message).toContain('too-wild')
})

test.each([
  ['POST', 'completed'],
  ['PUT', 'completed'],
  ['POST', 'been cancelled'],
])('%s cancel of one that has %s', async (method, how) => {
  const cancelled = how === 'been cancelled'
  const id = await submitted(app, image, { prompt: cancelled ? 'mode:hang' : 'a cat' })
  if (cancelled) expect((await ask(app, `/slug/requests/${id}/cancel`, { method })).status).toBe(202)
  else await until(app, id, 'COMPLETED')
  const { status, body } = await ask(app, `/slug/requests/${id}/cancel`, { method })
  expect([status, body.status, body.error.code]).toEqual([400, 'ALREADY_COMPLETED', 'job_already_finished'])
})

test('a request of another organization answers byte for byte like an unknown one', async () => {
  const mine = await submitted(app, image)
  const plain = (text: string, id: string) => text.replaceAll(/req_\w{26}/g, 'req').replaceAll(id, 'ID')
  for (const [method, path] of [
    ['GET', ''],
    ['GET', '/status'],
    ['GET', '/status/stream'],
    ['GET', '/logs'],
    ['POST', '/cancel'],
    ['PUT', '/cancel'],
  ]) {
    const answers = []
    for (const id of [mine, newId('q')]) {
      const { status, text } = await ask(app, `/slug/requests/${id}${path}`, { method: method!, token: stranger })
      answers.push([status, plain(text, id)])
    }
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]![0]).toBe(404)
  }
  const { body } = await ask(app, '/slug/requests/batch', { token: stranger, body: { request_ids: [mine] } })
  expect(body.requests[0]).toMatchObject({ request_id: mine, status: 'not_found', error: { code: 'not_found' } })
  await until(app, mine, 'COMPLETED')
})

test.each(['q_', 'q_x', 'nothing', newId('job'), newId('q').toLowerCase(), '..%2f..'])(
  '%s is not a request',
  async id => {
    const { status, body } = await ask(app, `/slug/requests/${id}`)
    expect([status, body.error.code]).toEqual([404, 'not_found'])
  },
)

describe('batch', () => {
  const batch = (body: object, query = '') => ask(app, `/slug/requests/batch${query}`, { body, token: reader })

  test('in the requested order, each once, whatever its status', async () => {
    const done = await submitted(app, image)
    const failed = await submitted(app, image, { prompt: 'mode:invalid' })
    const going = await submitted(app, image, { prompt: 'mode:hang' })
    const absent = newId('q')
    await until(app, done, 'COMPLETED')
    await until(app, failed, 'FAILED')
    await until(app, going, 'IN_PROGRESS')
    const { status, body } = await batch({ request_ids: [going, absent, done, 'zzz', failed, done] })
    expect(status).toBe(200)
    expect(body.requests.map((one: Json) => [one.request_id, one.status, one.queue_status])).toEqual([
      [going, 'processing', 'IN_PROGRESS'],
      [absent, 'not_found', undefined],
      [done, 'completed', 'COMPLETED'],
      ['zzz', 'not_found', undefined],
      [failed, 'failed', 'FAILED'],
    ])
    expect(body.requests[2].images[0].url).toContain('/files/')
    expect(body.requests[4].error.code).toBe('invalid_value')
    expect(body.counts).toEqual({ processing: 1, completed: 1, failed: 1, not_found: 2 })
    const bare = await batch({ ids: [done] }, '?fields=status')
    expect(bare.body.requests).toEqual([{ request_id: done, status: 'completed', queue_status: 'COMPLETED' }])
    await ask(app, `/slug/requests/${going}/cancel`, { method: 'POST' })
  })

  const many = (count: number) => Array.from({ length: count }, () => newId('q'))
  test.each<[string, object, number, string]>([
    ['50', { request_ids: many(50) }, 200, '"not_found":50'],
    ['51', { request_ids: many(51) }, 400, 'at most 50'],
    ['none', { request_ids: [] }, 400, '"param":"request_ids"'],
    ['nothing', {}, 400, 'missing_required_parameter'],
    ['60 that are 1', { request_ids: Array.from({ length: 60 }, () => 'q_1') }, 200, '"not_found":1'],
    ['numbers', { request_ids: [1] }, 400, '"param":"request_ids[0]"'],
    ['a text', { ids: 'q_1' }, 400, '"param":"ids"'],
  ])('%s', async (_, body, status, words) => {
    const answer = await batch(body)
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(words)])
  })
})

describe('stream', () => {
  /** Reads all records until the server ends the stream. */
  async function follow(id: string, query = ''): Promise<Json[]> {
    const response = await app.fetch(`/slug/requests/${id}/status/stream${query}`)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    const text = await response.text()
    return [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data!))
  }

  test('every change once, and the end with the result', async () => {
    const id = await submitted(app, image, { prompt: 'mode:slow,ms=1500,steps=3' })
    const records = await follow(id, '?logs=1')
    const statuses = records.map(({ status }) => status as string)
    expect(new Set(records.map(record => JSON.stringify(record))).size).toBe(records.length)
    expect(statuses.at(-1)).toBe('COMPLETED')
    expect(statuses.filter(status => status === 'COMPLETED')).toHaveLength(1)
    const progress = records
      .filter(({ status }) => status === 'IN_PROGRESS')
      .map(record => (record.progress ?? 0) as number)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(progress.length).toBeGreaterThan(1)
    expect(records.at(-1).images[0].url).toContain('/files/')
    expect(records.at(-1).logs.map((line: Json) => line.message as string)).toContain('step 3/3')
  })

  test('of an ended request: its end', async () => {
    const id = await submitted(app, image)
    await until(app, id, 'COMPLETED')
    expect((await follow(id)).map(({ status }) => status as string)).toEqual(['COMPLETED'])
  })

  test('of one that is cancelled meanwhile: FAILED, and the end', async () => {
    const id = await submitted(app, image, { prompt: 'mode:hang' })
    await until(app, id, 'IN_PROGRESS')
    const following = follow(id)
    await ask(app, `/slug/requests/${id}/cancel`, { method: 'POST' })
    const records = await following
    expect(records.at(-1)).toMatchObject({ status: 'FAILED', error: { code: 'cancelled' } })
  })
})

test('a removed request answers differently from an unknown one', async () => {
  const id = await submitted(app, image)
  await until(app, id, 'COMPLETED')
  const before = (await result(id)).body
  await ask(app, `/api/jobs/${id.replace('q_', 'job_')}`, { method: 'DELETE' }).catch(() => {})
  const after = await result(id)
  expect([after.status, after.body.error.code]).toEqual([410, 'output_expired'])
  expect((await fetch(before.images[0].url as string)).status).toBe(410)
  const { body } = await ask(app, '/slug/requests/batch', { body: { request_ids: [id] } })
  expect(body.requests[0]).toMatchObject({ status: 'not_found', error: { code: 'output_expired' } })
})

test('a result whose file was removed is 410, and its status says so', async ({ skip }) => {
  skip(!hasFfmpeg)
  const id = await submitted(app, video)
  await until(app, id, 'COMPLETED')
  const item = (await ask(app, '/api/library')).body.items.find((one: Json) => one.job_id === id.replace('q_', 'job_'))
  await app.fetch(`/api/library/${item.id}`, { method: 'DELETE' })
  const after = await result(id)
  expect([after.status, after.body.error.code]).toEqual([410, 'output_expired'])
  expect(await statusOf(app, id)).toMatchObject({ status: 'COMPLETED', error: { code: 'output_expired' } })
  const { body } = await ask(app, '/slug/requests/batch', { body: { request_ids: [id] } })
  expect(body.requests[0]).toMatchObject({ status: 'completed', error: { code: 'output_expired' } })
})

test('a start timeout', async () => {
  const headers = { 'x-fal-object-lifecycle-preference': '{"expiration_duration_seconds":1}' }
  const id = await submitted(app, image, {}, headers)
  await until(app, id, 'COMPLETED')
  await expect.poll(async () => (await result(id)).status).toBe(410)
})

test('a request that does not begin in its time fails', async () => {
  const id = await submitted(app, 'fake/cold', {}, { 'x-fal-request-timeout': '0.5' })
  const status = await until(app, id, 'FAILED')
  expect(status).toMatchObject({ error: { code: 'timeout' }, error_type: 'startup_timeout' })
})

test('a request made by the job API has the same two views', async () => {
  const job = await ask(app, '/api/jobs', { body: { slug: image, inputs: small } })
  expect([job.status, job.text]).toEqual([202, expect.stringContaining('"queue_id":"q_')])
  await until(app, job.body.queue_id as string, 'COMPLETED')
})
