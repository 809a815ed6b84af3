import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
beforeAll(async () => {
  const painter = fakeModel('painter', [], { slug: 'fake/paint', tasks: ['slug/text-to-image', 'slug/text-to-video'] })
  app = await startApp({ models: [painter] })
})
afterAll(() => app[Symbol.asyncDispose]())

const small = { width: 64, height: 64, num_inference_steps: 2 }

async function submit(prompt: string, more: object = {}, task = 'slug/text-to-image'): Promise<string> {
  const response = await app.fetch('/api/jobs', {
    body: { model_id: 'painter', task, inputs: { prompt, ...small, ...more } },
  })
  expect(response.status).toBe(202)
  return ((await response.json()) as { id: string }).id
}
const read = async (id: string) => {
  const response = await app.fetch(`/api/jobs/${id}`)
  return (await response.json()) as { status: string; previews: number }
}
const preview = (id: string, query = '', options: { token?: string } = {}) =>
  app.fetch(`/api/jobs/${id}/preview${query}`, options)

test.each(['slug/text-to-image', 'slug/text-to-video'])(
  '%s: the newest unfinished image of a job that runs, as WebP',
  async task => {
    const id = await submit('mode:preview,then=wait', { previews: 2 }, task)
    await expect.poll(() => read(id)).toMatchObject({ status: 'processing', previews: 2 })
    const response = await preview(id)
    expect([response.status, response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      200,
      'image/webp',
      'no-store',
    ])
    const { format, width } = await sharp(Buffer.from(await response.arrayBuffer())).metadata()
    expect([format, width]).toEqual(['webp', 32])

    const { secret: token } = await makeOrganization(app)
    expect([(await preview(id, '', { token })).status, (await preview(id, '?image=1')).status]).toEqual([404, 204])
    expect((await preview(id, '?image=x')).status).toBe(400)
    expect((await preview(id, '?picture=1')).status).toBe(400)

    await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
    await expect.poll(() => read(id)).toMatchObject({ status: 'cancelled', previews: 0 })
    expect((await preview(id)).status).toBe(204)
  },
)

test('a request without previews has none, and bytes that are no image are not sent', async () => {
  const without = await submit('mode:preview,then=wait')
  await expect.poll(async () => (await read(without)).status).toBe('processing')
  expect((await preview(without)).status).toBe(204)
  const broken = await submit('mode:broken-preview', { previews: 1 })
  expect((await preview(broken)).status).toBe(204)
  expect((await (await app.fetch(`/api/jobs/${broken}?wait=30`)).json()) as object).toMatchObject({
    status: 'completed',
    previews: 0,
    inputs: { previews: 1 },
  })
  await app.fetch(`/api/jobs/${without}/cancel`, { method: 'POST' })
})

test('more than three are refused by name', async () => {
  const response = await app.fetch('/slug/fake/paint/text-to-image', { body: { prompt: 'a cat', previews: 4 } })
  expect([response.status, ((await response.json()) as { error: { param: string } }).error.param]).toEqual([
    400,
    'previews',
  ])
})
