import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAsIs } from '../../../../core/store/sqlite/database.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, painters, small, submitted, until } from './_painter.ts'

let app: TestApp
let tokens: Record<string, string>
beforeAll(async () => {
  app = await startApp({ models: painters })
  const token = async (more: object) => {
    const made = await ask(app, `/api/organizations/${app.organizationId}/tokens`, { body: { name: 't', ...more } })
    return made.body.secret as string
  }
  tokens = {
    root: app.secret,
    reader: await token({ scopes: ['user:read'] }),
    soloOnly: await token({ scopes: ['user:read', 'user:write'], models: ['solo'] }),
    stranger: (await makeOrganization(app)).secret,
  }
})
afterAll(() => app[Symbol.asyncDispose]())

const image = 'fake/paint/text-to-image'
const video = 'fake/paint/text-to-video'

/** The request, the caller, and the answer: its status, what it contains, what it must not contain. */
const rows: [string, string, object | string, { who?: string; headers?: object }, number, string[], string[]?][] = [
  ['a picture', image, small, {}, 202, ['"status":"processing"', '"queue_position":', '/status/stream"']],
  ['a picture, by the id of the model', 'painter/text-to-image', small, {}, 202, ['"request_id":"q_']],
  ['a picture of a model with one task', 'fake/solo', small, {}, 202, ['"request_id":"q_']],
  ['the same under its long name', 'fake/solo/text-to-image', small, {}, 202, ['"request_id":"q_']],
  ['a slug with escapes', 'fake%2Fpaint/text-to-image', small, {}, 202, ['"request_id":"q_']],
  ['by the queue path', `queue/submit/${image}`, { ...small, sync_mode: true }, {}, 202, ['"request_id":"q_']],
  [
    'respond-async wins over sync_mode',
    image,
    { ...small, sync_mode: true },
    { headers: { prefer: 'respond-async' } },
    202,
    ['"request_id"'],
  ],
  ['no wait', image, small, { headers: { prefer: 'wait=0' } }, 202, ['"request_id":"q_']],
  ['low priority', image, small, { headers: { 'x-fal-queue-priority': 'low' } }, 202, ['"request_id"']],
  [
    'an unknown slug',
    'fake/paint/text-to-vidoe',
    small,
    {},
    404,
    ['model_not_found', "Did you mean 'fake/paint/text-to-", '"detail":"There is no model with the slug'],
  ],
  ['a slug of nobody', 'zzz/yyy', small, {}, 404, ['model_not_found', 'GET /api/model-status'], ['Did you mean']],
  ['a model that is switched off', 'fake/off', small, {}, 404, ['model_not_found']],
  ['a text model’s id', 'painter', small, {}, 404, ['model_not_found']],
  ['what the token may not use', image, small, { who: 'soloOnly' }, 403, ['model_not_allowed']],
  ['what it may', 'fake/solo', small, { who: 'soloOnly' }, 202, ['"request_id"']],
  [
    'close names for who may use one model only',
    'fake/solos',
    small,
    { who: 'soloOnly' },
    404,
    ["'fake/solo'"],
    ['fake/paint', 'painter'],
  ],
  ['without the scope', image, small, { who: 'reader' }, 403, ['insufficient_scope', '"detail":"The token']],
  ['without a token', image, small, { who: 'nobody' }, 401, ['missing_api_key', '"message":', '"detail":']],
  ['nothing', image, '', {}, 400, ['missing_required_parameter', '"param":"prompt"', '"type":"missing"']],
  ['no JSON', image, '{', {}, 400, ['invalid_json']],
  ['a list', image, [], {}, 400, ['invalid_type']],
  [
    'too many frames',
    video,
    { ...small, num_frames: 301 },
    {},
    400,
    ['"param":"num_frames"', '"le":300', '"input":301', '"loc":["body","num_frames"]'],
  ],
  ['two faults', video, { ...small, num_frames: 0, fps: 61 }, {}, 400, ['"details":', '"ge":1', '"le":60']],
  [
    'fal’s name for the rate',
    video,
    { prompt: 'a', frames_per_second: 61 },
    {},
    400,
    ['"param":"frames_per_second"'],
    ["'fps'"],
  ],
  [
    'prompt expansion',
    image,
    { ...small, enable_prompt_expansion: true },
    {},
    400,
    ['unsupported_parameter', 'enable_prompt_expansion'],
  ],
  ['no picture', 'fake/paint/image-to-image', small, {}, 400, ['missing_required_parameter', '"param":"image_url"']],
  [
    'an address that is none',
    'fake/paint/image-to-image',
    { ...small, image_url: 'cat.png' },
    {},
    400,
    ['invalid_value', '"param":"image_url"'],
  ],
  [
    'a private address',
    'fake/paint/image-to-image',
    { ...small, image_url: 'http://127.0.0.1:1/cat.png' },
    {},
    400,
    ['url_fetch_failed', '"param":"image_url"'],
    ['ECONNREFUSED'],
  ],
  [
    'a file that is none',
    'fake/paint/image-to-image',
    { ...small, image: 'file-01K00000000000000000000000' },
    {},
    404,
    ['"param":"image"'],
  ],
  [
    'text for a picture',
    'fake/paint/image-to-image',
    { ...small, image_url: `data:image/png;base64,${btoa('hello')}` },
    {},
    400,
    ['invalid_image', '"param":"image_url"'],
  ],
  ['a wrong webhook', `${image}?webhook_url=ftp://example.com`, small, {}, 400, ['invalid_value', 'webhook_url']],
  ['a wrong webhook of fal', `${image}?fal_webhook=http://10.0.0.1`, small, {}, 400, ['invalid_value', 'fal_webhook']],
  [
    'a wrong webhook in a header',
    image,
    small,
    { headers: { 'x-webhook-url': 'example.com' } },
    400,
    ['invalid_value', '"loc":["header","X-Webhook-Url"]'],
  ],
  [
    'an odd priority',
    image,
    small,
    { headers: { 'x-fal-queue-priority': 'first' } },
    400,
    ['"param":"X-Fal-Queue-Priority"'],
  ],
  [
    'an odd timeout',
    image,
    small,
    { headers: { 'x-fal-request-timeout': 'soon' } },
    400,
    ['"param":"X-Fal-Request-Timeout"'],
  ],
  [
    'a timeout of nothing',
    image,
    small,
    { headers: { 'x-fal-request-timeout': '0' } },
    400,
    ['"param":"X-Fal-Request-Timeout"'],
  ],
  [
    'an odd lifetime',
    image,
    small,
    { headers: { 'x-fal-object-lifecycle-preference': 'a day' } },
    400,
    ['Lifecycle-Preference'],
  ],
  [
    'a negative lifetime',
    image,
    small,
    { headers: { 'x-fal-object-lifecycle-preference': '{"expiration_duration_seconds":-1}' } },
    400,
    ['Lifecycle-Preference'],
  ],
  ['an odd key', image, small, { headers: { 'idempotency-key': 'a b' } }, 400, ['Idempotency-Key']],
]
test.each(rows)('%s', async (_, slug, body, { who = 'root', headers = {} }, status, holds, lacks = []) => {
  const answer = await ask(app, `/slug/${slug}`, {
    method: 'POST',
    body,
    token: tokens[who] ?? null,
    headers: headers as Record<string, string>,
  })
  expect([answer.status, answer.text]).toEqual([status, expect.any(String)])
  for (const text of holds) expect(answer.text).toContain(text)
  for (const text of lacks) expect(answer.text).not.toContain(text)
  expect(answer.text).not.toMatch(/\/tmp\/|\bstack\b/)
})

