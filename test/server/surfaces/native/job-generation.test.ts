import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { openReader } from '../../_sse.ts'

interface Job {
  id: string
  status: string
  slug: string | null
  task: string
  inputs: Record<string, unknown>
  result: { images: { url: string; width: number; height: number }[]; seed_used: number; thumbnail_url?: string }
  error: { code: string; message: string; param: string } | null
}

let app: TestApp
const painter = fakeModel('painter', [], {
  slug: 'fake/paint',
  tasks: ['slug/text-to-image', 'slug/image-to-image'],
})
beforeAll(async () => void (app = await startApp({ models: [painter, fakeModel('words')] })))
afterAll(() => app[Symbol.asyncDispose]())

const small = { width: 128, height: 96, num_inference_steps: 2 }
const slug = 'fake/paint/text-to-image'

async function ask(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { method, body, headers })
  return { status: response.status, headers: response.headers, body: (await response.json()) as Job }
}
async function submit(body: object, headers?: Record<string, string>): Promise<string> {
  const made = await ask('POST', '/api/jobs', body, headers)
  expect([made.status, made.body.error]).toEqual([202, undefined])
  return made.body.id
}
const end = async (id: string) => (await ask('GET', `/api/jobs/${id}?wait=60`)).body

describe('a job that generates an image', () => {
  test.each<[string, object]>([
    ['a slug', { slug, inputs: { prompt: 'a cat', seed: 7, ...small } }],
    [
      'a model and a task',
      { model_id: 'painter', task: 'slug/text-to-image', inputs: { prompt: 'a cat', seed: 7, ...small } },
    ],
    [
      'both, where they agree',
      { slug, model: 'painter', task: 'slug/text-to-image', input: { prompt: 'a cat', seed: 7, ...small } },
    ],
  ])('by %s: its result has addresses that work', async (by, body) => {
    const job = await end(await submit(body))
    expect(job).toMatchObject({
      status: 'completed',
      task: 'slug/text-to-image',
      model_id: 'painter',
      slug: by === 'a model and a task' ? null : slug,
      inputs: { prompt: 'a cat', seed: 7, width: 128, height: 96 },
      result: { seed_used: 7, images: [{ width: 128, height: 96, content_type: 'image/png' }] },
    })
    const { url } = job.result.images[0]!
    expect(url.startsWith(`${app.url}/files/`)).toBe(true)
    const picture = await fetch(url)
    expect(picture.status).toBe(200)
    const { width, height } = await sharp(Buffer.from(await picture.arrayBuffer())).metadata()
    expect([width, height]).toEqual([128, 96])
  })

  test.each<[string, object, number, string, string]>([
    ['a slug that says another task', { slug, task: 'slug/text-to-video' }, 400, 'invalid_value', 'slug'],
    ['a slug of another model', { slug, model_id: 'words' }, 400, 'invalid_value', 'slug'],
    ['no prompt', { slug, inputs: {} }, 400, 'missing_required_parameter', 'inputs.prompt'],
    [
      'too many steps, by another name',
      { slug, inputs: undefined, payload: { prompt: 'a', num_inference_steps: 51 } },
      400,
      'invalid_value',
      'payload.num_inference_steps',
    ],
    [
      'a task that its model has not',
      { task: 'slug/text-to-video', model_id: 'painter' },
      400,
      'unsupported_task',
      'model_id',
    ],
    ['a text model', { task: 'slug/text-to-image', model_id: 'words' }, 400, 'unsupported_task', 'model_id'],
    [
      'a picture that is none',
      { slug: 'fake/paint/image-to-image', inputs: { prompt: 'a', image_url: 'data:image/png;base64,AAAA' } },
      400,
      'invalid_image',
      'inputs.image_url',
    ],
    [
      'a picture that is not there',
      { slug: 'fake/paint/image-to-image', inputs: { prompt: 'a', image_url: newId('file') } },
      404,
      'not_found',
      'inputs.image_url',
    ],
  ])('is refused for %s', async (_, change, status, code, param) => {
    const refused = await ask('POST', '/api/jobs', { inputs: { prompt: 'a cat', ...small }, ...change })
    expect([refused.status, refused.body.error?.code, refused.body.error?.param]).toEqual([status, code, param])
  })

  test('reports its progress while it is followed, and keeps its log', async () => {
    const id = await submit({ slug, inputs: { prompt: 'mode:slow,ms=600,steps=6', ...small } })
    using reader = await openReader(app, `/api/jobs/${id}/events`)
    const records = await reader.whole()
    const told = records.filter(({ event }) => event === 'job.progress')
    const progress = told.map(({ data }) => data.data.progress).filter(value => value !== null) as number[]
    expect(progress.length).toBeGreaterThanOrEqual(3)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(told.every(record => record.id === undefined)).toBe(true)
    expect(records.at(-1)).toMatchObject({
      event: 'job.completed',
      data: { data: { slug, result: { images: [{ url: expect.stringContaining('/files/') }] } } },
    })
    const { logs } = (await (await app.fetch(`/api/jobs/${id}/logs`)).json()) as { logs: Record<string, string>[] }
    expect(logs.filter(({ message }) => message!.startsWith('step '))).toEqual(
      Array.from({ length: 6 }, (_, at) => ({
        timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
        level: 'INFO',
        message: `step ${at + 1}/6`,
        source: 'USER',
      })),
    )
  })

  test('is deleted with its files', async () => {
    const job = await end(await submit({ slug, inputs: { prompt: 'a cat', ...small } }))
    const { url } = job.result.images[0]!
    expect((await fetch(url)).status).toBe(200)
    expect((await ask('DELETE', `/api/jobs/${job.id}`)).status).toBe(200)
    expect((await fetch(url)).status).toBe(410)
  })

  test('can be repeated: the same image under other addresses', async () => {
    const picture = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const image_url = `data:image/png;base64,${picture.toString('base64')}`
    const first = await end(
      await submit({ slug: 'fake/paint/image-to-image', inputs: { prompt: 'a cat', seed: 3, image_url } }),
    )
    expect(first.status).toBe('completed')
    const again = await ask('POST', `/api/jobs/${first.id}/retry`)
    expect(again.status).toBe(202)
    // The input files of the first job are removed with it.
    await ask('DELETE', `/api/jobs/${first.id}`)
    const second = await end(again.body.id)
    expect(second).toMatchObject({ status: 'completed', slug: first.slug, result: { seed_used: 3 } })
    expect(second.inputs).toEqual({ ...first.inputs, image: expect.stringMatching(/^file-/) })
    expect(second.inputs.image).not.toBe(first.inputs.image)
  })
})

