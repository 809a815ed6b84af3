import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { wavHead } from '../../../../core/tasks/wav.ts'
import { voices } from '../../../../gpu/engines/demo/chords.ts'
import { startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { encode } from '../../../gpu/engines/demo/_tones.ts'
import { heardInWav, remoteSpeaker } from './_speech.ts'

const say = (app: TestApp, body: object = {}, signal?: AbortSignal) =>
  app.fetch('/std/v1/audio/speech', { body: { model: 'far', input: 'Hello', ...body }, ...(signal ? { signal } : {}) })
const errorOf = async (answer: Response) =>
  ((await answer.json()) as { error: { code: string; message: string } }).error
const mp3 = (text: string) => Buffer.concat([Buffer.from('ID3'), Buffer.from(text)])
const wavOf = (text: string, length?: number) => {
  const samples = encode(text, voices[0])
  return Buffer.concat([wavHead(24_000, length ?? samples.byteLength), new Uint8Array(samples.buffer)])
}
const statusOf = async (app: TestApp, answer: Response) => {
  const id = answer.headers.get('x-job-id')!
  return async () => ((await (await app.fetch(`/api/jobs/${id}`)).json()) as { status: string }).status
}

test('the engine gets the fields that it knows, and its audio is relayed unchanged', async () => {
  await using far = await remoteSpeaker(response => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(mp3('sound'))
  })
  await using app = await startApp({ models: [far.model({ upstream_id: 'kokoro', extra_params: ['mood'] })] })
  const answer = await say(app, {
    voice: { id: 'af_heart' },
    speed: 1.5,
    instructions: 'calmly',
    language: 'en',
    seed: 7,
    mood: 'glad',
    api_base: 'http://169.254.169.254',
    user: 'someone',
    stream_format: 'audio',
  })
  expect(Buffer.from(await answer.arrayBuffer())).toEqual(mp3('sound'))
  expect(far.paths).toEqual(['POST /v1/audio/speech'])
  expect(far.bodies).toEqual([
    {
      model: 'kokoro',
      input: 'Hello',
      voice: { id: 'af_heart' },
      response_format: 'mp3',
      speed: 1.5,
      instructions: 'calmly',
      language: 'en',
      seed: 7,
      mood: 'glad',
    },
  ])
})

test('an engine that only writes WAV is asked for WAV, and its length may be unknown beforehand', async () => {
  await using far = await remoteSpeaker(response => {
    const wav = wavOf('By hand', 0xffffffff)
    response.writeHead(200, { 'content-type': 'audio/wav' })
    response.write(wav.subarray(0, 30))
    response.end(wav.subarray(30))
  })
  await using app = await startApp({ models: [far.model({ speech_formats: ['wav'] })] })
  const pcm = Buffer.from(await (await say(app, { response_format: 'pcm' })).arrayBuffer())
  expect(heardInWav(Buffer.concat([wavHead(24_000, pcm.length), pcm]))).toBe('By hand')
  expect(far.bodies[0]).toMatchObject({ response_format: 'wav' })
})

test.each([
  ['pcm of another rate', 'audio/pcm; rate=12000', {}, Buffer.alloc(24_000, 1), 24_000],
  ['pcm that says no rate', 'audio/pcm', {}, Buffer.alloc(48_000, 1), 24_000],
  [
    'wav of another rate',
    'audio/wav',
    { speech_formats: ['wav'] },
    Buffer.concat([wavHead(48_000, 96_000), Buffer.alloc(96_000, 1)]),
    24_000,
  ],
  ['another rate that was asked for', 'audio/pcm;rate=24000', {}, Buffer.alloc(48_000, 1), 16_000],
] as const)(
  'raw samples have 24000 a second unless the caller asks otherwise: %s',
  async (_, type, more, sent, rate) => {
    await using far = await remoteSpeaker(response => void response.writeHead(200, { 'content-type': type }).end(sent))
    await using app = await startApp({ models: [far.model(more)] })
    const asked = rate === 24_000 ? {} : { sample_rate: rate }
    const answer = await say(app, { response_format: 'pcm', ...asked })
    expect(answer.headers.get('content-type')).toBe(`audio/pcm;rate=${rate}`)
    const samples = Buffer.from(await answer.arrayBuffer())
    // One second; the last sample of a resampled signal has no successor to interpolate with.
    expect(Math.abs(samples.length / 2 - rate)).toBeLessThanOrEqual(2)
    expect(new Set(samples)).toEqual(new Set([1]))
  },
)

test('a sample rate is refused for other formats', async () => {
  await using far = await remoteSpeaker(response => void response.writeHead(200).end())
  await using app = await startApp({ models: [far.model()] })
  const refused = await say(app, { sample_rate: 16_000 })
  expect([refused.status, (await errorOf(refused)).code]).toEqual([400, 'unsupported_parameter'])
})