test('the answer has the addresses for the next requests', async () => {
  const { body, headers } = await ask(app, `/slug/${image}`, { body: small })
  const url = `${app.url}/slug/requests/${body.request_id}`
  expect(body).toMatchObject({
    response_url: url,
    status_url: `${url}/status`,
    cancel_url: `${url}/cancel`,
    stream_url: `${url}/status/stream`,
  })
  expect(headers.get('location')).toBe(url)
  expect(headers.get('x-fal-request-id')).toBe(body.request_id)
  expect(headers.get('x-job-id')).toBe((body.request_id as string).replace('q_', 'job_'))
  expect(['warm', 'cold', 'loading']).toContain(headers.get('x-model-status'))
  const job = (await ask(app, `/api/jobs/${headers.get('x-job-id')}`)).body
  expect(job).toMatchObject({ task: 'slug/text-to-image', model_id: 'painter', slug: image, queue_id: body.request_id })
})

test('an uploaded image is checked, stored as a file, and sent to the engine as one', async () => {
  const picture = await sharp({ create: { width: 400, height: 200, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const large = await sharp(Buffer.from(Array.from({ length: 900 * 900 * 3 }, (_, at) => (at * 7919) % 251)), {
    raw: { width: 900, height: 900, channels: 3 },
  })
    .png({ compressionLevel: 0 })
    .toBuffer()
  expect(large.length).toBeGreaterThan(2 << 20)
  for (const [bytes, width, height] of [
    [picture, 400, 208],
    [large, 896, 896],
  ] as const) {
    const image_url = `data:image/png;base64,${bytes.toString('base64')}`
    const id = await submitted(app, 'fake/paint/image-to-image', { image_url, image_size: undefined })
    const { logs, result } = await until(app, id, 'COMPLETED')
    const inputs = JSON.parse(logs[0].message as string)
    expect(inputs).toMatchObject({ width, height, image: expect.stringMatching(/\/work\/wkr_\w+\/in\//) as string })
    expect(result.images[0]).toMatchObject({ width, height })
    const job = (await ask(app, `/api/jobs/${id.replace('q_', 'job_')}`)).body
    expect(job.inputs.image).toMatch(/^file-/)
    // An output is an input again, by its address and by its id.
    for (const again of [result.images[0].url as string, job.inputs.image as string])
      await submitted(app, 'fake/paint/image-to-video', { image_url: again })
  }
})

test('an output is an input of the next model: a video with more frames, a video as long as the speech', async ({
  skip,
}) => {
  skip(!hasFfmpeg)
  const film = await until(app, await submitted(app, video, { num_frames: 8, fps: 4 }), 'COMPLETED')
  const more = { video_url: film.video.url as string, image_size: undefined, fps: 12 }
  const smooth = await until(app, await submitted(app, 'fake/paint/video-interpolation', more), 'COMPLETED')
  expect(smooth.result).toMatchObject({ num_frames: 24, fps: 12, width: 64, height: 64, duration_seconds: 2 })
  const image = await until(app, await submitted(app, 'fake/paint/text-to-image'), 'COMPLETED')
  const spoken = {
    image_url: image.images[0].url as string,
    audio_url: `data:audio/wav;base64,${silence(1.5).toString('base64')}`,
    num_frames: undefined,
    fps: 10,
  }
  const speech = await until(app, await submitted(app, 'fake/paint/speech-to-video', spoken), 'COMPLETED')
  expect(speech.result).toMatchObject({ num_frames: 15, fps: 10, duration_seconds: 1.5 })
  const inputs = JSON.parse(speech.logs[0].message as string)
  expect(inputs).toMatchObject({ audio: expect.stringMatching(/\/work\/wkr_\w+\/in\//) as string })
  const long = { ...spoken, audio_url: `data:audio/wav;base64,${silence(31).toString('base64')}` }
  const refused = await ask(app, '/slug/fake/paint/speech-to-video', { body: { ...small, ...long } })
  expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([
    400,
    'invalid_audio',
    'audio_url',
  ])
})

/** This many seconds of audio, as a WAV of 8 kHz. */
function silence(seconds: number): Buffer {
  const data = Buffer.alloc(Math.round(seconds * 8_000), 128)
  const head = Buffer.alloc(44)
  head.write('RIFF')
  head.writeUInt32LE(36 + data.length, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(8_000, 24)
  head.writeUInt32LE(8_000, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(data.length, 40)
  return Buffer.concat([head, data])
}

test('a large body gets the same error messages as a small one', async () => {
  const image_url = `data:image/png;base64,${Buffer.alloc(3 << 20, 'x').toString('base64')}`
  const answer = await ask(app, '/slug/fake/paint/image-to-image', { body: { ...small, image_url } })
  expect([answer.status, answer.body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'invalid_image', param: 'image_url' }),
  ])
  const tooLarge = `data:image/png;base64,${Buffer.alloc(11 << 20, 'x').toString('base64')}`
  const refused = await ask(app, '/slug/fake/paint/image-to-image', { body: { ...small, image_url: tooLarge } })
  expect([refused.status, refused.text]).toEqual([400, expect.stringMatching(/invalid_image.*10 MB/)])
})

test('no file of a refused request is kept', async () => {
  const before = inputsKept()
  const picture = await sharp({ create: { width: 32, height: 32, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
  const image_url = `data:image/png;base64,${picture.toString('base64')}`
  const key = { 'idempotency-key': 'kept' }
  const first = await submitted(app, 'fake/paint/image-to-image', { image_url }, key)
  expect(inputsKept()).toBe(before + 1)
  const again = await submitted(app, 'fake/paint/image-to-image', { image_url }, key)
  expect(again).toBe(first)
  const other = await ask(app, '/slug/fake/paint/image-to-image', {
    body: { ...small, image_url, prompt: 'a dog' },
    headers: key,
  })
  expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  const elsewhere = await ask(app, '/slug/fake/paint/image-to-video', { body: { ...small, image_url }, headers: key })
  expect([elsewhere.status, elsewhere.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  // The first of two is valid, the second is not: neither is kept.
  const refused = await ask(app, '/slug/fake/paint/inpainting', { body: { ...small, image_url, mask_url: 'x' } })
  expect([refused.status, refused.body.error.param]).toEqual([400, 'mask_url'])
  expect(inputsKept()).toBe(before + 1)
})

function inputsKept(): number {
  using database = openAsIs(join(app.dataDir, 'infer.db'), { readonly: true })
  return database.scalar<number>`SELECT count(*) FROM files WHERE purpose = 'input' AND removed_at IS NULL`.get()!
}
