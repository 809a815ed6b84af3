import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wavHead } from '../../../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { faults } from '../../../golden/openai.ts'
import { hasFfmpeg, heardIn, heardInWav, toneModel } from './_speech.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      toneModel(),
      toneModel({ id: 'short', features: [], speech_input: 5, voices: ['bass'] }),
      fakeModel('fake'),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const say = (body: object, headers?: Record<string, string>) =>
  app.fetch('/std/v1/audio/speech', { body: { model: 'tones', ...body }, headers })
const bytesOf = async (answer: Response) => new Uint8Array(await answer.arrayBuffer())

test('a text is synthesized as WAV, and its usage is recorded', async () => {
  const answer = await say({ input: 'Grüße, 你好!', voice: 'bass', response_format: 'wav' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('content-type')).toBe('audio/wav')
  expect(answer.headers.get('content-disposition')).toBe('attachment; filename="speech.wav"')
  expect(answer.headers.get('transfer-encoding')).toBe('chunked')
  expect(heardInWav(await bytesOf(answer))).toBe('Grüße, 你好!')
  const id = answer.headers.get('x-job-id')!
  await expect
    .poll(async () => (await (await app.fetch(`/api/jobs/${id}`)).json()) as object)
    .toMatchObject({
      kind: 'sync',
      task: 'std/audio-speech',
      model_id: 'tones',
      status: 'completed',
      usage: { input_tokens: 0, characters: 10, output_tokens: 0 },
    })
})

test('speed and voice change the audio and not its text', async () => {
  const said = async (more: object) => bytesOf(await say({ input: 'Hello', response_format: 'wav', ...more }))
  const [usual, fast, bass, byId] = await Promise.all([
    said({}),
    said({ speed: 2 }),
    said({ voice: 'bass' }),
    said({ voice: { id: 'bass' } }),
  ])
  expect(fast.length).toBeLessThan(usual.length * 0.6)
  expect(bass).not.toEqual(usual)
  expect(byId).toEqual(bass)
  expect([usual, fast, bass].map(heardInWav)).toEqual(['Hello', 'Hello', 'Hello'])
})

describe.skipIf(!hasFfmpeg)('other formats are converted from the WAV of the engine', () => {
  test.each([
    [undefined, 'audio/mpeg', 'mp3', []],
    ['mp3', 'audio/mpeg', 'mp3', []],
    ['opus', 'audio/ogg', 'ogg', []],
    ['aac', 'audio/aac', 'aac', []],
    ['flac', 'audio/flac', 'flac', []],
    ['pcm', 'audio/pcm;rate=24000', 'pcm', ['-f', 's16le', '-ar', '24000', '-ac', '1']],
  ] as const)('%s', async (response_format, type, ending, options) => {
    const answer = await say({ input: 'Every word of it. Twice!', response_format })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toBe(type)
    expect(answer.headers.get('content-disposition')).toContain(`speech.${ending}"`)
    expect(heardIn(await bytesOf(answer), [...options])).toBe('Every word of it. Twice!')
  })

  test('many MP3 requests at once run in parallel', async () => {
    const texts = Array.from({ length: 12 }, (_, at) => `Text number ${at}. `.repeat(5))
    const heard = await Promise.all(texts.map(async input => heardIn(await bytesOf(await say({ input })))))
    expect(heard).toEqual(texts)
  })
})

test('as server-sent events', async () => {
  const answer = await say({ input: 'In pieces', response_format: 'wav', stream_format: 'sse' })
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const events = (await answer.text())
    .split('\n\n')
    .filter(Boolean)
    .map(event => JSON.parse(event.replace(/^data: /, '')) as { type: string; audio?: string; usage?: object })
  expect(events.at(-1)).toEqual({
    type: 'speech.audio.done',
    usage: { input_tokens: 0, output_tokens: 0, total_tokens: 0, characters: 9, audio_seconds: expect.any(Number) },
  })
  const pieces = events.slice(0, -1)
  expect(faults('SpeechAudioDoneEvent', events.at(-1))).toEqual([])
  for (const piece of pieces) expect(faults('SpeechAudioDeltaEvent', piece)).toEqual([])
  expect(new Set(pieces.map(({ type }) => type))).toEqual(new Set(['speech.audio.delta']))
  expect(heardInWav(Buffer.concat(pieces.map(({ audio }) => Buffer.from(audio!, 'base64'))))).toBe('In pieces')
})

describe('errors name the field', () => {
  test.each([
    [{}, 'missing_required_parameter', 'input', /input/],
    [{ input: '' }, 'invalid_value', 'input', /empty/],
    [{ input: 'x', voice: 'tenor' }, 'invalid_value', 'voice', /has no voice 'tenor'\. It has: alto, bass, soprano\./],
    [{ input: 'x', voice: { id: 'tenor' } }, 'invalid_value', 'voice', /alto, bass, soprano/],
    [{ input: 'x', response_format: 'midi' }, 'invalid_value', 'response_format', /mp3, opus, aac, flac, wav, pcm/],
    [{ input: 'x', speed: 5 }, 'invalid_value', 'speed', /at most 4/],
    [{ input: 'x', stream_format: 'ws' }, 'invalid_value', 'stream_format', /audio, sse/],
    [{ input: 'x', reference_text: 'y' }, 'unsupported_parameter', 'reference_text', /reference_audio/],
    [{ input: 'x'.repeat(4097) }, 'string_above_max_length', 'input', /4096/],
    [{ input: '🙂'.repeat(6), model: 'short' }, 'string_above_max_length', 'input', /longer than 5 char/],
    [{ input: 'x', voice: 'alto', model: 'short' }, 'invalid_value', 'voice', /It has: bass\./],
    [{ input: 'x', model: 'nobody' }, 'model_not_found', 'model', /text to speech there is 'tones'/],
    [{ input: 'x', model: 'fake' }, 'unsupported_task', 'model', /text to speech/],
  ])('%j', async (body, code, param, message) => {
    const answer = await say(body)
    const { error } = (await answer.json()) as { error: { code: string; param: string; message: string } }
    expect(error).toMatchObject({ code, param })
    expect(error.message).toMatch(message)
    expect(answer.status).toBe(code === 'model_not_found' ? 404 : 400)
  })

  test('five characters are counted as five, however many bytes they have', async () => {
    expect((await say({ input: '🙂'.repeat(5), model: 'short', response_format: 'wav' })).status).toBe(200)
  })
})

describe('reference_audio', () => {
  const urlOf = (bytes: Uint8Array) => `data:audio/wav;base64,${Buffer.from(bytes).toString('base64')}`
  const spoken = async (more: object) => bytesOf(await say({ response_format: 'wav', ...more }))

  test('the voice is that of the recording: as a call, and as a job with a file', async () => {
    const [recording, bass] = [
      await spoken({ input: 'Me.', voice: 'bass' }),
      await spoken({ input: 'Hi', voice: 'bass' }),
    ]
    const reference_audio = urlOf(recording)
    expect(await spoken({ input: 'Hi', reference_audio, reference_text: 'Me.' })).toEqual(bass)
    // A large body, whose recording never becomes a string of the event loop.
    const long = await spoken({ input: 'x'.repeat(400), voice: 'bass' })
    expect(await spoken({ input: 'Hi', reference_audio: urlOf(long.slice(0, 44 + 1_400_000)) })).toEqual(bass)
    const inputs = { input: 'Hi', response_format: 'wav', reference_audio }
    const body = { task: 'std/audio-speech', model_id: 'tones', inputs }
    const { id } = (await (await app.fetch('/api/jobs', { body })).json()) as { id: string }
    const job = async () => (await (await app.fetch(`/api/jobs/${id}`)).json()) as Record<string, never>
    await expect.poll(async () => (await job()).status).toBe('completed')
    const done = (await job()) as unknown as { result: { audio_url: string }; inputs: object }
    expect(done.inputs).toMatchObject({ input: 'Hi', reference_audio: expect.stringMatching(/^file-/) as string })
    expect(await bytesOf(await fetch(done.result.audio_url))).toEqual(bass)
  })

  test('unusable recordings, and models that clone no voices, are refused by name', async () => {
    const silence = urlOf(Buffer.concat([wavHead(16_000, 32_000), Buffer.alloc(32_000)]))
    const long = urlOf(Buffer.concat([wavHead(16_000, 31 * 32_000), Buffer.alloc(31 * 32_000)]))
    const cases: [object, code: string, message: RegExp][] = [
      [
        { model: 'short', reference_audio: silence },
        'unsupported_parameter',
        /'short' \(demo\) cannot do 'voice_cloning'/,
      ],
      [{ reference_audio: silence }, 'invalid_value', /none of the voices/],
      [{ reference_audio: long }, 'invalid_audio', /'reference_audio' lasts longer than 30 s/],
      [{ reference_audio: 'nothing' }, 'invalid_value', /'reference_audio'/],
      [{ reference_audio: 'file-01K2ZZZZZZ7QK2M9XDAAAAAAA1' }, 'not_found', /'reference_audio' names the file/],
    ]
    for (const [body, code, message] of cases) {
      const { error } = (await (await say({ input: 'x', ...body })).json()) as {
        error: { code: string; message: string }
      }
      expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)])
    }
  })
})

