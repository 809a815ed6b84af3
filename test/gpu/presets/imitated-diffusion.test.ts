import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeNeeds, startApp, type TestApp, workspacesIn } from '../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../fixtures/nvidia-smi.ts'

/**
 * vLLM-Omni and SGLang-Diffusion, which cannot run here, started by the real launcher with the commands of their presets.
 * Their programs are imitated by `test/fixtures/diffusion-engine.ts`.
 */
const engines = ['vllm-omni', 'sglang-diffusion'] as const
const faults = ['', 'option', 'memory', 'failed', 'refused', 'endless']
const tasks = ['slug/text-to-image', 'slug/image-to-image', 'slug/text-to-video', 'slug/image-to-video']
const inputs = { prompt: 'a cat', width: 64, height: 64, num_inference_steps: 4, seed: 7 }
const video = { ...inputs, num_frames: 9, fps: 8 }
const image_url = `data:image/png;base64,${(
  await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
    .png()
    .toBuffer()
).toString('base64')}`

let app: TestApp
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const path = process.env.PATH

beforeAll(async () => {
  const fixture = join(import.meta.dirname, '../../fixtures/diffusion-engine.ts')
  for (const program of ['vllm', 'sglang']) {
    writeFileSync(join(bin, program), `#!/bin/sh\nexec '${process.execPath}' '${fixture}' ${program} "$@"\n`)
    chmodSync(join(bin, program), 0o755)
  }
  installNvidiaSmi(bin, { cards: `echo '${cardLine()}'` })
  process.env.PATH = `${bin}:${path}`
  app = await startApp({
    limits: { cancel_grace: '10s' },
    models: [
      {
        id: 'openai',
        engine: 'custom',
        protocol: 'openai',
        command: [process.execPath, fixture, 'vllm', 'serve', 'm', '--served-model-name', 'openai', '--port', '{port}'],
        tasks: ['slug/inpainting'],
        memory: '16MiB',
        devices: 'cpu',
        stop_grace: '500ms',
        ...fakeNeeds,
      },
      ...engines.flatMap(engine =>
        faults.map(fault => ({
          id: `${engine}${fault}`,
          engine,
          tasks,
          source: '/models/m',
          memory: '16MiB',
          stop_grace: '500ms',
          ...fakeNeeds,
          ...(fault === 'option' ? { args: ['--unknown', '1'] } : fault ? { env: { FAKE_FAULT: fault } } : {}),
        })),
      ),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

// oxlint-disable-next-line no-explicit-any
type Json = any
const ask = async (route: string, body?: object): Promise<Json> => (await app.fetch(route, body ? { body } : {})).json()
async function submit(model_id: string, task: string, more: object): Promise<string> {
  const { id, error } = await ask('/api/jobs', { task: `slug/${task}`, model_id, inputs: more, max_attempts: 1 })
  expect(error).toBeUndefined()
  return id as string
}
async function ended(id: string): Promise<Json> {
  for (;;) {
    const job = await ask(`/api/jobs/${id}?wait=20`)
    if (['completed', 'failed', 'cancelled'].includes(job.status as string)) return job
  }
}
const run = async (...call: Parameters<typeof submit>): Promise<Json> => ended(await submit(...call))

describe.each(engines)('%s', engine => {
  test.each<[task: string, more: object]>([
    ['text-to-image', { ...inputs, num_images: 2 }],
    ['image-to-image', { ...inputs, image_url }],
  ])('%s', async (task, more) => {
    const { error, result } = await run(engine, task, more)
    expect(error).toBeNull()
    expect(result.images).toHaveLength(task === 'text-to-image' ? 2 : 1)
    expect(result.images[0]).toMatchObject({ content_type: 'image/png', width: 64, height: 64 })
  })
  test.each<[task: string, more: object]>([
    ['text-to-video', video],
    ['image-to-video', { ...video, image_url }],
  ])('%s', async (task, more) => {
    const { error, result } = await run(engine, task, more)
    expect(error).toBeNull()
    expect(result.video).toMatchObject({ content_type: 'video/mp4', width: 64, height: 64, num_frames: 9 })
  })
  test('nothing of a finished job stays in the folders of the engine', async () => {
    await run(engine, 'text-to-video', video)
    await expect.poll(() => workspacesIn(app.dataDir)).toEqual([])
    const left = readdirSync(app.dataDir, { recursive: true, encoding: 'utf8' }).filter(name =>
      /^(work|home)\/.*\.(mp4|png)$/.test(name),
    )
    expect(left).toEqual([])
  })
  test('a task without a route is refused by name', async () => {
    const { error } = await ask('/api/jobs', {
      task: 'slug/inpainting',
      model_id: engine,
      inputs: { ...inputs, image_url, mask_url: image_url },
    })
    expect(error.message).toMatch(/inpainting/)
  })
  test('out of memory reaches the caller as such', async () => {
    const failed = await run(`${engine}failed`, 'text-to-video', video)
    expect(failed.error).toMatchObject({
      code: 'worker_error',
      message: expect.stringMatching(/out of memory/) as string,
    })
    const { error } = await run(`${engine}failed`, 'text-to-image', inputs)
    expect(error.code).toBe('worker_error')
  })
  test('a refusal reaches the caller with the message of the engine', async () => {
    const refused = await run(`${engine}refused`, 'text-to-video', video)
    expect(refused.error).toMatchObject({ code: 'invalid_value', message: expect.stringMatching(/4n \+ 1/) as string })
    const { error } = await run(`${engine}refused`, 'text-to-image', inputs)
    expect(error).toMatchObject({ code: 'invalid_value', message: expect.stringMatching(/WIDTHxHEIGHT/) as string })
  })
  test('the slot of a cancelled video is free when the work has ended', async () => {
    const id = await submit(`${engine}endless`, 'text-to-video', video)
    const logs = async () => JSON.stringify(await ask(`/api/system/logs?model=${engine}endless&lines=500`))
    await expect.poll(logs).toContain('Created ')
    const next = await submit(`${engine}endless`, 'text-to-image', inputs)
    await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
    expect((await ended(id)).status).toBe('cancelled')
    expect((await ended(next)).error).toBeNull()
    // SGLang cannot stop its work, so nothing is deleted before its end.
    expect(await logs()).toMatch(engine === 'vllm-omni' ? /Deleted video_gen_0 (queued|in_progress)/ : /Ended 0-uuid/)
  })
  test.each([
    ['memory', /Engine exited \(1\): out of memory/],
    ['option', /Engine exited \(2\): its arguments are wrong/],
  ])('why it could not load is said: %s', async (fault, why) => {
    await submit(`${engine}${fault}`, 'text-to-image', inputs)
    const model = async () => JSON.stringify(await ask(`/api/models/${engine}${fault}`))
    await expect.poll(model).toMatch(why)
  })
})

test('a mask reaches the route of OpenAI as RGBA in the size of the image', async () => {
  const mask = sharp({ create: { width: 32, height: 16, channels: 3, background: 'white' } })
  const mask_url = `data:image/png;base64,${(await mask.png().toBuffer()).toString('base64')}`
  const { error, result } = await run('openai', 'inpainting', { ...inputs, image_url, mask_url })
  expect(error).toBeNull()
  expect(result.images[0]).toMatchObject({ width: 64, height: 64 })
  const logs = JSON.stringify(await ask('/api/system/logs?model=openai&lines=100'))
  expect(logs).toContain('Mask 64x64 type 6 for 64x64 type 2')
})
