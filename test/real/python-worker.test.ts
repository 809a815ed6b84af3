import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { Client } from 'undici'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Json,
  makeModels,
  minutes,
  pythonPrefixes,
  run,
  startInfer,
  worker,
  workerCommand,
  workerEnvironment,
} from './_engine.ts'

/**
 * The Python worker's images and videos, with tiny pipelines and random weights, through infer: see README.md of this
 * folder. Skipped without INFER_REAL_PYTHON, a Python with torch, diffusers, transformers, peft and ftfy.
 */
const python = process.env.INFER_REAL_PYTHON ?? ''

describe.skipIf(python === '')('the Python worker', () => {
  const models = makeModels(python, 'make-diffusion-models.py')
  const infer = startInfer('', () => {
    const sandbox_read = [models.folder, worker, ...pythonPrefixes(python)]
    const model = (id: string, tasks: string[], options: string[] = []) => ({
      id,
      engine: 'custom',
      command: workerCommand(python, join(models.folder, id), tasks, '{socket}', options),
      env: workerEnvironment,
      sandbox_read,
      devices: 'cpu',
      memory: '2GiB',
      concurrency: 1,
      slug: `real/${id}`,
      tasks,
      extra_params: ['loras'],
      load_timeout: '120s',
    })
    return {
      models: [
        model(
          'sd',
          ['slug/text-to-image', 'slug/image-to-image', 'slug/inpainting', 'std/image-generation', 'std/image-edit'],
          ['--lora', `${join(models.folder, 'style.safetensors')}=0`],
        ),
        model('wan', ['slug/text-to-video', 'slug/image-to-video']),
      ],
    }
  })

  const ask = async (path: string, body?: object): Promise<Json> => {
    const response = await infer.app.fetch(path, body ? { body } : {})
    return { status: response.status, ...((await response.json()) as object) }
  }
  const submit = async (task: string, model_id: string, inputs: object, more: object = {}): Promise<string> => {
    const { id, error } = await ask('/api/jobs', { task, model_id, inputs, ...more })
    expect(error).toBeUndefined()
    return id as string
  }
  /** Waits for the end of a job. */
  async function ended(id: string): Promise<Json> {
    for (;;) {
      const job = await ask(`/api/jobs/${id}?wait=60`)
      if (['completed', 'failed', 'cancelled'].includes(job.status as string)) return job
    }
  }
  async function bytesOf(url: string): Promise<Buffer> {
    const response = await infer.app.fetch(url.replace(infer.app.url, ''))
    expect(response.status).toBe(200)
    return Buffer.from(await response.arrayBuffer())
  }
  /** The process that runs a model. */
  function workerOf(id: string): string {
    const found = readdirSync('/proc').find(pid => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return command.startsWith(`${python}\0-m\0infer_worker\0`) && command.includes(`${join(models.folder, id)}\0`)
      } catch {
        return false
      }
    })
    expect(found).toBeDefined()
    return found!
  }
  /** Lets a process have so many more bytes than it has now: less than the frames of a large video. */
  function limitMemory(pid: string, more: number): void {
    const size = Number(/VmSize:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
    run('prlimit', ['--pid', pid, `--as=${size + more}:`])
  }
  const unlimitMemory = (pid: string) => run('prlimit', ['--pid', pid, '--as=unlimited:'])
  const large = { width: 640, height: 480, num_frames: 33 }
  const small = { width: 64, height: 64, num_inference_steps: 4, seed: 7 }

  test('text to image: two PNG of the requested size; a seed gives the same again', {
    timeout: 3 * minutes,
  }, async () => {
    const inputs = { ...small, prompt: 'a cat', width: 96, height: 80, num_images: 2 }
    const images = async () => {
      const { result } = await ended(await submit('slug/text-to-image', 'sd', inputs))
      return Promise.all((result.images as { url: string }[]).map(({ url }) => bytesOf(url)))
    }
    const [first, second] = [await images(), await images()]
    expect(first).toHaveLength(2)
    expect(await sharp(first[0]).metadata()).toMatchObject({ format: 'png', width: 96, height: 80 })
    expect(first[0]!.equals(second[0]!)).toBe(true)
    expect(first[0]!.equals(first[1]!)).toBe(false)
  })

  test('image to image, inpainting, and a LoRA that is swapped in', { timeout: 3 * minutes }, async () => {
    const red = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'red' } })
      .png()
      .toBuffer()
    const half = await sharp({ create: { width: 64, height: 64, channels: 3, background: 'black' } })
      .composite([{ input: { create: { width: 32, height: 64, channels: 3, background: 'white' } }, left: 0, top: 0 }])
      .png()
      .toBuffer()
    const url = (image: Buffer) => `data:image/png;base64,${image.toString('base64')}`
    const one = async (task: string, inputs: object): Promise<Buffer> => {
      const job = await ended(await submit(task, 'sd', { ...small, prompt: 'a cat', ...inputs }))
      expect(job.error).toBeNull()
      return bytesOf(job.result.images[0].url as string)
    }
    const slight = await one('slug/image-to-image', { image_url: url(red), strength: 0.3 })
    const strong = await one('slug/image-to-image', { image_url: url(red), strength: 1 })
    expect(slight.equals(strong)).toBe(false)
    expect(
      await sharp(await one('slug/inpainting', { image_url: url(red), mask_url: url(half) })).metadata(),
    ).toMatchObject({
      width: 64,
      height: 64,
    })
    const plain = await one('slug/text-to-image', {})
    const styled = await one('slug/text-to-image', { loras: [{ name: 'style', weight: 2 }] })
    expect(styled.equals(plain)).toBe(false)
    expect((await one('slug/text-to-image', {})).equals(plain)).toBe(true)
    const unknown = await ended(
      await submit('slug/text-to-image', 'sd', { ...small, prompt: 'a cat', loras: [{ name: 'none' }] }),
    )
    expect(unknown.error.message).toContain("There is no LoRA 'none'. Loaded: style.")
  })

  test('videos from text and from an image, with progress', { timeout: 3 * minutes }, async () => {
    const image = await sharp({ create: { width: 96, height: 64, channels: 3, background: 'blue' } })
      .png()
      .toBuffer()
    for (const [task, more] of [
      ['slug/text-to-video', {}],
      ['slug/image-to-video', { image_url: `data:image/png;base64,${image.toString('base64')}` }],
    ] as const) {
      const inputs = {
        prompt: 'a cat',
        seed: 1,
        width: 96,
        height: 64,
        num_frames: 10,
        fps: 8,
        num_inference_steps: 50,
      }
      const id = await submit(task, 'wan', { ...inputs, ...more })
      await expect
        .poll(async () => (await ask(`/api/jobs/${id}`)).progress as number, { timeout: minutes, interval: 20 })
        .toSatisfy(progress => progress > 0.05 && progress < 1)
      const job = await ended(id)
      expect(job.error).toBeNull()
      const path = join(models.folder, 'video.mp4')
      writeFileSync(path, await bytesOf(job.result.video.url as string))
      const entries = 'stream=codec_name,width,height,nb_frames,avg_frame_rate'
      expect(run('ffprobe', ['-v', 'error', '-show_entries', entries, '-of', 'csv=p=0', path]).trim()).toBe(
        'h264,96,64,8/1,10',
      )
    }
  })

  test('a video has as many previews as its call names, each its middle frame', { timeout: 3 * minutes }, async () => {
    const socket = join(models.folder, 'previews.sock')
    const [program, ...options] = workerCommand(python, join(models.folder, 'wan'), ['slug/text-to-video'], socket)
    const worker = spawn(program!, options, { env: { ...process.env, ...workerEnvironment } })
    onTestFinished(() => void worker.kill('SIGKILL'))
    const dispatcher = new Client('http://localhost', { socketPath: socket })
    onTestFinished(() => dispatcher.destroy())
    await expect
      .poll(async () => (await dispatcher.request({ method: 'GET', path: '/health' })).statusCode, {
        timeout: 2 * minutes,
        interval: 100,
      })
      .toBe(200)
    const output = join(models.folder, 'previews')
    mkdirSync(output)
    const inputs = {
      prompt: 'a cat',
      negative_prompt: null,
      seed: 1,
      width: 96,
      height: 64,
      num_frames: 9,
      fps: 8,
      num_inference_steps: 6,
      guidance_scale: 5,
      image: null,
      mask: null,
      extra: {},
      previews: 2,
    }
    const answer = await dispatcher.request({
      method: 'POST',
      path: '/v1/generate',
      body: JSON.stringify({ task: 'slug/text-to-video', model: 'wan', inputs, folder: output }),
    })
    const messages = (await answer.body.text())
      .trim()
      .split('\n')
      .map((line): Json => JSON.parse(line))
    expect(messages.at(-1)).toMatchObject({ type: 'completed' })
    const previews = messages.filter(({ type }) => type === 'preview')
    expect(previews).toHaveLength(2)
    for (const { data } of previews)
      expect(await sharp(Buffer.from(data as string, 'base64')).metadata()).toMatchObject({
        format: 'png',
        width: 96,
        height: 64,
      })
    expect(previews[0].data).not.toBe(previews[1].data)
  })

  test('cancelled in the middle, out of memory, and right again afterwards', { timeout: 4 * minutes }, async () => {
    const inputs = { prompt: 'a cat', seed: 1, width: 96, height: 64, num_frames: 9, fps: 8 }
    const long = await submit('slug/text-to-video', 'wan', { ...inputs, num_inference_steps: 50, num_frames: 81 })
    await expect
      .poll(async () => (await ask(`/api/jobs/${long}`)).progress as number, { timeout: minutes, interval: 20 })
      .toBeGreaterThan(0)
    await infer.app.fetch(`/api/jobs/${long}/cancel`, { method: 'POST' })
    expect((await ended(long)).status).toBe('cancelled')

    const pid = workerOf('wan')
    limitMemory(pid, 32 << 20)
    const size = { ...large, num_inference_steps: 1 }
    const huge = await ended(await submit('slug/text-to-video', 'wan', { ...inputs, ...size }, { max_attempts: 1 }))
    expect(huge.status).toBe('failed')
    expect(huge.error.message).toContain('640 × 480 × 33 frames did not fit. Use a smaller size or fewer frames')

    unlimitMemory(pid)
    const retried = await ended(await submit('slug/text-to-video', 'wan', { ...inputs, num_inference_steps: 2 }))
    expect(retried.status).toBe('completed')
    expect(workerOf('wan')).toBe(pid)
  })

  test('a job that ran out of memory is tried again and completes', { timeout: 4 * minutes }, async () => {
    const inputs = { prompt: 'a cat', seed: 1, fps: 8, num_inference_steps: 2 }
    await ended(await submit('slug/text-to-video', 'wan', { ...inputs, width: 96, height: 64, num_frames: 9 }))
    const pid = workerOf('wan')
    // Other work has taken the memory.
    limitMemory(pid, 32 << 20)
    const id = await submit('slug/text-to-video', 'wan', { ...inputs, ...large }, { max_attempts: 5 })
    await expect
      .poll(async () => JSON.stringify(await ask(`/api/jobs/${id}`)), { timeout: minutes, interval: 20 })
      .toContain('640 × 480 × 33 frames did not fit')
    unlimitMemory(pid)
    const job = await ended(id)
    expect(job.error).toBeNull()
    expect(job.attempts).toBeGreaterThan(1)
    expect(workerOf('wan')).toBe(pid)
    const path = join(models.folder, 'retried.mp4')
    writeFileSync(path, await bytesOf(job.result.video.url as string))
    expect(run('ffprobe', ['-v', 'error', '-show_entries', 'stream=nb_frames', '-of', 'csv=p=0', path]).trim()).toBe(
      '33',
    )
  })
})