test('a repeated idempotency key synthesizes nothing', async () => {
  const once = () => say({ input: 'Once', response_format: 'wav' }, { 'idempotency-key': 'one' })
  expect((await once()).status).toBe(200)
  await expect.poll(async () => (await once()).status).toBe(409)
  const other = await say({ input: 'Other', response_format: 'wav' }, { 'idempotency-key': 'one' })
  expect(other.status).toBe(422)
})

test('an invalid idempotency key is refused before the body is checked', async () => {
  const refused = await say({ input: '' }, { 'idempotency-key': 'a b' })
  expect([refused.status, await refused.json()]).toMatchObject([400, { error: { param: 'Idempotency-Key' } }])
})

test('voices are listed', async () => {
  const list = async (path: string) => (await app.fetch(path)).json()
  const own = ['alto', 'bass', 'soprano'].map(id => ({ id, name: id }))
  expect(await list('/std/v1/audio/voices')).toEqual({
    object: 'list',
    data: [
      { model: 'tones', voices: own },
      { model: 'short', voices: [{ id: 'bass', name: 'bass' }] },
    ],
  })
  expect(await list('/v1/audio/voices?model=tones')).toEqual({
    object: 'list',
    data: [{ model: 'tones', voices: own }],
  })
  expect((await app.fetch('/v1/audio/voices?model=nobody')).status).toBe(404)
})