test('raw samples of a job have their rate and their length', async () => {
  await using far = await remoteSpeaker(response => {
    response.writeHead(200, { 'content-type': 'audio/pcm; rate=16000' }).end(Buffer.alloc(32_000))
  })
  await using app = await startApp({ models: [far.model()] })
  const inputs = { input: 'x', response_format: 'pcm' }
  const submitted = await app.fetch('/api/jobs', { body: { task: 'std/audio-speech', model_id: 'far', inputs } })
  const { id } = (await submitted.json()) as { id: string }
  const job = async () => (await app.fetch(`/api/jobs/${id}`)).json()
  await expect.poll(job).toMatchObject({
    status: 'completed',
    result: { format: 'pcm', duration: 1, content_type: 'audio/pcm;rate=24000' },
  })
})

/** Programs that behave as ffmpeg until they convert: then they run `convert`. */
async function ffmpegThat(convert: string) {
  const folder = await mkdtemp(join(tmpdir(), 'ffmpeg-'))
  const [ffmpeg, ffprobe] = [join(folder, 'ffmpeg'), join(folder, 'ffprobe')]
  const script = `#!/bin/sh\ncase "$*" in *version*) echo ffmpeg version 0;; *pipe:0*) ${convert};; esac\n`
  for (const path of [ffmpeg, ffprobe]) await writeFile(path, script, { mode: 0o700 })
  const gone = () => rm(folder, { recursive: true })
  return { ffmpeg, ffprobe, [Symbol.asyncDispose]: gone }
}

test.each(['audio', 'sse'])(
  'a converter that fails at once is tried again, and then reported: %s',
  async stream_format => {
    await using far = await remoteSpeaker(
      response => void response.writeHead(200, { 'content-type': 'audio/wav' }).end(wavOf('By hand')),
    )
    await using broken = await ffmpegThat('echo no such encoder >&2; exit 1')
    const media = { ffmpeg: broken.ffmpeg, ffprobe: broken.ffprobe }
    await using app = await startApp({ models: [far.model({ speech_formats: ['wav'] })], media })
    const answer = await say(app, { response_format: 'opus', stream_format })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([502, expect.stringContaining('json')])
    expect(await errorOf(answer)).toMatchObject({
      code: 'worker_error',
      message: expect.stringContaining('could not be converted to opus') as string,
    })
    expect(far.paths).toHaveLength(3)
  },
)

test('a refusal of the engine is reported with its message', async () => {
  await using far = await remoteSpeaker(response => {
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: { message: 'Voice nova is not there; there is af_heart.', code: 'invalid_value' } }))
  })
  await using app = await startApp({ models: [far.model()] })
  const answer = await say(app, { voice: 'nova' })
  expect(answer.status).toBe(400)
  expect((await errorOf(answer)).message).toContain('there is af_heart')
  expect(far.paths).toHaveLength(1)
})

test('an engine that answers with another type, with no bytes, or breaks before its first byte is tried again', async () => {
  await using far = await remoteSpeaker(
    response => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'),
    response => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(),
    response => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(mp3('third time')),
  )
  await using app = await startApp({ models: [far.model()] })
  expect(Buffer.from(await (await say(app)).arrayBuffer())).toEqual(mp3('third time'))
  expect(far.paths).toHaveLength(3)
})

test('so is one whose WAV is invalid, and in the end that is reported', async () => {
  await using far = await remoteSpeaker(
    response => void response.writeHead(200, { 'content-type': 'audio/wav' }).end('This is no sound at all.'),
  )
  await using app = await startApp({ models: [far.model({ speech_formats: ['wav'] })] })
  const answer = await say(app)
  expect(answer.status).toBe(502)
  expect(await errorOf(answer)).toMatchObject({
    code: 'worker_error',
    message: expect.stringContaining('not a WAV file'),
  })
  expect(far.paths).toHaveLength(3)
})

test('audio that breaks off ends the connection, and events end with the error', async () => {
  const breaks = async (response: import('node:http').ServerResponse) => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    response.write(mp3('the beginning'))
    await delay(50)
    response.destroy()
  }
  await using far = await remoteSpeaker(breaks)
  await using app = await startApp({ models: [far.model()] })
  const answer = await say(app)
  expect(answer.status).toBe(200)
  await expect(answer.arrayBuffer()).rejects.toThrow()
  await expect.poll(await statusOf(app, answer)).toBe('failed')

  const events = await say(app, { stream_format: 'sse' })
  const text = await events.text()
  const last = JSON.parse(text.trimEnd().split('\n\n').at(-1)!.slice('data: '.length)) as object
  expect(last).toMatchObject({ error: { code: 'worker_error' } })
  await expect.poll(await statusOf(app, events)).toBe('failed')
})

test('the engine request is aborted when its caller disconnects', async () => {
  const gone = Promise.withResolvers<void>()
  await using far = await remoteSpeaker(response => {
    response.writeHead(200, { 'content-type': 'audio/mpeg' })
    response.write(mp3('and so on'))
    response.once('close', () => gone.resolve())
  })
  await using app = await startApp({ models: [far.model()] })
  const leaving = new AbortController()
  const answer = await say(app, {}, leaving.signal)
  await answer.body!.getReader().read()
  leaving.abort()
  await gone.promise
  await expect.poll(await statusOf(app, answer)).toBe('cancelled')
})

const endless = 96 << 20