test('the same request under the same key finds its job, though its input files are removed', async () => {
  const first = await end(await submit({ slug, inputs: { prompt: 'a cat', ...small } }))
  const { url } = first.result.images[0]!
  for (const path of ['/api/jobs', '/slug/fake/paint/image-to-image']) {
    const inputs = { prompt: 'a dog', image_url: url }
    const body = path === '/api/jobs' ? { slug: 'fake/paint/image-to-image', inputs } : inputs
    const key = { 'idempotency-key': newId('req') }
    const made = await ask('POST', path, body, key)
    expect([made.status, made.headers.get('idempotent-replayed')]).toEqual([202, null])
    if (path !== '/api/jobs') await ask('DELETE', `/api/jobs/${first.id}`)
    const again = await ask('POST', path, body, key)
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([202, 'true'])
    expect(again.headers.get('x-job-id')).toBe(made.headers.get('x-job-id'))
  }
  expect((await fetch(url)).status).toBe(410)
})

describe('an image of megabytes inside the request', () => {
  /** Noise does not compress: the file has about the requested number of bytes. */
  async function noise(megabytes: number): Promise<string> {
    const side = Math.ceil(Math.sqrt((megabytes * (1 << 20)) / 3))
    const create = { width: side, height: side, channels: 3 as const, background: 'grey' }
    const noisy = { ...create, noise: { type: 'gaussian' as const, mean: 128, sigma: 80 } }
    const bytes = await sharp({ create: noisy }).png({ compressionLevel: 0 }).toBuffer()
    return `data:image/png;base64,${bytes.toString('base64')}`
  }
  const generationRequest = (image_url: string) => ({
    slug: 'fake/paint/image-to-image',
    inputs: { prompt: 'a cat', image_url, width: 128, height: 96 },
  })

  test('is accepted, and so is the same request again under its key', async () => {
    const body = generationRequest(await noise(8))
    expect(JSON.stringify(body).length).toBeGreaterThan(8 << 20)
    const key = { 'idempotency-key': newId('req') }
    const id = await submit(body, key)
    const job = await end(id)
    expect([job.status, job.inputs.image]).toEqual(['completed', expect.stringMatching(/^file-/)])
    expect(JSON.stringify(job.inputs).length).toBeLessThan(2_000)
    expect(await submit(body, key)).toBe(id)
    const other = await ask('POST', '/api/jobs', generationRequest(await noise(7)), key)
    expect([other.status, other.body.error?.code]).toEqual([422, 'idempotency_key_reused'])
  })

  test.each<[string, string, number, string]>([
    ['too large a picture', 'data:image/png;base64,' + 'A'.repeat(16 << 20), 400, 'invalid_image'],
    ['what is not base64', `data:image/png;base64,${'!'.repeat(2 << 20)}`, 400, 'invalid_value'],
    ['what is no picture', 'data:image/png;base64,' + 'A'.repeat(4 << 20), 400, 'invalid_image'],
    ['more than is read at all', 'data:image/png;base64,' + 'A'.repeat(33 << 20), 413, 'payload_too_large'],
  ])('is refused: %s', async (_, image_url, status, code) => {
    const refused = await ask('POST', '/api/jobs', generationRequest(image_url))
    expect([refused.status, refused.body.error?.code]).toEqual([status, code])
  })

  test('cannot be an input of a text task', async () => {
    const image = await noise(3)
    const content = [{ type: 'image_url', image_url: { url: image } }]
    const refused = await ask('POST', '/api/jobs', {
      task: 'std/chat-completion',
      model_id: 'words',
      inputs: { messages: [{ role: 'user', content }] },
    })
    expect([refused.status, refused.body.error?.code]).toEqual([413, 'payload_too_large'])
  })
})
