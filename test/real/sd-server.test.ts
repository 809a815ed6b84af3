import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { type Json, startInfer } from './_engine.ts'

/**
 * stable-diffusion.cpp's server with random weights in the shape of Stable Diffusion 1.5: see README.md of this folder for
 * how to get both. Skipped where they are not there.
 */
const folder = process.env.INFER_REAL_ENGINES ?? ''
const source = join(folder, 'models', 'sd15-random')
const server = join(folder, 'bin', 'sd-server')
const small = { prompt: 'a cat', image_size: { width: 64, height: 64 }, num_inference_steps: 2, seed: 7 }

describe.skipIf(folder === '' || !existsSync(source) || !existsSync(server))('sd-server', () => {
  const infer = startInfer(dirname(server), () => ({
    limits: { cancel_grace: '1s' },
    models: [
      {
        id: 'sd',
        slug: 'real/sd',
        engine: 'sd-server',
        source,
        devices: 'cpu',
        memory: '3GiB',
        tasks: ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting', 'slug/text-to-video'],
        extra_params: ['sample_method'],
        args: ['-t', '2'],
        dispatch_wait_ms: '120s',
      },
      {
        id: 'sd-openai',
        slug: 'real/sd-openai',
        engine: 'custom',
        protocol: 'openai',
        command: [
          'sd-server',
          '--listen-ip',
          '127.0.0.1',
          '--listen-port',
          '{port}',
          '-m',
          source,
          '-t',
          '2',
          '--steps',
          '2',
          '--cfg-scale',
          '1',
        ],
        health_path: '/v1/models',
        sandbox_read: [folder],
        devices: 'cpu',
        memory: '3GiB',
        concurrency: 1,
        tasks: ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting', 'std/image-edit'],
        dispatch_wait_ms: '120s',
      },
    ],
  }))

  const ask = async (path: string, options: object = {}): Promise<Json> => (await infer.app.fetch(path, options)).json()
  async function submit(task: string, body: object, model = 'sd'): Promise<string> {
    const answer = await ask(`/slug/real/${model}/${task}`, { body: { ...small, ...body } })
    expect(answer).toMatchObject({ request_id: expect.any(String) as string })
    return answer.request_id as string
  }
  /** Every different progress of a request until it has ended, and its last status. */
  async function followed(id: string, until: (status: Json) => boolean = () => false) {
    const progress: number[] = []
    const response = await infer.app.fetch(`/slug/requests/${id}/status/stream`)
    let last: Json
    let text = ''
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      const lines = (text + part).split('\n')
      text = lines.pop()!
      for (const line of lines.filter(one => one.startsWith('data: {'))) {
        last = JSON.parse(line.slice(6))
        if (typeof last.progress === 'number' && last.progress !== progress.at(-1)) progress.push(last.progress)
        if (until(last)) return { progress, last }
      }
    }
    return { progress, last }
  }
  async function imageOf(id: string) {
    const { images } = await ask(`/slug/requests/${id}`)
    const bytes = Buffer.from(await (await fetch(images[0].url)).arrayBuffer())
    const { format, width, height } = await sharp(bytes).metadata()
    expect({ format, width, height }).toEqual({ format: 'png', width: 64, height: 64 })
    return `data:image/png;base64,${bytes.toString('base64')}`
  }

  test('an image from a text with progress, and images from it', { timeout: 600_000 }, async () => {
    const id = await submit('text-to-image', { sample_method: 'euler' })
    const { progress, last } = await followed(id)
    expect(last).toMatchObject({ status: 'COMPLETED' })
    expect(progress.some(of => of > 0 && of < 1)).toBe(true)
    expect(progress).toEqual(progress.toSorted((one, other) => one - other))
    const image_url = await imageOf(id)

    const changed = await submit('image-to-image', { image_url, strength: 0.9 })
    expect((await followed(changed)).last).toMatchObject({ status: 'COMPLETED' })
    expect(await imageOf(changed)).not.toBe(image_url)

    const black = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'black' } })
      .png()
      .toBuffer()
    const mask_url = `data:image/png;base64,${black.toString('base64')}`
    const inpainting = await submit('inpainting', { image_url, mask_url })
    expect((await followed(inpainting)).last).toMatchObject({ status: 'COMPLETED' })
  })

  test('the same by the image routes of OpenAI', { timeout: 900_000 }, async () => {
    const run = async (task: string, body: object): Promise<string> => {
      const id = await submit(task, { ...body, negative_prompt: undefined }, 'sd-openai')
      expect((await followed(id)).last).toMatchObject({ status: 'COMPLETED' })
      return imageOf(id)
    }
    const image_url = await run('text-to-image', {})
    expect(await run('image-to-image', { image_url })).not.toBe(image_url)
    const mask = async (background: string) => {
      const grey = sharp({ create: { width: 32, height: 32, channels: 3, background } })
      return `data:image/png;base64,${(await grey.png().toBuffer()).toString('base64')}`
    }
    const kept = await run('inpainting', { image_url, mask_url: await mask('black') })
    expect(await run('inpainting', { image_url, mask_url: await mask('white') })).not.toBe(kept)
  })

  test('a video of a model for images', async () => {
    const id = await submit('text-to-video', { image_size: undefined, resolution: '480p', num_frames: 5 })
    const { last } = await followed(id)
    expect(last).toMatchObject({ status: 'FAILED' })
    expect(JSON.stringify(last)).toContain('does not support vid_gen')
  })

  test('a cancelled job frees the engine', { timeout: 600_000 }, async () => {
    const id = await submit('text-to-image', { num_inference_steps: 50 })
    await followed(id, ({ progress }) => progress > 0)
    expect((await infer.app.fetch(`/slug/requests/${id}/cancel`, { method: 'PUT' })).status).toBeLessThan(300)
    expect((await followed(id)).last).toMatchObject({ status: 'FAILED', error: { code: 'cancelled' } })
    const next = await submit('text-to-image', {})
    expect((await followed(next)).last).toMatchObject({ status: 'COMPLETED' })
  })
})