/** An engine that makes audio as fast as it is read. */
async function fountain() {
  const made = { bytes: 0, closed: Promise.withResolvers<void>() }
  const far = await remoteSpeaker(async response => {
    response.writeHead(200, { 'content-type': 'audio/wav' })
    response.once('close', () => made.closed.resolve())
    const piece = Buffer.alloc(64 << 10)
    response.write(wavHead(24_000, 0xffffffff))
    while (made.bytes < endless && !response.destroyed) {
      made.bytes += piece.length
      if (!response.write(piece)) await Promise.race([once(response, 'drain'), made.closed.promise])
    }
    response.end()
  })
  return { made, far }
}

test.each(['wav', 'pcm', 'mp3', 'sse'])(
  'a slow reader of %s slows the engine; no data accumulates between them',
  async form => {
    const { made, far: opened } = await fountain()
    await using far = opened
    await using app = await startApp({ models: [far.model({ speech_formats: ['wav'] })] })
    const body = JSON.stringify({
      model: 'far',
      input: 'x',
      ...(form === 'sse' ? { response_format: 'wav', stream_format: 'sse' } : { response_format: form }),
    })
    const asked = request(`${app.url}/std/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' },
    })
    asked.end(body)
    const [answer] = (await once(asked, 'response')) as [import('node:http').IncomingMessage]
    expect(answer.statusCode).toBe(200)
    // Nobody reads: the engine stops when sockets and pipes are full.
    let before = -1
    await expect
      .poll(
        () => {
          const settled = made.bytes === before
          before = made.bytes
          return settled
        },
        { interval: 400, timeout: 40_000 },
      )
      .toBe(true)
    // MP3 has a sixth of the bytes of its source.
    expect(made.bytes).toBeLessThan(form === 'mp3' ? endless : 32 << 20)
    answer.destroy()
    await made.closed.promise
    expect(made.bytes).toBeLessThan(endless)
  },
  40_000,
)

test('a reader that reads nothing until the write deadline is cut', async () => {
  const { made, far: opened } = await fountain()
  await using far = opened
  await using app = await startApp({ models: [far.model()], limits: { write_deadline: '1s' } })
  const asked = request(`${app.url}/std/v1/audio/speech`, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json' },
  })
  asked.end(JSON.stringify({ model: 'far', input: 'x', response_format: 'wav' }))
  const [answer] = (await once(asked, 'response')) as [import('node:http').IncomingMessage]
  answer.on('error', () => {})
  await made.closed.promise
  expect(made.bytes).toBeLessThan(endless)
  answer.destroy()
})

test('voices that an engine reports', async () => {
  await using far = await remoteSpeaker(
    response => void response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(mp3('warm')),
    (response, { method, url }) => {
      const known = method === 'GET' && url === '/v1/audio/voices'
      response
        .writeHead(known ? 200 : 404, { 'content-type': 'application/json' })
        .end(JSON.stringify({ voices: ['af_heart', { id: 'b', name: 'Bella', language: 'en-US', gender: 'female' }] }))
    },
  )
  await using app = await startApp({ models: [far.model()] })
  const list = async () =>
    ((await (await app.fetch('/std/v1/audio/voices')).json()) as { data: { voices: object[] }[] }).data[0]!.voices
  expect(await list()).toEqual([])
  await (await say(app)).arrayBuffer()
  await expect.poll(list).toEqual([
    { id: 'af_heart', name: 'af_heart' },
    { id: 'b', name: 'Bella' },
  ])
  const unknown = { language: null, gender: null, preview_url: null }
  const models = async () => ((await (await app.fetch('/api/voice/models')).json()) as { models: object[] }).models
  await expect.poll(models).toMatchObject([
    {
      languages: ['en-US'],
      voices: [
        { id: 'af_heart', name: 'af_heart', ...unknown },
        { ...unknown, id: 'b', name: 'Bella', language: 'en-US', gender: 'female' },
      ],
    },
  ])
})

test('more audio than a job may have is an engine error', async () => {
  const { far: opened } = await fountain()
  await using far = opened
  await using app = await startApp({ models: [far.model()], limits: { output_size: '1MiB' } })
  const answer = await say(app, { response_format: 'wav' })
  await expect(answer.arrayBuffer()).rejects.toThrow()
  await expect.poll(await statusOf(app, answer)).toBe('failed')
})

test('a cancelled job aborts its engine request', async () => {
  const { made, far: opened } = await fountain()
  await using far = opened
  await using app = await startApp({ models: [far.model({ speech_formats: ['wav'] })] })
  const inputs = { input: 'x', response_format: 'mp3' }
  const submitted = await app.fetch('/api/jobs', { body: { task: 'std/audio-speech', model_id: 'far', inputs } })
  const { id } = (await submitted.json()) as { id: string }
  await expect.poll(() => made.bytes).toBeGreaterThan(1 << 20)
  const cancelled = await app.fetch(`/api/jobs/${id}/cancel`, { method: 'POST' })
  expect(await cancelled.json()).toMatchObject({ status: 'cancelled' })
  await made.closed.promise
  expect(made.bytes).toBeLessThan(endless)
  await expect.poll(() => workspacesIn(app.dataDir)).toEqual([])
})
