import { readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { faults } from '../../../golden/openai.ts'
import { ask, type Json, painters } from '../slug/_painter.ts'

/** The image endpoints with the fake engine, which logs its requests. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      ...painters,
      fakeModel('plain', [], { tasks: ['slug/image-to-image'] }),
      fakeModel('masked', [], { tasks: ['slug/inpainting'] }),
      fakeModel('talker'),
    ],
    limits: { sync_wait: '30s' },
  })
  await generate({})
})
afterAll(() => app[Symbol.asyncDispose]())

const small = { model: 'painter', prompt: 'a cat', size: '64x64', seed: 7 }
const generate = (body: object, headers = {}) =>
  ask(app, '/std/v1/images/generations', { body: { ...small, ...body }, headers })
const editing = (body: object, headers = {}) =>
  ask(app, '/std/v1/images/edits', { body: { ...small, ...body }, headers })

const picture = async (width: number, height: number, format: 'png' | 'jpeg' = 'png') =>
  sharp({ create: { width, height, channels: 3, background: 'teal' } })
    .toFormat(format)
    .toBuffer()
/** Opaque except for its left half. */
const halfMask = async (width: number, height: number) => {
  const pixels = Buffer.alloc(width * height * 4, 255)
  for (let at = 0; at < width * height; at++) if (at % width < width / 2) pixels[4 * at + 3] = 0
  return sharp(pixels, { raw: { width, height, channels: 4 } })
    .png()
    .toBuffer()
}
const dataUrl = (bytes: Buffer) => `data:image/png;base64,${bytes.toString('base64')}`
const blob = (bytes: Buffer) => new Blob([new Uint8Array(bytes)], { type: 'image/png' })

async function sendForm(path: string, parts: [name: string, value: string | Blob][], headers = {}) {
  const form = new FormData()
  for (const [name, value] of parts) form.append(name, value)
  const response = await fetch(app.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.secret}`, ...headers },
    body: form,
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json }
}

const jobOf = async (id: string): Promise<Json> => (await ask(app, `/api/jobs/${id}`)).body
/** The requests to the engine. */
async function heard(id: string): Promise<Json> {
  const { logs } = (await ask(app, `/api/jobs/${id}/logs`)).body as { logs: { message: string }[] }
  return JSON.parse(logs.find(({ message }) => message.startsWith('{'))!.message)
}
const jobsOf = async (model: string): Promise<Json[]> => (await ask(app, `/api/jobs?model_id=${model}`)).body.jobs

test("an image by its address, as in OpenAI's API, and a job with the same result", async () => {
  const { status, body, headers } = await generate({})
  expect(status).toBe(200)
  expect(faults('ImagesResponse', body)).toEqual([])
  expect(body).toMatchObject({ output_format: 'png', size: '64x64', seed_used: 7 })
  expect(body.data).toEqual([{ url: expect.stringContaining(`${app.url}/files/`), seed: 7 }])
  expect(body.images[0]).toMatchObject({ url: body.data[0].url, width: 64, height: 64, content_type: 'image/png' })
  const bytes = Buffer.from(await (await fetch(body.data[0].url)).arrayBuffer())
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'png', width: 64, height: 64 })
  const job = await jobOf(headers.get('x-job-id')!)
  expect(job).toMatchObject({ task: 'std/image-generation', kind: 'async', status: 'completed', model_id: 'painter' })
  expect(job.result).toEqual(body)
  expect(job.inputs).toMatchObject({ prompt: 'a cat', size: '64x64', n: 1, seed: 7 })
  expect(headers.get('x-model-status')).toBe('warm')
})

test("every field reaches the engine under the engine's names", async () => {
  const { headers, body } = await generate({
    prompt: 'mode:seeded',
    n: 3,
    size: '1000x64',
    output_format: 'webp',
    quality: 'high',
    style: 'vivid',
    background: 'opaque',
    user: 'somebody',
    negative_prompt: 'dogs',
    guidance_scale: 3,
    anything: 'else',
  })
  expect(await heard(headers.get('x-job-id')!)).toMatchObject({
    task: 'slug/text-to-image',
    num_images: 3,
    width: 1008,
    height: 64,
    output_format: 'webp',
    num_inference_steps: 50,
    negative_prompt: 'dogs',
    guidance_scale: 3,
    extra: {},
  })
  expect(body.data).toHaveLength(3)
  expect(body.data[0]).toMatchObject({ revised_prompt: 'mode:seeded, but better', seed: 8 })
  expect(body).toMatchObject({ size: '1008x64', output_format: 'webp' })
})

test('in base64: each image once, with the bytes of its address', async () => {
  const { body, headers } = await generate({ n: 2, response_format: 'b64_json' })
  expect(faults('ImagesResponse', body)).toEqual([])
  expect(body.data.map((one: object) => Object.keys(one).sort())).toEqual([
    ['b64_json', 'seed'],
    ['b64_json', 'seed'],
  ])
  for (const [at, { url }] of body.images.entries()) {
    const bytes = Buffer.from(await (await fetch(url)).arrayBuffer())
    expect(body.data[at].b64_json).toBe(bytes.toString('base64'))
  }
  expect((await jobOf(headers.get('x-job-id')!)).result.data[0]).toHaveProperty('url')
})

test.each([false, true])('a large image is encoded in base64 in pieces, as it is read (stream: %s)', async stream => {
  const { body } = await generate({ prompt: 'mode:large,mb=2', n: 2 })
  const encoded = vi.spyOn(Buffer.prototype, 'toString')
  const longest = () =>
    encoded.mock.contexts.reduce(
      (most, bytes, at) => (encoded.mock.calls[at]![0] === 'base64' ? Math.max(most, bytes.length) : most),
      0,
    )
  try {
    const answer = await app.fetch('/v1/images/generations', {
      body: { ...small, prompt: 'mode:large,mb=2', n: 2, response_format: 'b64_json', stream },
    })
    const text = await answer.text()
    expect(longest()).toBeGreaterThan(0)
    expect(longest()).toBeLessThanOrEqual(192 << 10)
    const found = [...text.matchAll(/"b64_json":"([^"]*)"/g)].map(([, base64]) => base64!)
    const bytes = Buffer.from(await (await fetch(body.data[0].url)).arrayBuffer())
    expect(bytes.length).toBe(2 << 20)
    expect(found.map(base64 => base64 === bytes.toString('base64'))).toEqual([true, true])
  } finally {
    encoded.mockRestore()
  }
})

test.each([false, true])(
  'an image whose file is missing is refused before anything is sent (stream: %s)',
  async stream => {
    const key = { 'idempotency-key': `gone ${stream}`.replace(' ', '-') }
    const imageRequest = { n: 2, response_format: 'b64_json', stream }
    const first = await app.fetch('/v1/images/generations', { body: { ...small, ...imageRequest }, headers: key })
    await first.text()
    const { images } = (await jobOf(first.headers.get('x-job-id')!)).result as { images: { url: string }[] }
    const { pathname } = new URL(images[1]!.url)
    // The folder was emptied.
    for (const place of await readdir(app.dataDir, { recursive: true, withFileTypes: true }))
      if (place.isFile() && pathname.includes(place.name.replace(/\..*/, '')))
        await rm(join(place.parentPath, place.name))
    const again = await generate(imageRequest, key)
    expect([again.status, again.body.error?.code]).toEqual([410, 'output_expired'])
  },
)

test.each([
  ['generations', {}, 'image_generation.completed', 'ImageGenCompletedEvent'],
  ['edits', { image: 'here' }, 'image_edit.completed', 'ImageEditCompletedEvent'],
] as const)('/images/%s as a stream: one completed event for each image', async (path, more, type, schema) => {
  const image = 'image' in more ? { image: dataUrl(await picture(64, 64)) } : {}
  const response = await app.fetch(`/std/v1/images/${path}`, {
    body: { ...small, ...image, n: 2, stream: true, partial_images: 2, quality: 'hd' },
  })
  expect(response.headers.get('content-type')).toContain('text/event-stream')
  const records = (await response.text()).split('\n\n').filter(record => record.includes('data:'))
  expect(records).toHaveLength(2)
  for (const record of records) {
    expect(record).toContain(`event: ${type}\n`)
    const event = JSON.parse(record.slice(record.indexOf('data: ') + 6))
    expect(faults(schema, event)).toEqual([])
    expect(await sharp(Buffer.from(event.b64_json, 'base64')).metadata()).toMatchObject({ width: 64, height: 64 })
  }
})

describe('unfinished images', () => {
  interface ImageEvent {
    type?: string
    b64_json?: string
    partial_image_index?: number
    size?: string
    error?: { code: string }
  }
  const streamed = (body: object, signal?: AbortSignal) =>
    app.fetch('/std/v1/images/generations', {
      body: { ...small, stream: true, partial_images: 2, ...body },
      ...(signal ? { signal } : {}),
    })
  const eventsIn = (text: string) =>
    text
      .trim()
      .split('\n\n')
      .map(event => JSON.parse(/^data: (.*)$/m.exec(event)![1]!) as ImageEvent)
  const seen = async (body: object) => {
    const response = await streamed(body)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    return eventsIn(await response.text())
  }

  test('are those that the engine sends, at most as many as requested, in the requested format', async () => {
    const events = await seen({ prompt: 'mode:preview', output_format: 'jpeg', partial_images: 1 })
    expect(events.map(({ type, partial_image_index }) => [type, partial_image_index])).toEqual([
      ['image_generation.partial_image', 0],
      ['image_generation.completed', undefined],
    ])
    expect(faults('ImageGenPartialImageEvent', events[0])).toEqual([])
    const facts = await Promise.all(events.map(({ b64_json }) => sharp(Buffer.from(b64_json!, 'base64')).metadata()))
    expect(facts.map(({ format, width }) => [format, width])).toEqual([
      ['jpeg', 32],
      ['jpeg', 64],
    ])
  })

  test.each(['a cat', 'mode:broken-preview'])('%s: without usable ones there is only the image', async prompt => {
    expect((await seen({ prompt })).map(({ type }) => type)).toEqual(['image_generation.completed'])
  })

  test('a failure after the first is the last event, before it has a status', async () => {
    const events = await seen({ prompt: 'mode:preview,then=invalid' })
    expect(events.map(({ type, error }) => error?.code ?? type)).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'invalid_value',
    ])
    expect((await streamed({ prompt: 'mode:preview,then=invalid', partial_images: 0 })).status).toBe(400)
  })

  test('a caller that disconnects after the first cancels the job', async () => {
    const leave = new AbortController()
    const response = await streamed({ prompt: 'mode:preview,then=wait' }, leave.signal)
    const id = response.headers.get('x-job-id')!
    leave.abort()
    await expect.poll(async () => (await jobOf(id)).status).toBe('cancelled')
  })
})

test('Prefer: respond-async is answered with the job', async () => {
  const { status, body, headers } = await generate({ prompt: 'later' }, { prefer: 'respond-async' })
  expect([status, headers.get('preference-applied')]).toEqual([202, 'respond-async'])
  expect(body).toMatchObject({ id: expect.stringMatching(/^job_/), status: 'pending' })
  await expect.poll(async () => (await ask(app, new URL(body.status_url).pathname)).body.status).toBe('completed')
})

test.each<[name: string, body: object, code: string, param: string]>([
  ['no prompt', { prompt: undefined }, 'missing_required_parameter', 'prompt'],
  ['no model', { model: undefined }, 'missing_required_parameter', 'model'],
  ['an unknown model', { model: 'nobody' }, 'model_not_found', 'model'],
  ['a model of another kind', { model: 'talker' }, 'unsupported_task', 'model'],
  ['a size that is none', { size: 'large' }, 'invalid_value', 'size'],
  ['a size in odd pixels', { size: '100x101' }, 'invalid_value', 'size'],
  ['a size that is too small', { size: '56x64' }, 'invalid_value', 'size'],
  ['a size that is too large', { size: '4096x4096' }, 'invalid_value', 'size'],
  ['none', { n: 0 }, 'invalid_value', 'n'],
  ['too many', { n: 11 }, 'invalid_value', 'n'],
  ['an unknown format', { output_format: 'gif' }, 'invalid_value', 'output_format'],
  ['transparent JPEG', { background: 'transparent', output_format: 'jpeg' }, 'invalid_value', 'background'],
  ['nothing behind it', { background: 'transparent' }, 'unsupported_parameter', 'background'],
  ['a prompt that is too long', { prompt: 'x'.repeat(32_001) }, 'string_above_max_length', 'prompt'],
])('%s is refused by name', async (_name, body, code, param) => {
  const answer = await generate(body)
  expect(answer.body.error).toMatchObject({ code, param })
  expect(faults('ErrorResponse', answer.body)).toEqual([])
})

test('an edit without a mask is image to image, in the size of the image; the same for a form and for JSON', async () => {
  const bytes = await picture(96, 64, 'jpeg')
  const fields: [string, string | Blob][] = [
    ['model', 'painter'],
    ['prompt', 'a dog'],
    ['seed', '7'],
    ['n', '2'],
    ['strength', '0.5'],
    ['image[]', blob(bytes)],
  ]
  const { status, body, headers } = await sendForm('/v1/images/edits', fields)
  expect([status, body.error]).toEqual([200, undefined])
  expect(faults('ImagesResponse', body)).toEqual([])
  expect(body.data).toHaveLength(2)
  const asked = await heard(headers.get('x-job-id')!)
  expect(asked).toMatchObject({ task: 'slug/image-to-image', width: 96, height: 64, strength: 0.5, mask: null })
  const json = await editing({
    prompt: 'a dog',
    size: 'auto',
    n: 2,
    strength: 0.5,
    images: [{ image_url: dataUrl(bytes) }],
  })
  const { image: _, folder: __, ...same } = await heard(json.headers.get('x-job-id')!)
  expect(asked).toMatchObject(same)
})

test.each([
  ['alpha', [255, 0]],
  ['luma', [0, 255]],
] as const)('a mask by %s reaches the engine as white where the image may change', async (mode, sides) => {
  const image = dataUrl(await picture(64, 64))
  const white = await sharp({ create: { width: 32, height: 64, channels: 3, background: 'white' } })
    .png()
    .toBuffer()
  const right = sharp({ create: { width: 64, height: 64, channels: 3, background: 'black' } })
    .composite([{ input: white, left: 32, top: 0 }])
    .png()
  const mask = dataUrl(mode === 'alpha' ? await halfMask(64, 64) : await right.toBuffer())
  const { status, body, headers } = await editing({
    image,
    mask: { image_url: mask },
    ...(mode === 'luma' ? { mask_mode: 'luma' } : {}),
  })
  expect([status, body.error]).toEqual([200, undefined])
  const id = headers.get('x-job-id')!
  const asked = await heard(id)
  expect(asked).toMatchObject({ task: 'slug/inpainting', strength: 1 })
  // The engine's name of the file is removed with its job; the file itself belongs to the organization.
  const stored = await readdir(join(app.dataDir, 'files'), { recursive: true })
  const kept = join(app.dataDir, 'files', stored.find(name => basename(name) === basename(asked.mask as string))!)
  expect(await sharp(kept).metadata()).toMatchObject({ format: 'png', channels: 1 })
  const data = await sharp(kept).extractChannel(0).raw().toBuffer()
  expect([data[0], data[63]]).toEqual(sides)
  const again = await ask(app, `/api/jobs/${id}/retry`, { method: 'POST', body: {} })
  expect(again.status).toBe(202)
  await expect.poll(async () => (await jobOf(again.body.id)).status).toBe('completed')
  const [one, other] = await Promise.all([heard(id), heard(again.body.id)])
  for (const each of [one, other]) for (const name of ['image', 'mask', 'folder']) delete each[name]
  expect(other).toEqual(one)
})

test('unusable images and masks are refused by name', async () => {
  const image = dataUrl(await picture(64, 64))
  const other = dataUrl(await halfMask(32, 64))
  const cases: [object, string, string][] = [
    [{}, 'missing_required_parameter', 'image'],
    [{ image: 'nothing' }, 'invalid_value', 'image'],
    [{ image: [image, image] }, 'array_above_max_length', 'image'],
    [{ prompt: '', image }, 'unsupported_parameter', 'prompt'],
    [{ images: [{}] }, 'invalid_value', 'images[0]'],
    [{ images: [{ file_id: 'file-1', image_url: image }] }, 'invalid_value', 'images[0]'],
    [{ image, mask: image }, 'invalid_image', 'mask'],
    [{ image, mask: other }, 'invalid_image', 'mask'],
    [{ image, mask: other, mask_mode: 'beta' }, 'invalid_value', 'mask_mode'],
    [{ image: dataUrl(Buffer.from('GIF89a')) }, 'invalid_image', 'image'],
    [{ model: 'plain', image, mask: dataUrl(await halfMask(64, 64)) }, 'unsupported_task', 'model'],
    [{ model: 'masked', image }, 'unsupported_task', 'model'],
    [{ model: 'solo', image }, 'unsupported_task', 'model'],
  ]
  for (const [body, code, param] of cases) expect((await editing(body)).body.error).toMatchObject({ code, param })
})

test('the derived tasks of a model follow from the tasks of its engine', async () => {
  const { data } = (await ask(app, '/v1/models')).body as { data: { id: string; tasks: string[] }[] }
  const own = (id: string) => data.find(model => model.id === id)!.tasks.filter(task => task.startsWith('std/image'))
  expect(own('painter')).toEqual(['std/image-generation', 'std/image-edit'])
  expect(own('solo')).toEqual(['std/image-generation'])
  expect(own('masked')).toEqual(['std/image-edit'])
  expect(own('talker')).toEqual([])
  const { models } = (await ask(app, '/api/model-status')).body
  expect(models.find((one: Json) => one.model_id === 'solo').tasks).toContain('std/image-generation')
})

test('a slow one: 504 with the ids, the caller must not repeat it, and it continues', async () => {
  const { status, body, headers } = await generate({ prompt: 'mode:slow,ms=60000' }, { prefer: 'wait=1' })
  expect([status, body.error.code, headers.get('x-should-retry')]).toEqual([504, 'timeout', 'false'])
  expect(headers.get('retry-after')).toBe('2')
  const { job_id, status_url } = body.error
  expect(status_url).toBe(`${app.url}/api/jobs/${job_id}`)
  expect((await jobOf(job_id)).status).toBe('processing')
  await ask(app, `/api/jobs/${job_id}/cancel`, { method: 'POST', body: {} })
})

test('a failed one has the status of its failure, one for a cold model is not kept', async () => {
  const failed = await generate({ prompt: 'mode:invalid,text=no' })
  expect([failed.status, failed.body.error.code]).toEqual([400, 'invalid_value'])
  const cold = await generate({ model: 'cold' })
  expect([cold.status, cold.body.error.code]).toEqual([503, 'model_warming_up'])
  expect(cold.body.error.message).toContain('respond-async')
  expect(await jobsOf('cold')).toEqual([])
})

test('a job with a key is kept: other callers know of it, or wait for it', async () => {
  const cold = { model: 'cold' }
  const told = { 'idempotency-key': 'told' }
  const { id } = (await generate(cold, { ...told, prefer: 'respond-async' })).body
  const joined = { 'idempotency-key': 'joined' }
  const [one, ...others] = await Promise.all([told, joined, joined].map(headers => generate(cold, headers)))
  expect(one!.body.error.job_id).toBe(id)
  expect(others[0]!.body.error.job_id).toBe(others[1]!.body.error.job_id)
  for (const { status, body, headers } of [one!, ...others]) {
    const { code, message, job_id, status_url } = body.error
    expect([status, code, status_url]).toEqual([503, 'model_warming_up', `${app.url}/api/jobs/${job_id}`])
    expect(message).toContain("with its 'Idempotency-Key'")
    expect(headers.get('x-job-id')).toBe(job_id)
    expect((await jobOf(job_id)).status).toBe('pending')
  }
  for (const job of await jobsOf('cold')) await ask(app, `/api/jobs/${job.id}/cancel`, { method: 'POST', body: {} })
})

test('a caller that disconnects cancels it, unless it has a key', async () => {
  const before = new Set((await jobsOf('painter')).map(({ id }) => id as string))
  const started = async (headers: Record<string, string>) => {
    const leave = new AbortController()
    const prompt = `mode:slow,ms=2000 ${JSON.stringify(headers)}`
    const asked = app
      .fetch('/v1/images/generations', { body: { ...small, prompt }, headers, signal: leave.signal })
      .catch(() => 'gone')
    const running = async () =>
      (await jobsOf('painter')).find(({ id, status }) => !before.has(id as string) && status === 'processing')
    const job = await vi.waitFor(async () => (await running()) ?? Promise.reject(new Error('not yet')), 20_000)
    leave.abort()
    expect(await asked).toBe('gone')
    before.add(job.id as string)
    return job.id as string
  }
  const lost = await started({})
  await expect.poll(async () => (await jobOf(lost)).status).toBe('cancelled')
  const key = { 'idempotency-key': 'again' }
  const kept = await started(key)
  const again = await generate({ prompt: `mode:slow,ms=2000 ${JSON.stringify(key)}` }, key)
  expect([again.status, again.headers.get('x-job-id'), again.headers.get('idempotent-replayed')]).toEqual([
    200,
    kept,
    'true',
  ])
})

test('a form under a key: the same form again is the same job, another one is refused', async () => {
  const image = blob(await picture(64, 64))
  const send = (prompt: string) =>
    sendForm(
      '/std/v1/images/edits',
      [
        ['model', 'painter'],
        ['prompt', prompt],
        ['image', image],
      ],
      { 'idempotency-key': 'form' },
    )
  const first = await send('a dog')
  const second = await send('a dog')
  expect(second.headers.get('x-job-id')).toBe(first.headers.get('x-job-id'))
  expect((await send('a bird')).body.error.code).toBe('idempotency_key_reused')
})

test('as a job: the fields are those of the endpoint, and errors name their path', async () => {
  const inputs = { prompt: 'a cat', size: '64x64', response_format: 'b64_json', stream: true }
  const made = await ask(app, '/api/jobs', { body: { task: 'std/image-generation', model_id: 'painter', inputs } })
  expect(made.status).toBe(202)
  await expect.poll(async () => (await jobOf(made.body.id)).status).toBe('completed')
  expect((await jobOf(made.body.id)).result.data[0].url).toContain('/files/')
  const wrong = await ask(app, '/api/jobs', {
    body: { task: 'std/image-edit', model_id: 'painter', inputs: { prompt: 'a cat' } },
  })
  expect(wrong.body.error).toMatchObject({ code: 'missing_required_parameter', param: 'inputs.image' })
})
