import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, painters, until } from './_painter.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: painters })
})
afterAll(() => app[Symbol.asyncDispose]())

const slug = '/slug/fake/paint/text-to-video'
const body = { prompt: 'a cat', num_frames: 2, fps: 8, seed: 7 }
const all = ['16:9', '9:16', '1:1']

interface Request {
  aspect_ratio: string
  request_id: string
}

const jobsOf = async (secret?: string) =>
  ((await ask(app, '/api/jobs?limit=100', secret ? { token: secret } : {})).body.jobs as { id: string }[]).map(
    ({ id }) => id,
  )

test('one call with aspect_ratios answers 202 with a request for each, in their order', async () => {
  const { status, body: answer } = await ask(app, slug, { body: { ...body, aspect_ratios: all } })
  expect(status).toBe(202)
  expect(Object.keys(answer)).toEqual(['status', 'requests'])
  expect(answer.requests.map(({ aspect_ratio }: Request) => aspect_ratio)).toEqual(all)
  for (const { request_id, ...more } of answer.requests) {
    const url = `${app.url}/slug/requests/${request_id}`
    expect(more).toMatchObject({
      queue_position: expect.any(Number),
      response_url: url,
      status_url: `${url}/status`,
      cancel_url: `${url}/cancel`,
      stream_url: `${url}/status/stream`,
    })
  }
})

test('each request makes a video of its shape, with the given seed', async () => {
  const { body: answer } = await ask(app, '/slug/queue/submit/fake/paint/text-to-video', {
    body: { ...body, aspect_ratios: all },
  })
  const ended = await Promise.all((answer.requests as Request[]).map(one => until(app, one.request_id, 'COMPLETED')))
  expect(ended.map(({ width, height, seed_used }) => [width, height, seed_used])).toEqual([
    [832, 480, 7],
    [480, 832, 7],
    [624, 624, 7],
  ])
})

test('each request has its own copy of the image, so removing one job leaves the others whole', async () => {
  const png = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const image_url = `data:image/png;base64,${png.toString('base64')}`
  const { body: answer } = await ask(app, '/slug/fake/paint/image-to-video', {
    body: { ...body, image_url, aspect_ratios: ['16:9', '1:1'] },
  })
  const [first, second] = (answer.requests as Request[]).map(({ request_id }) => request_id)
  await until(app, first!, 'COMPLETED')
  await ask(app, `/api/jobs/job_${first!.slice(2)}`, { method: 'DELETE' })
  await until(app, second!, 'COMPLETED')
  const again = await ask(app, `/api/jobs/job_${second!.slice(2)}/retry`, { method: 'POST' })
  expect(again.status).toBe(202)
})

test('an idempotency key covers the whole request: it is answered with the same requests again', async () => {
  const { secret } = await makeOrganization(app)
  const headers = { 'idempotency-key': 'formats-1' }
  const send = (more: object) => ask(app, slug, { token: secret, headers, body: { ...body, ...more } })
  const first = await send({ aspect_ratios: all })
  const second = await send({ aspect_ratios: all })
  const idsOf = ({ body }: { body: { requests: Request[] } }) => body.requests.map(({ request_id }) => request_id)
  expect(idsOf(second as never)).toEqual(idsOf(first as never))
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(first.headers.get('idempotent-replayed')).toBe(null)
  expect(await jobsOf(secret)).toHaveLength(3)
  const other = await send({ aspect_ratios: ['1:1'] })
  expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  expect(await jobsOf(secret)).toHaveLength(3)
})

test('the whole request counts as one submission', async () => {
  const { secret } = await makeOrganization(app, { jobsPerMinute: 2 })
  const send = () => ask(app, slug, { token: secret, body: { ...body, aspect_ratios: all } })
  expect([(await send()).status, (await send()).status, (await send()).status]).toEqual([202, 202, 429])
  expect(await jobsOf(secret)).toHaveLength(6)
})

const refused: [string, string, object, number, string[]][] = [
  ['none', slug, { aspect_ratios: [] }, 400, ['"param":"aspect_ratios"']],
  ['one twice', slug, { aspect_ratios: ['1:1', '1:1'] }, 400, ['must not name an aspect ratio twice']],
  ['an unknown one', slug, { aspect_ratios: ['4:3'] }, 400, ['invalid_value', 'aspect_ratios']],
  ['together with aspect_ratio', slug, { aspect_ratios: all, aspect_ratio: '1:1' }, 400, ["'aspect_ratio' cannot be"]],
  ['together with a size', slug, { aspect_ratios: all, width: 640 }, 400, ["'width' cannot be sent with it"]],
  ['with sync_mode', slug, { aspect_ratios: all, sync_mode: true }, 400, ['"param":"sync_mode"']],
  ['for images', '/slug/fake/paint/text-to-image', { aspect_ratios: all }, 400, ['unsupported_parameter', 'images']],
  [
    'for a task that keeps the shape',
    '/slug/fake/paint/video-interpolation',
    { aspect_ratios: all },
    400,
    ['unsupported_parameter', 'keeps the shape of its input'],
  ],
  ['a fault of another field', slug, { aspect_ratios: all, fps: 61 }, 400, ['"param":"fps"', '"le":60']],
  ['an unknown field', slug, { aspect_ratios: all, frame: 1 }, 400, ['unknown_parameter']],
  ['on /fal', '/fal/queue/fake/paint/text-to-video', { aspect_ratios: all }, 422, ['POST /slug/{slug}']],
  ['on /fal/run', '/fal/run/fake/paint/text-to-video', { aspect_ratios: all }, 422, ['POST /slug/{slug}']],
]
test.each(refused)('aspect_ratios refused: %s', async (_, path, more, status, words) => {
  const { secret } = await makeOrganization(app)
  const answer = await ask(app, path, { token: secret, body: { ...body, ...more } })
  expect([answer.status, answer.text]).toEqual([status, expect.any(String)])
  for (const word of words) expect(answer.text).toContain(word)
  expect(await jobsOf(secret)).toEqual([])
})

test('a job of /api/jobs makes one video: aspect_ratios in its inputs is refused', async () => {
  const answer = await ask(app, '/api/jobs', {
    body: { slug: 'fake/paint/text-to-video', inputs: { ...body, aspect_ratios: all } },
  })
  expect([answer.status, answer.body.error.param]).toEqual([400, 'inputs.aspect_ratios'])
})

test('an image that is refused leaves no job', async () => {
  const { secret } = await makeOrganization(app)
  const answer = await ask(app, '/slug/fake/paint/image-to-video', {
    token: secret,
    body: { ...body, image_url: `data:image/png;base64,${btoa('hello')}`, aspect_ratios: all },
  })
  expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_image'])
  expect(await jobsOf(secret)).toEqual([])
})