test('speech models are listed with their fields', async () => {
  const { models } = (await (await app.fetch('/api/voice/models')).json()) as { models: object[] }
  expect(models).toEqual([
    {
      model_id: 'tones',
      name: 'tones',
      description: null,
      task: 'std/audio-speech',
      default_voice: 'alto',
      formats: hasFfmpeg ? ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm'] : ['mp3', 'wav', 'pcm'],
      languages: null,
      supports_cloning: true,
      max_input_characters: 4096,
      voice_aliases: expect.objectContaining({ alloy: 'alto', onyx: 'bass' }) as object,
      voices: ['alto', 'bass', 'soprano'].map(id => ({
        id,
        name: id,
        language: null,
        gender: null,
        preview_url: null,
      })),
    },
    expect.objectContaining({
      model_id: 'short',
      default_voice: 'bass',
      max_input_characters: 5,
      supports_cloning: false,
    }),
  ])
})

describe('without ffmpeg', () => {
  test('formats that need it are neither listed nor made, and the rest works', async () => {
    await using poor = await startApp({ models: [toneModel()], media: { ffmpeg: '/nowhere/ffmpeg' } })
    const { models } = (await (await poor.fetch('/api/voice/models')).json()) as { models: { formats: string[] }[] }
    expect(models[0]!.formats).toEqual(['mp3', 'wav', 'pcm'])
    const ask = (response_format: string) =>
      poor.fetch('/v1/audio/speech', { body: { model: 'tones', input: 'x', response_format } })
    expect((await ask('mp3')).status).toBe(200)
    const { error } = (await (await ask('opus')).json()) as { error: { code: string; message: string } }
    expect(error).toMatchObject({
      code: 'unsupported_parameter',
      message: expect.stringContaining('apt install ffmpeg'),
    })
    const job = await poor.fetch('/api/jobs', {
      body: { task: 'std/audio-speech', model_id: 'tones', inputs: { input: 'x', response_format: 'flac' } },
    })
    expect(job.status).toBe(400)
  })
})

