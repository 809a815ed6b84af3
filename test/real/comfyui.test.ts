import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** ComfyUI itself on the processor, with graphs that need no model: see README.md of this folder. */
const folder = process.env.INFER_REAL_COMFYUI ?? ''
const python = process.env.INFER_REAL_COMFYUI_PYTHON ?? join(folder, 'venv', 'bin', 'python')
/** Folders besides, where the environment of Python has parts elsewhere. */
const reads = (process.env.INFER_REAL_COMFYUI_READ ?? '').split(':').filter(Boolean)
const graphs = join(import.meta.dirname, 'comfyui')

describe.skipIf(folder === '')('ComfyUI', () => {
  let app: TestApp
  let picture: Buffer
  const nodes = mkdtempSync(join(tmpdir(), 'infer-comfyui-'))

  beforeAll(async () => {
    picture = await sharp({ create: { width: 48, height: 32, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const extra = join(nodes, 'extra.yaml')
    writeFileSync(extra, `test:\n  base_path: ${graphs}\n  custom_nodes: .\n`)
    const model = (name: string, inputs: object, more: object = {}) => ({
      id: name,
      engine: 'comfyui',
      command: [python, join(folder, 'main.py')],
      args: ['--extra-model-paths-config', extra],
      env: { OMP_NUM_THREADS: '2' },
      sandbox_read: [graphs, nodes, ...reads],
      devices: 'cpu',
      memory: '2GiB',
      source: join(graphs, `${name}.json`),
      tasks: [`slug/${name}`],
      comfyui: { inputs },
      ...more,
    })
    const size = { width: '1.inputs.width', height: '1.inputs.height' }
    app = await startApp({
      models: [
        model('text-to-image', {
          prompt: '3.inputs.text',
          seed: '3.inputs.seed',
          num_inference_steps: '3.inputs.steps',
          num_images: '1.inputs.batch_size',
          ...size,
        }),
        model('image-to-image', { image: '10.inputs.image', width: '11.inputs.width', height: '11.inputs.height' }),
        model('text-to-video', { prompt: '3.inputs.text', fps: '5.inputs.fps', num_frames: '1.inputs.batch_size' }),
      ],
    })
  })
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]()
    rmSync(nodes, { recursive: true, force: true })
  })

  // oxlint-disable-next-line no-explicit-any
  type Json = any
  const run = async (model: string, body: object): Promise<Json> => {
    const response = await app.fetch(`/slug/${model}/${model}`, { body })
    const queued = (await response.json()) as Json
    expect([response.status, queued]).toEqual([202, expect.anything()])
    return queued.request_id as string
  }
  const statusOf = async (id: string): Promise<Json> => (await app.fetch(`/slug/requests/${id}/status?logs=1`)).json()
  const ended = (id: string, status: string): Promise<Json> =>
    vi.waitFor(
      async () => {
        const body = await statusOf(id)
        expect(body).toMatchObject({ status })
        return body
      },
      { timeout: 40_000, interval: 50 },
    )
  const resultOf = async (id: string): Promise<Json> => (await app.fetch(`/slug/requests/${id}`)).json()

  test('a text becomes images of the requested size, format and number', { timeout: 240_000 }, async () => {
    const body = {
      prompt: 'a cat',
      image_size: { width: 128, height: 64 },
      seed: 7,
      num_images: 2,
      output_format: 'webp',
    }
    const first = await run('text-to-image', body)
    await ended(first, 'COMPLETED')
    const result = await resultOf(first)
    expect(result).toMatchObject({ seed: 7, images: [{ width: 128, height: 64, content_type: 'image/webp' }, {}] })
    const bytes = Buffer.from(await (await fetch(result.images[0].url)).arrayBuffer())
    expect(bytes.toString('latin1', 8, 12)).toBe('WEBP')
    // The same again: ComfyUI has everything in its cache but the files, which were removed with the first job.
    const again = await run('text-to-image', body)
    await ended(again, 'COMPLETED')
    const copy = await resultOf(again)
    expect(Buffer.from(await (await fetch(copy.images[0].url)).arrayBuffer()).equals(bytes)).toBe(true)
  })

  test('progress and previews come over the WebSocket', { timeout: 240_000 }, async () => {
    const response = await app.fetch('/std/v1/images/generations', {
      body: { model: 'text-to-image', prompt: 'a cat', size: '64x64', stream: true, partial_images: 2 },
    })
    const text = await response.text()
    expect([text.slice(0, 600), text.match(/event: image_generation.partial_image/g)?.length]).toEqual([
      expect.any(String),
      2,
    ])
    expect(text).toContain('event: image_generation.completed')
  })

  test('a cancelled job stops in the middle, and the next one runs', { timeout: 240_000 }, async () => {
    const long = await run('text-to-image', { prompt: 'a cat', num_inference_steps: 50, seed: 1, num_images: 1 })
    await vi.waitFor(async () => expect((await statusOf(long)).progress ?? 0).toBeGreaterThan(0.1), { timeout: 60_000 })
    const cancelled = await app.fetch(`/slug/requests/${long}/cancel`, { method: 'PUT' })
    expect(cancelled.status).toBeLessThan(300)
    const began = performance.now()
    const next = await run('text-to-image', { prompt: 'a dog', seed: 2, num_inference_steps: 1 })
    await ended(next, 'COMPLETED')
    expect(performance.now() - began).toBeLessThan(20_000)
  })

  test('errors name the node and the reason', { timeout: 240_000 }, async () => {
    const memory = await run('text-to-image', { prompt: 'more than there is' })
    await ended(memory, 'FAILED')
    expect(JSON.stringify(await resultOf(memory))).toMatch(/ran out of memory in node '3' \(InferTestSampler\)/)
  })

  test('an image is uploaded and scaled, a video is saved as MP4', { timeout: 240_000 }, async () => {
    const image = `data:image/png;base64,${picture.toString('base64')}`
    const edited = await run('image-to-image', { prompt: 'larger', image_url: image, width: 96, height: 64 })
    await ended(edited, 'COMPLETED')
    expect(await resultOf(edited)).toMatchObject({ images: [{ width: 96, height: 64 }] })
    const video = await run('text-to-video', { prompt: 'a cat', num_frames: 16, fps: 8 })
    await ended(video, 'COMPLETED')
    expect(await resultOf(video)).toMatchObject({ video: { content_type: 'video/mp4' } })
  })
})
