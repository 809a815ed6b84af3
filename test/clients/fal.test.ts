import { createHash } from 'node:crypto'
import { createFalClient, type FalClient, type QueueStatus, ValidationError } from '@fal-ai/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

let app: TestApp
const slug = 'acme/dream/text-to-image'
beforeAll(async () => {
  const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/text-to-video']
  app = await startApp({
    models: [fakeModel('acme/dream', [], { tasks, concurrency: 2 })],
    limits: { sync_wait: '30s' },
  })
})
afterAll(() => app[Symbol.asyncDispose]())

/** fal's hosts, reachable here for a client that rewrites addresses. */
const rewritten = (url: string) =>
  url
    .replace('https://queue.fal.run', `${app.url}/fal/queue`)
    .replace('https://fal.run', `${app.url}/fal/run`)
    .replace('https://rest.fal.ai', `${app.url}/fal/rest`)

/** The official client, in each way of pointing it at another server. */
const ways: Record<string, (credentials?: string) => FalClient> = {
  'through proxyUrl': (credentials = app.secret) =>
    createFalClient({ credentials, proxyUrl: { url: `${app.url}/fal/proxy`, when: 'always' } }),
  'with its hosts rewritten by a middleware': (credentials = app.secret) =>
    createFalClient({
      credentials,
      requestMiddleware: request => Promise.resolve({ ...request, url: rewritten(request.url) }),
    }),
  'with its hosts rewritten by fetch': (credentials = app.secret) =>
    createFalClient({ credentials, fetch: (url, init) => fetch(rewritten(url as string), init) }),
}

interface Pictures {
  images: { url: string; width: number; height: number; content_type: string; file_size: number }[]
  seed: number
  prompt: string
}

const size = { width: 64, height: 64 }
async function read(url: string): Promise<Buffer> {
  const response = await fetch(url)
  expect(response.status).toBe(200)
  return Buffer.from(await response.arrayBuffer())
}
const png = Buffer.from('89504e470d0a1a0a', 'hex')

