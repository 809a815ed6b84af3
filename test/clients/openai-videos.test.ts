import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('film', [], { tasks: ['slug/text-to-video', 'slug/image-to-video'] })] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const size = '256x128' as never
const request = { model: 'film', prompt: 'A cat', seconds: '1' as never, size }

async function ended(id: string) {
  let video = await client.videos.retrieve(id)
  await expect.poll(async () => (video = await client.videos.retrieve(id)).status).toMatch(/completed|failed/)
  return video
}

test('create, retrieve, list, download and delete', async () => {
  const created = await client.videos.create(request)
  expect(created).toMatchObject({
    object: 'video',
    model: 'film',
    prompt: 'A cat',
    size: '256x128',
    seconds: '1',
    error: null,
  })
  const pixel = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC',
    'base64',
  )
  const other = await client.videos.create({ ...request, input_reference: await toFile(pixel, 'a.png') })
  for (const { id } of [created, other])
    expect(await ended(id)).toMatchObject({
      status: 'completed',
      progress: 100,
      completed_at: expect.any(Number) as unknown,
    })
  const listed: string[] = []
  for await (const { id } of client.videos.list({ limit: 1 })) listed.push(id)
  expect(listed).toEqual([other.id, created.id])
  const answer = await client.videos.downloadContent(created.id)
  expect([answer.headers.get('content-type'), (await answer.arrayBuffer()).byteLength > 0]).toEqual(['video/mp4', true])
  expect(await client.videos.delete(created.id)).toEqual({ id: created.id, object: 'video.deleted', deleted: true })
  await expect(client.videos.retrieve(created.id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
})

test('refusals', async () => {
  await expect(client.videos.create({ ...request, size: 'huge' as never })).rejects.toMatchObject({
    status: 400,
    param: 'size',
  })
  await expect(client.videos.remix('video_1', { prompt: 'a' })).rejects.toThrow('Remixes are not supported')
  await expect(client.videos.retrieve('video_1')).rejects.toMatchObject({ status: 404 })
})
