import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import sharp from 'sharp'
import { describe, expect, test, vi } from 'vitest'
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
 * The Python worker's models of text, vision, interpolation and speech-to-video, tiny and with random weights, through
 * infer: see README.md of this folder. Skipped without INFER_REAL_PYTHON, a Python with torch, transformers and diffusers.
 */
const python = process.env.INFER_REAL_PYTHON ?? ''

describe.skipIf(python === '')('the Python worker', () => {
  const models = makeModels(python, 'make-text-models.py')
  const infer = startInfer('', async () => {
    await sharp({ create: { width: 100, height: 80, channels: 3, background: 'green' } })
      .png()
      .toFile(join(models.folder, 'face.png'))
    const sandbox_read = [models.folder, worker, ...pythonPrefixes(python)]
    const model = (id: string, ...tasks: string[]) => ({
      id,
      engine: 'custom',
      command: workerCommand(python, join(models.folder, id), tasks, '{socket}'),
      env: workerEnvironment,
      sandbox_read,
      devices: 'cpu',
      memory: '1GiB',
      concurrency: tasks[0]!.startsWith('slug/') ? 1 : 4,
      slug: `real/${id}`,
      tasks,
      load_timeout: '120s',
      dispatch_wait_ms: '120s',
      features: ['images', 'top_k', 'min_p', 'repetition_penalty'],
    })
    return {
      models: [
        ...['mean', 'cls', 'last'].map(how => model(`embed-${how}`, 'std/embeddings')),
        model('rerank', 'std/rerank', 'std/score'),
        model('chat', 'std/chat-completion', 'std/completion'),
        model('vision', 'std/chat-completion'),
        model('rife', 'slug/video-interpolation'),
        model('rife-moving', 'slug/video-interpolation'),
        model('speech-video', 'slug/speech-to-video'),
        model('text-video', 'slug/text-to-video', 'slug/image-to-video'),
      ],
    }
  })
  const { post } = infer

  test.each(['mean', 'cls', 'last'])(
    'embeddings with pooling %s equal those of transformers',
    { timeout: 2 * minutes },
    async how => {
      const { texts, vectors, tokens } = models.expected.embedding
      const { data, usage } = await infer.openai.embeddings.create({
        model: `embed-${how}`,
        input: texts,
        encoding_format: 'float',
      })
      expect(usage.prompt_tokens).toBe(tokens)
      for (const [at, vector] of (vectors[how] as number[][]).entries()) {
        const found = data[at]!.embedding
        expect(found).toHaveLength(vector.length)
        for (const [place, value] of vector.entries()) expect(found[place]).toBeCloseTo(value, 5)
      }
      const short = await infer.openai.embeddings.create({ model: `embed-${how}`, input: texts[0], dimensions: 8 })
      const length = Math.hypot(...vectors[how][0].slice(0, 8))
      expect(short.data[0]!.embedding[0]).toBeCloseTo(vectors[how][0][0] / length, 5)
      const long = await post('/std/v1/embeddings', { model: `embed-${how}`, input: 'x'.repeat(600) })
      expect([long.status, long.body.error.code]).toEqual([400, 'context_length_exceeded'])
      const cut = await post('/std/v1/embeddings', { model: `embed-${how}`, input: 'x'.repeat(600), truncation: true })
      expect([cut.status, cut.body.usage?.prompt_tokens]).toEqual([200, 512])
    },
  )

  test('documents are ranked and pairs scored as transformers does', { timeout: 2 * minutes }, async () => {
    const { query, scores } = models.expected.ranking as { query: string; scores: number[] }
    const documents = models.expected.embedding.texts as string[]
    const { body } = await post('/std/v1/rerank', { model: 'rerank', query, documents })
    const order = scores.map((_, at) => at).sort((a, b) => scores[b]! - scores[a]!)
    expect(body.results.map(({ index }: Json) => index)).toEqual(order)
    for (const { index, relevance_score } of body.results) expect(relevance_score).toBeCloseTo(scores[index]!, 5)
    const scored = await post('/std/v1/score', { model: 'rerank', text_1: query, text_2: documents })
    for (const [at, { score }] of scored.body.data.entries()) expect(score).toBeCloseTo(scores[at]!, 5)
    const long = await post('/std/v1/score', { model: 'rerank', text_1: query, text_2: 'x'.repeat(600) })
    expect([long.status, long.body.error.code]).toEqual([400, 'context_length_exceeded'])
  })

  test('chat: whole, streamed, stopped, seeded, refused', { timeout: 2 * minutes }, async () => {
    const { text, prompt } = models.expected.chat as { text: string; prompt: number }
    const base = { model: 'chat', messages: [{ role: 'user' as const, content: 'Hello' }], max_tokens: 24 }
    const whole = await infer.openai.chat.completions.create({ ...base, temperature: 0 })
    expect(whole.choices[0]).toMatchObject({ message: { content: text }, finish_reason: 'length' })
    expect(whole.usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: 24 })

    const chunks = []
    const stream = { ...base, temperature: 0, stream: true, stream_options: { include_usage: true } } as const
    for await (const chunk of await infer.openai.chat.completions.create(stream)) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(text)
    expect(chunks.filter(({ choices }) => choices[0]?.delta.content).length).toBeGreaterThan(10)
    expect(chunks.at(-1)!.usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: 24 })

    const stop = text.slice(3, 6)
    const stopped = await infer.openai.chat.completions.create({ ...base, temperature: 0, stop })
    const before = text.slice(0, text.indexOf(stop))
    expect(stopped.choices[0]).toMatchObject({ message: { content: before }, finish_reason: 'stop' })

    const seeded = async (seed: number) =>
      (await infer.openai.completions.create({ model: 'chat', prompt: 'ab', seed, temperature: 2, max_tokens: 20 }))
        .choices[0]!.text
    expect(await seeded(1)).toBe(await seeded(1))
    expect(await seeded(2)).not.toBe(await seeded(1))

    const long = await post('/std/v1/chat/completions', {
      ...base,
      messages: [{ role: 'user', content: 'x'.repeat(3000) }],
    })
    expect([long.status, long.body.error.code]).toEqual([400, 'context_length_exceeded'])
    const many = await post('/std/v1/chat/completions', { ...base, n: 2 })
    expect([many.status, many.body.error.code, many.body.error.param]).toEqual([400, 'unsupported_parameter', 'n'])
  })

  test('a vision model sees different images differently', { timeout: 2 * minutes }, async () => {
    const answer = async (background: string, type = 'image/png') => {
      const bytes = await sharp({ create: { width: 40, height: 30, channels: 3, background } })
        .png()
        .toBuffer()
      const url = `data:${type};base64,${bytes.toString('base64')}`
      const content = [
        { type: 'text' as const, text: 'What?' },
        { type: 'image_url' as const, image_url: { url } },
      ]
      const messages = [{ role: 'user' as const, content }]
      const { choices, usage } = await infer.openai.chat.completions.create({
        model: 'vision',
        messages,
        max_tokens: 12,
        temperature: 0,
      })
      return { text: choices[0]!.message.content, tokens: usage!.prompt_tokens }
    }
    const [red, again, blue] = [await answer('red'), await answer('red'), await answer('blue')]
    expect(red).toEqual(again)
    expect(blue.text).not.toBe(red.text)
    expect(blue.tokens).toBe(red.tokens)
  })

  /** Width, height, frames of the video stream, and codecs. */
  function probed(file: string) {
    const entries = 'stream=codec_name,codec_type,width,height,nb_read_frames'
    const { streams } = JSON.parse(
      run('ffprobe', ['-v', 'error', '-count_frames', '-show_entries', entries, '-of', 'json', file]),
    )
    const video = streams.find((stream: Json) => stream.codec_type === 'video')
    return {
      codecs: streams.map((stream: Json) => stream.codec_name),
      size: [video.width, video.height],
      frames: Number(video.nb_read_frames),
    }
  }

  async function video(slug: string, body: object, name: string): Promise<string> {
    const answer = await post(`/slug/real/${slug}`, { ...body, sync_mode: true })
    expect([answer.status, answer.body]).toEqual([200, expect.objectContaining({ video: expect.anything() })])
    const file = join(models.folder, name)
    writeFileSync(file, new Uint8Array(await (await fetch(answer.body.video.url)).arrayBuffer()))
    return file
  }

  const dataUrl = (type: string, file: string) => `data:${type};base64,${readFileSync(file).toString('base64')}`

  test('interpolation follows a known motion, keeps cuts and audio', { timeout: 4 * minutes }, async () => {
    const [width, height] = [160, 96]
    const wave = (x: number, at: number) => 128 + 100 * Math.sin((x - 8 * at) / 9)
    const scenes = 'if(lt(N,10),128+100*sin((X-8*N)/9),128+100*sin(Y/5))'
    const input = join(models.folder, 'input.mp4')
    const made = `color=s=${width}x${height}:r=10:d=2,format=yuv444p,geq=lum='${scenes}':cb=128:cr=128`
    const sound = ['-f', 'lavfi', '-i', 'sine=440:d=2']
    run('ffmpeg', ['-v', 'error', '-f', 'lavfi', '-i', made, ...sound, '-pix_fmt', 'yuv420p', '-crf', '1', input])
    const file = await video(
      'rife-moving/video-interpolation',
      { video_url: dataUrl('video/mp4', input), fps: 20 },
      'moved.mp4',
    )
    expect(probed(file)).toEqual({ codecs: ['h264', 'aac'], size: [width, height], frames: 40 })
    const raw = Buffer.from(
      run('ffmpeg', ['-v', 'error', '-i', file, '-f', 'rawvideo', '-pix_fmt', 'gray', '-']),
      'latin1',
    )
    const frame = (at: number) => raw.subarray(at * width * height, (at + 1) * width * height)
    /** Mean difference to a function of x, away from the edges, whose outside the network cannot know. */
    const difference = (pixels: Uint8Array, value: (x: number) => number) => {
      let sum = 0
      for (let x = 16; x < width - 16; x++) sum += Math.abs(pixels[(height >> 1) * width + x]! - value(x))
      return sum / (width - 32)
    }
    // The decoder expands the limited range of video to that of images.
    const full = (value: number) => Math.min(255, Math.max(0, ((value - 16) * 255) / 219))
    for (const at of [3, 9, 15]) {
      const [mine, neighbours] = [frame(at), [frame(at - 1), frame(at + 1)] as const]
      const true_ = (x: number) => full(wave(x, at / 2))
      const blend = neighbours[0].map((value, place) => (value + neighbours[1][place]!) / 2)
      expect(difference(mine, true_), `frame ${at}`).toBeLessThan(3)
      expect(difference(blend, true_), `frame ${at}`).toBeGreaterThan(5)
    }
    const [before, cut, after] = [frame(18), frame(19), frame(20)]
    const between = (one: Uint8Array, other: Uint8Array) =>
      one.reduce((sum, value, at) => sum + Math.abs(value - other[at]!), 0) / one.length
    expect(between(cut, after)).toBeLessThan(3)
    expect(between(cut, before)).toBeGreaterThan(20)
    const random = await video(
      'rife/video-interpolation',
      { video_url: dataUrl('video/mp4', input), fps: 25 },
      'random.mp4',
    )
    expect(probed(random)).toEqual({ codecs: ['h264', 'aac'], size: [width, height], frames: 50 })
  })

  test('a video of speech depends on the audio and has it as track', { timeout: 4 * minutes }, async () => {
    const face = join(models.folder, 'face.png')
    const spoken = async (source: string, name: string) => {
      const audio = join(models.folder, `${name}.wav`)
      run('ffmpeg', ['-v', 'error', '-y', '-f', 'lavfi', '-i', source, audio])
      const media = { image_url: dataUrl('image/png', face), audio_url: dataUrl('audio/wav', audio) }
      const size = { image_size: { width: 96, height: 80 }, fps: 8, num_inference_steps: 3, seed: 7 }
      return video('speech-video/speech-to-video', { prompt: 'she speaks', ...media, ...size }, `${name}.mp4`)
    }
    const files = [
      await spoken('sine=440:d=1.5', 'sine'),
      await spoken('sine=440:d=1.5', 'again'),
      await spoken('anoisesrc=d=1.5:seed=3', 'noise'),
    ]
    for (const file of files) expect(probed(file)).toEqual({ codecs: ['h264', 'aac'], size: [96, 80], frames: 12 })
    const [sine, again, noise] = files.map(file =>
      run('ffmpeg', ['-v', 'error', '-i', file, '-map', '0:v', '-f', 'framemd5', '-']),
    )
    expect(again).toBe(sine)
    expect(noise).not.toBe(sine)
  })

  test('LTX-2 makes videos with audio of its own', { timeout: 4 * minutes }, async () => {
    // The pipeline wants multiples of 32, whatever its encoder needs, which is less for this tiny one.
    const size = { image_size: { width: 96, height: 64 }, fps: 8, num_frames: 9, num_inference_steps: 2, seed: 7 }
    const made = await video('text-video/text-to-video', { prompt: 'rain', ...size }, 'rain.mp4')
    expect(probed(made)).toEqual({ codecs: ['h264', 'aac'], size: [96, 64], frames: 9 })
    const image_url = dataUrl('image/png', join(models.folder, 'face.png'))
    const moved = await video('text-video/image-to-video', { prompt: 'rain', image_url, ...size }, 'moved.mp4')
    expect(probed(moved)).toEqual({ codecs: ['h264', 'aac'], size: [96, 64], frames: 9 })
  })

  test('a cancelled video stops between steps', { timeout: 2 * minutes }, async () => {
    const [face, audio] = [join(models.folder, 'face.png'), join(models.folder, 'sine.wav')]
    const media = { image_url: dataUrl('image/png', face), audio_url: dataUrl('audio/wav', audio) }
    const long = {
      image_size: { width: 64, height: 64 },
      fps: 8,
      num_frames: 17,
      num_inference_steps: 50,
      prompt: 'x',
    }
    const { body } = await post('/slug/real/speech-video/speech-to-video', { ...media, ...long })
    const url = `/api/jobs/${(body.request_id as string).replace('q_', 'job_')}`
    const job = async (): Promise<Json> => (await infer.app.fetch(url)).json()
    const moves = { timeout: minutes, interval: 50 }
    await vi.waitFor(async () => expect((await job()).progress).toBeGreaterThan(0.03), moves)
    expect((await infer.app.fetch(`/slug/requests/${body.request_id}/cancel`, { method: 'PUT' })).status).toBe(202)
    await vi.waitFor(async () => expect((await job()).status).toBe('cancelled'), moves)
    const short = { image_size: { width: 64, height: 64 }, fps: 8, num_frames: 9, num_inference_steps: 1, prompt: 'x' }
    await video('speech-video/speech-to-video', { ...media, ...short }, 'after.mp4')
  })

  test('a chat whose caller disconnects stops', { timeout: 2 * minutes }, async () => {
    const socketPath = join(models.folder, 'worker.sock')
    const [program, ...options] = workerCommand(
      python,
      join(models.folder, 'chat'),
      ['std/chat-completion'],
      socketPath,
    )
    const child = spawn(program!, options, { env: { ...process.env, ...workerEnvironment }, stdio: 'inherit' })
    const health = async (): Promise<Json> => {
      const [response] = (await once(request({ socketPath, path: '/health' }).end(), 'response')) as [IncomingMessage]
      return JSON.parse(Buffer.concat(await response.toArray()).toString())
    }
    const idle = () =>
      vi.waitFor(async () => expect((await health()).running).toBe(0), { timeout: minutes, interval: 5 })
    const stream = async () => {
      const sent = request({ socketPath, path: '/v1/chat/completions', method: 'POST' })
      sent.end(
        JSON.stringify({ messages: [{ role: 'user', content: 'a' }], temperature: 0, max_tokens: 1500, stream: true }),
      )
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      await once(response, 'data')
      return response
    }
    try {
      await vi.waitFor(async () => expect((await health()).status).toBe('ok'), { timeout: minutes, interval: 100 })
      await (await stream()).resume().toArray()
      const started = performance.now()
      await (await stream()).toArray()
      const whole = performance.now() - started
      const left = await stream()
      expect((await health()).running).toBe(1)
      const leaving = performance.now()
      left.destroy()
      await idle()
      expect(performance.now() - leaving).toBeLessThan(whole / 4)
    } finally {
      child.kill()
      await once(child, 'exit')
    }
  })
})