describe.each(Object.keys(ways))('fal’s client %s', way => {
  const client = (credentials?: string) => ways[way]!(credentials)

  test('subscribe by polling: reports the progress of the request and gets the image', async () => {
    const updates: QueueStatus[] = []
    const enqueued: string[] = []
    const result = await client().subscribe(slug, {
      input: { prompt: 'a cat mode:slow,ms=900,steps=3', image_size: size, seed: 7 },
      logs: true,
      pollInterval: 100,
      onEnqueue: id => enqueued.push(id),
      onQueueUpdate: update => updates.push(update),
    })
    const { images, seed, prompt } = result.data as Pictures
    expect([seed, prompt]).toEqual([7, expect.stringContaining('a cat')])
    expect(images).toMatchObject([{ ...size, content_type: 'image/png' }])
    const bytes = await read(images[0]!.url)
    expect(bytes.subarray(0, 8).equals(png)).toBe(true)
    expect(bytes.length).toBe(images[0]!.file_size)
    expect(result.requestId).toMatch(/^q_/)
    expect(enqueued).toEqual([result.requestId])
    expect(new Set(updates.map(({ status }) => status))).toContain('IN_PROGRESS')
    const last = updates.at(-1)!
    expect(last).toMatchObject({ status: 'COMPLETED', request_id: result.requestId })
    const messages = 'logs' in last ? last.logs.map(({ message }) => message) : []
    expect(messages).toEqual(expect.arrayContaining(['step 1/3', 'step 2/3', 'step 3/3']))
    // The message of an engine is passed on unchanged, without its internal details.
    expect(Object.keys(result.data as object).filter(name => /request_id|status/.test(name))).toEqual([])
  })

  test('subscribe by streaming: every log line once', async () => {
    const updates: QueueStatus[] = []
    const result = await client().subscribe(slug, {
      input: { prompt: 'a cat mode:slow,ms=900,steps=3', image_size: size },
      mode: 'streaming',
      logs: true,
      onQueueUpdate: update => updates.push(structuredClone(update)),
    })
    expect((result.data as Pictures).images).toHaveLength(1)
    const last = updates.at(-1)!
    expect(last.status).toBe('COMPLETED')
    const messages = 'logs' in last ? last.logs.map(({ message }) => message) : []
    expect(messages.filter(message => message.startsWith('step'))).toEqual(['step 1/3', 'step 2/3', 'step 3/3'])
  })

  test('run waits for the image', async () => {
    const { data, requestId } = await client().run(slug, { input: { prompt: 'a cat', image_size: size } })
    expect((data as Pictures).images).toHaveLength(1)
    expect(requestId).toMatch(/^q_/)
  })

  test('stream reports progress, then the result', async () => {
    const stream = await client().stream(slug, {
      input: { prompt: 'a cat mode:slow,ms=900,steps=3', image_size: size },
    })
    const seen: { progress?: number }[] = []
    stream.on('data', one => seen.push(one as { progress?: number }))
    const last = (await stream.done()) as unknown as Pictures
    expect(last.images).toHaveLength(1)
    expect(seen.some(({ progress = 0 }) => progress > 0 && progress < 1)).toBe(true)
  })

  test('cancel: the request ends, and the error gives the reason why it has no result', async () => {
    const fal = client()
    const { request_id: requestId } = await fal.queue.submit(slug, {
      input: { prompt: 'a cat mode:hang', image_size: size },
    })
    const status = () => fal.queue.status(slug, { requestId })
    await expect.poll(async () => (await status()).status).toBe('IN_PROGRESS')
    await expect(fal.queue.result(slug, { requestId })).rejects.toMatchObject({
      status: 400,
      body: { detail: 'Request is still in progress' },
    })
    await fal.queue.cancel(slug, { requestId })
    expect(await status()).toMatchObject({
      status: 'COMPLETED',
      error: expect.stringContaining('cancelled') as string,
      error_type: 'client_cancelled',
    })
    await expect(fal.queue.result(slug, { requestId })).rejects.toMatchObject({ status: 499, requestId })
  })

  test('an invalid field is a ValidationError that names it', async () => {
    const wrong = client().subscribe(slug, { input: { prompt: 'a cat', num_inference_steps: 500, guidance_scale: 0 } })
    await expect(wrong).rejects.toBeInstanceOf(ValidationError)
    await wrong.catch((error: ValidationError) => {
      expect(error.status).toBe(422)
      expect(error.getFieldErrors('num_inference_steps')).toEqual([
        {
          loc: ['body', 'num_inference_steps'],
          msg: 'Input should be less than or equal to 50',
          type: 'less_than_equal',
          ctx: { le: 50 },
          input: 500,
        },
      ])
      expect(error.getFieldErrors('guidance_scale')).toMatchObject([{ ctx: { ge: 1 } }])
    })
  })

  test('an image is uploaded, read and used as an input; an image in the input is uploaded automatically', async () => {
    const fal = client()
    const { data } = await fal.run(slug, { input: { prompt: 'a cat', image_size: size } })
    const bytes = await read((data as Pictures).images[0]!.url)
    const url = await fal.storage.upload(new File([new Uint8Array(bytes)], 'cat.png', { type: 'image/png' }))
    expect(url).toMatch(/\/files\/file-\w+\/cat\.png\?exp=/)
    expect((await read(url)).equals(bytes)).toBe(true)
    for (const image_url of [url, new Blob([new Uint8Array(bytes)], { type: 'image/png' })]) {
      const edited = await fal.subscribe('acme/dream/image-to-image', {
        input: { prompt: 'a dog', image_url, image_size: size },
        pollInterval: 50,
      })
      expect((edited.data as Pictures).images).toHaveLength(1)
    }
  })

  test('a failed engine is one error of the result, with the error type of fal', async () => {
    const fal = client()
    const failed = fal.subscribe(slug, { input: { prompt: 'a cat mode:invalid', image_size: size }, pollInterval: 50 })
    await expect(failed).rejects.toMatchObject({ status: 422 })
    await expect(fal.run('acme/nothing', { input: { prompt: 'a cat' } })).rejects.toMatchObject({
      status: 404,
      body: { error: { code: 'model_not_found' } },
    })
  })

  test('an invalid key is refused', async () => {
    await expect(client('sk-infer-wrong').run(slug, { input: { prompt: 'a cat' } })).rejects.toMatchObject({
      status: 401,
    })
  })
})

test('a file that the client uploads in parts arrives whole', async () => {
  const bytes = Buffer.alloc((90 << 20) + 12_345)
  for (let at = 0; at < bytes.length; at += 4093) bytes[at] = at % 251
  const url = await ways['through proxyUrl']!().storage.upload(new File([bytes], 'film.mp4', { type: 'video/mp4' }))
  const response = await fetch(url)
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  const hash = (of: Uint8Array) => createHash('sha256').update(of).digest('hex')
  expect(hash(new Uint8Array(await response.arrayBuffer()))).toBe(hash(bytes))
  expect(response.headers.get('etag')).toBe(`"${hash(bytes)}"`)
})