describe('as a job', () => {
  interface Job {
    id: string
    queue_id: string
    status: string
    error: unknown
    usage: object
    result: { audio_url: string; file_id: string; content_type: string; duration: number; format: string }
  }
  const ended = async (id: string): Promise<Job> => {
    await expect
      .poll(async () => ((await (await app.fetch(`/api/jobs/${id}`)).json()) as Job).status)
      .toMatch(/completed|failed/)
    return (await (await app.fetch(`/api/jobs/${id}`)).json()) as Job
  }
  const submit = async (inputs: object) => {
    const answer = await app.fetch('/api/jobs', { body: { task: 'std/audio-speech', model_id: 'tones', inputs } })
    return { status: answer.status, body: (await answer.json()) as Job & { error: { code: string; param: string } } }
  }

  test('it makes a file, with an address for its reader', async () => {
    const { status, body } = await submit({ input: 'Kept for later', response_format: 'wav', stream_format: 'sse' })
    expect(status).toBe(202)
    const job = await ended(body.id)
    expect(job).toMatchObject({ status: 'completed', error: null, usage: { input_tokens: 0, characters: 14 } })
    const { audio_url, file_id, ...facts } = job.result
    expect(facts).toEqual({ content_type: 'audio/wav', duration: expect.closeTo(0.03 * (28 + 20), 3), format: 'wav' })
    expect(audio_url.startsWith(`${app.url}/files/${file_id}/speech.wav?`)).toBe(true)
    const file = await fetch(audio_url)
    expect(file.headers.get('content-type')).toBe('audio/wav')
    expect(heardInWav(await bytesOf(file))).toBe('Kept for later')
    const listed = (await (await app.fetch('/api/library?kind=audio&q=kept')).json()) as { items: object[] }
    expect(listed.items[0]).toMatchObject({
      id: file_id,
      kind: 'audio',
      prompt: 'Kept for later',
      job_id: job.id,
      seed: null,
      thumbnail_url: null,
    })

    const view = (await (await app.fetch(`/slug/requests/${job.queue_id}`)).json()) as Record<string, unknown>
    expect(view).toMatchObject({ status: 'completed', format: 'wav', audio_url: expect.stringContaining(file_id) })
    const again = await app.fetch(`/api/jobs/${job.id}/retry`, { method: 'POST' })
    const { id } = (await again.json()) as Job
    expect((await ended(id)).result.file_id).not.toBe(file_id)
  })

  test.skipIf(!hasFfmpeg).each(['mp3', 'opus', 'flac', 'pcm'])(
    'the length of %s is measured',
    async response_format => {
      const { body } = await submit({ input: 'As long as it is said to be', response_format })
      const { result } = await ended(body.id)
      expect(result.format).toBe(response_format)
      expect(Math.abs(result.duration - 0.03 * (54 + 20))).toBeLessThan(0.12)
    },
  )

  test('invalid fields are refused at once, under the names that were sent', async () => {
    const { status, body } = await submit({ input: 'x', voice: 'tenor' })
    expect(status).toBe(400)
    expect(body.error).toMatchObject({ code: 'invalid_value', param: 'inputs.voice' })
  })

  test('Prefer: respond-async', async () => {
    const answer = await say({ input: 'Later' }, { prefer: 'respond-async' })
    expect(answer.status).toBe(202)
    const job = await ended(((await answer.json()) as Job).id)
    expect(job.result).toMatchObject({ format: 'mp3', content_type: 'audio/mpeg' })
  })
})
