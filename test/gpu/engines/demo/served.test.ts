import { createHash } from 'node:crypto'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generationTasks } from '../../../../core/schemas/task.ts'
import { fakeNeeds, startApp, type TestApp } from '../../../_app.ts'
import { hasFfmpeg } from '../../../_ffmpeg.ts'
import { builtProgram } from '../../../_fixtures.ts'

/** Through the whole server: the preset, the protocol as infer speaks it, and the error that the caller gets. */
let app: TestApp
beforeAll(async () => {
  const tasks = [...generationTasks]
  app = await startApp({
    models: [
      { id: 'drawn', engine: 'demo', tasks, args: ['--step-ms', '0'] },
      {
        id: 'own',
        engine: 'custom',
        command: [process.execPath, builtProgram, 'engine', 'demo', '--step-ms', '0', '--port', '{port}'],
        ...fakeNeeds,
        tasks: ['slug/text-to-image'],
        memory: '64MiB',
        devices: 'cpu',
      },
      { id: 'without', engine: 'demo', tasks, args: ['--ffmpeg', '/nowhere/ffmpeg'] },
      { id: 'slow', engine: 'demo', tasks, args: ['--step-ms', '60000'], concurrency: 1 },
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

type Json = { [key: string]: any } // oxlint-disable-line typescript/no-explicit-any -- answers are looked into freely
const post = async (path: string, body: object) => {
  const response = await app.fetch(path, { body })
  return { status: response.status, body: (await response.json()) as Json }
}
const generationRequest = { prompt: 'a cat', seed: 5, image_size: { width: 320, height: 192 }, sync_mode: true }

test('the preset and a configured command make the same image', async () => {
  const sums = []
  for (const model of ['drawn', 'own']) {
    const { status, body } = await post(`/slug/${model}/text-to-image`, generationRequest)
    expect([status, body.status, body.seed_used]).toEqual([200, 'completed', 5])
    const bytes = Buffer.from(await (await fetch(body.images[0].url as string)).arrayBuffer())
    expect(await sharp(bytes).metadata()).toMatchObject({ format: 'png', width: 320, height: 192 })
    sums.push(createHash('sha256').update(bytes).digest('hex'))
  }
  expect(sums[0]).toBe(sums[1])
})

test('without ffmpeg a video fails at once with what to install', async () => {
  const { body } = await post('/slug/without/text-to-video', { prompt: 'a cat', sync_mode: true })
  expect(body.error).toMatchObject({ code: 'no_capacity', message: expect.stringContaining('apt install ffmpeg') })
})

test('a cancelled request frees its slot for the next', async ({ skip }) => {
  skip(!hasFfmpeg)
  const first = await post('/slug/slow/text-to-video', { prompt: 'one' })
  const state = async (id: string) => (await (await app.fetch(`/slug/requests/${id}/status`)).json()) as Json
  await expect.poll(() => state(first.body.request_id as string)).toMatchObject({ status: 'IN_PROGRESS' })
  const next = await post('/slug/slow/text-to-video', { prompt: 'two' })
  await app.fetch(`/slug/requests/${String(first.body.request_id)}/cancel`, { method: 'POST' })
  await expect.poll(() => state(next.body.request_id as string)).toMatchObject({ status: 'IN_PROGRESS' })
  await app.fetch(`/slug/requests/${String(next.body.request_id)}/cancel`, { method: 'POST' })
})
