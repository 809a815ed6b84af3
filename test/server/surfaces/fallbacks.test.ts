import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { wavHead } from '../../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp } from '../../_app.ts'
import { type OwnEngine, startEngine } from '../../_engine.ts'
import { makeOrganization } from '../_organization.ts'
import { heardInWav, remoteSpeaker, toneModel } from './openai/_speech.ts'
import { painters } from './slug/_painter.ts'

/** Models that answer in place of others on surfaces beside those of OpenAI's text. */
let app: TestApp
let ears: OwnEngine
let reader: Awaited<ReturnType<typeof openReader>>
let far: Awaited<ReturnType<typeof remoteSpeaker>>
// oxlint-disable-next-line no-explicit-any
type Json = any
const hearing = { tasks: ['std/audio-transcription', 'std/audio-translation'] }
const price = (input_per_million_tokens: number) => ({ price: { input_per_million_tokens } })
const spoken = (per_thousand_characters: number) => ({ price: { per_thousand_characters } })
const seconds = (per_audio_second: number) => ({ price: { per_audio_second } })
const broken = ['--exit', '3']

/** Two seconds of a tone. */
const samples = Buffer.alloc(64_000)
for (let at = 0; at < 32_000; at++) samples.writeInt16LE(Math.round(8_000 * Math.sin(at / 6)), 2 * at)
const wav = Buffer.concat([wavHead(16_000, samples.length), samples])
const url = `data:audio/wav;base64,${wav.toString('base64')}`
const heard = 'The cat sat on the mat. The dog barked.'

/** A server that reads every request to its end, and then fails. */
async function openReader() {
  const lengths: number[] = []
  const server = createServer((request, response) => {
    let length = 0
    request.on('data', (chunk: Buffer) => void (length += chunk.length))
    request.on('end', () => {
      lengths.push(length)
      response.writeHead(500).end()
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lengths,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

beforeAll(async () => {
  // Fails in the way that the text says.
  far = await remoteSpeaker((response, _, { input }) => {
    if (input === 'breaks later') {
      response.writeHead(200, { 'content-type': 'audio/wav' }).write(wav.subarray(0, 20_000))
      return void setImmediate(() => response.destroy())
    }
    response.writeHead(input === 'refused' ? 400 : 500, { 'content-type': 'application/json' })
    response.end('{"error":{"message":"no voice today"}}')
  })
  ears = await startEngine()
  reader = await openReader()
  app = await startApp({
    models: [
      far.model({ ...spoken(1), fallbacks: [{ model: 'mute' }, { model: 'tones' }] }),
      toneModel({ id: 'mute', voices: ['alto'], ...spoken(2) }),
      toneModel(spoken(3)),
      fakeModel('no-whisper', broken, { ...hearing, ...seconds(1), fallbacks: [{ model: 'whisper' }], max_queue: 0 }),
      { id: 'breaks', engine: 'remote', url: `${reader.url}/v1`, ...hearing, fallbacks: [{ model: 'whisper' }] },
      { id: 'streams', engine: 'remote', url: `${ears.url}/v1`, ...hearing, fallbacks: [{ model: 'whisper' }] },
      fakeModel('whisper', [], { ...hearing, ...seconds(2) }),
      fakeModel('busy', [], { ...hearing, concurrency: 1, max_queue: 1, fallbacks: [{ model: 'whisper' }] }),
      fakeModel('writer', broken, { dispatch_wait_ms: '500ms', fallbacks: [{ model: 'author' }] }),
      fakeModel('author', [], price(5)),
      fakeModel('huge', [], {
        memory: '100TiB',
        slug: 'fake/huge',
        tasks: ['slug/text-to-image', 'std/image-generation'],
        fallbacks: [{ model: 'brush' }],
      }),
      fakeModel('brush', [], { tasks: ['slug/text-to-image', 'std/image-generation'] }),
      ...painters,
    ],
    prompt_rewriting: { model: 'writer' },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await ears[Symbol.asyncDispose]()
  await reader[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
})

const told = ({ headers }: Response) => [headers.get('x-infer-model'), headers.get('x-infer-fallback')]
const job = async (id: string | null, token = app.secret): Promise<Json> =>
  (await app.fetch(`/api/jobs/${id}?wait=20`, { token })).json()
const recordOf = (answer: Response, token?: string) => job(answer.headers.get('x-job-id'), token)
const latest = async (token: string): Promise<Json[]> =>
  ((await (await app.fetch('/api/jobs', { token })).json()) as Json).jobs
/** A token of its own organization, which sees only the records of one test. */
const own = async (models: string[] | null = null) => (await makeOrganization(app, { models })).secret

describe('speech', () => {
  const speak = (body: object, token = app.secret) =>
    app.fetch('/std/v1/audio/speech', { body: { model: 'far', response_format: 'wav', ...body }, token })

  test('of an engine that fails is synthesized by the fallback, at its own price', async () => {
    const answer = await speak({ input: 'Hello' })
    expect([answer.status, ...told(answer)]).toEqual([200, 'mute', 'far; failed'])
    expect(heardInWav(Buffer.from(await answer.arrayBuffer()))).toBe('Hello')
    expect(await recordOf(answer)).toMatchObject({
      status: 'completed',
      model_id: 'mute',
      requested_model: 'far',
      fallback_reason: 'failed',
      cost: 0.01,
    })
  })

  test('passes over a fallback without the voice', async () => {
    expect(told(await speak({ input: 'Hello', voice: 'bass' }))).toEqual(['tones', 'far; failed'])
  })

  test('of a request that the engine refuses is not repeated', async () => {
    const answer = await speak({ input: 'refused' })
    expect([answer.status, ...told(answer)]).toEqual([400, null, null])
  })

  test.each(['audio', 'sse'])('that has begun does not change its model: %s', async stream_format => {
    const answer = await speak({ input: 'breaks later', stream_format })
    expect([answer.status, ...told(answer)]).toEqual([200, null, null])
    const bytes = await answer.arrayBuffer().catch(() => undefined)
    if (stream_format === 'sse') expect(Buffer.from(bytes!).toString('utf8')).toContain('"code":"worker_error"')
    else expect(bytes).toBeUndefined()
    expect(await recordOf(answer)).toMatchObject({ status: 'failed', model_id: 'far', fallback_reason: null })
  })

  test('is not synthesized by a model that the token may not use', async () => {
    expect((await speak({ input: 'Hello' }, await own(['far']))).status).toBe(502)
    expect(told(await speak({ input: 'Hello' }, await own(['far', 'tones'])))).toEqual(['tones', 'far; failed'])
  })
})

describe('a transcription', () => {
  const form = (fields: object, token = app.secret) => {
    const body = new FormData()
    for (const [name, value] of Object.entries(fields)) body.append(name, String(value))
    body.append('file', new Blob([new Uint8Array(wav)], { type: 'audio/wav' }), 'speech.wav')
    const headers = { authorization: `Bearer ${token}` }
    return fetch(`${app.url}/std/v1/audio/transcriptions`, { method: 'POST', headers, body })
  }

  test('of a model that cannot be started or has no room is made by the fallback, from the uploaded file', async () => {
    const answer = await form({ model: 'no-whisper' })
    expect([answer.status, ...told(answer)]).toEqual([200, 'whisper', 'no-whisper; failed'])
    expect(await answer.json()).toMatchObject({ text: heard })
    expect(await recordOf(answer)).toMatchObject({
      model_id: 'whisper',
      requested_model: 'no-whisper',
      fallback_reason: 'failed',
      cost: 4,
    })
  })

  test.each([
    ['a file', () => form({ model: 'breaks' })],
    ['a data: URL', () => app.fetch('/std/v1/audio/transcriptions', { body: { model: 'breaks', url } })],
  ])(
    'of an engine that has read the audio and fails is made by the fallback, from the same audio: %s',
    async (_, send) => {
      reader.lengths.length = 0
      const answer = await send()
      expect([answer.status, ...told(answer)]).toEqual([200, 'whisper', 'breaks; failed'])
      expect(await answer.json()).toMatchObject({ text: heard, usage: { seconds: 2 } })
      expect(reader.lengths.length).toBeGreaterThan(0)
      for (const length of reader.lengths) expect(length).toBeGreaterThan(wav.length)
      const line = app.lines.find(one => one.includes('A fallback answers') && one.includes('"from":"breaks"'))
      expect(line).toContain('"model":"whisper","reason":"failed"')
    },
  )

  test('that is streamed is made by the fallback until the first event, and not afterwards', async () => {
    const whole = await form({ model: 'no-whisper', stream: true })
    expect(told(whole)).toEqual(['whisper', 'no-whisper; failed'])
    expect(await whole.text()).toContain('transcript.text.done')
    const half = await form({ model: 'streams', stream: true, prompt: 'mode:stream,as=break,wait=1' })
    expect([half.status, ...told(half)]).toEqual([200, null, null])
    await fetch(`${ears.url}/release`)
    expect(await half.text()).toContain('"code":"worker_error"')
    expect(await recordOf(half)).toMatchObject({ status: 'failed', model_id: 'streams', fallback_reason: null })
  })

  test('is not made by a model that the token may not use', async () => {
    expect([502, 503]).toContain((await form({ model: 'no-whisper' }, await own(['no-whisper']))).status)
  })

  test('that can neither wait nor be made by a fallback is refused before its audio is decoded', async () => {
    const only = await own(['busy'])
    const ending = new AbortController()
    const broken = (token: string) =>
      app.fetch('/std/v1/audio/transcriptions', { body: { model: 'busy', url: 'data:audio/wav;base64,AAAA' }, token })
    const held = [0, 1].map(() =>
      app.fetch('/std/v1/audio/transcriptions', {
        body: { model: 'busy', url, prompt: 'mode:silent' },
        token: only,
        signal: ending.signal,
      }),
    )
    // Until the second one waits, the broken audio is decoded.
    await expect.poll(async () => (await broken(only)).status).toBe(429)
    expect((await broken(await own(['busy', 'whisper']))).status).toBe(400)
    ending.abort()
    await Promise.allSettled(held)
  })

  test('of a realtime session is made by the fallback', async () => {
    const token = await own()
    const socket = new WebSocket(`${app.url.replace('http', 'ws')}/std/v1/realtime?intent=transcription`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const done = new Promise<Json>(resolve =>
      socket.on('message', data => {
        const event = JSON.parse((data as Buffer).toString('utf8'))
        if (/transcription\.(completed|failed)$|^error$/.test(event.type as string)) resolve(event)
      }),
    )
    await once(socket, 'open')
    const input = { transcription: { model: 'no-whisper' }, turn_detection: null }
    const send = (event: object) => socket.send(JSON.stringify(event))
    send({ type: 'session.update', session: { type: 'transcription', audio: { input } } })
    send({ type: 'input_audio_buffer.append', audio: samples.toString('base64') })
    send({ type: 'input_audio_buffer.commit' })
    expect(await done).toMatchObject({ transcript: heard })
    socket.close()
    await expect
      .poll(() => latest(token))
      .toContainEqual(
        expect.objectContaining({ model_id: 'whisper', requested_model: 'no-whisper', fallback_reason: 'failed' }),
      )
  })
})

test.each([
  ['/std/v1/images/generations', { model: 'huge', size: '64x64' }],
  ['/slug/fake/huge', { image_size: { width: 64, height: 64 }, sync_mode: true }],
  ['/fal/run/fake/huge', { image_size: { width: 64, height: 64 } }],
])('an image that a caller waits for is made by the fallback, which the headers name: %s', async (path, body) => {
  const answer = await app.fetch(path, { body: { prompt: 'a cat', ...body } })
  expect([answer.status, ...told(answer)]).toEqual([200, 'brush', 'huge; failed'])
})

describe('a chat', () => {
  const messages = [{ role: 'user', content: 'Hello' }]
  const mcp = async (name: string, input: object, token = app.secret) => {
    const answer = await app.fetch('/mcp', {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: input } },
      headers: { accept: 'application/json, text/event-stream' },
      token,
    })
    return { answer, result: ((await answer.json()) as Json).result }
  }

  test('of an MCP tool is answered by the fallback', async () => {
    const token = await own()
    const { answer, result } = await mcp('chat_completion', { model: 'writer', messages }, token)
    expect(told(answer)).toEqual(['author', 'writer; failed'])
    expect(result.structuredContent).toMatchObject({ model: 'author' })
    await expect
      .poll(() => latest(token))
      .toMatchObject([{ model_id: 'author', requested_model: 'writer', fallback_reason: 'failed' }])
  })

  test('of an MCP tool is not answered by a model that the token may not use', async () => {
    const { result } = await mcp('chat_completion', { model: 'writer', messages }, await own(['writer']))
    expect(result.isError).toBe(true)
  })

  test('that rewrites a prompt is answered by the fallback, which the answer names', async () => {
    const body = { prompt: 'a cat mode:rewrites' }
    const answer = await app.fetch('/api/prompt-rewrite', { body })
    expect(told(answer)).toEqual(['author', 'writer; failed'])
    expect(await answer.json()).toMatchObject({ prompt: 'rewritten 1', model: 'author' })
    const refused = await app.fetch('/api/prompt-rewrite', { body, token: await own(['writer']) })
    expect([502, 503]).toContain(refused.status)
  })

  test('that rewrites the prompt of a job is answered by the fallback, and recorded as its own work', async () => {
    const token = await own()
    const size = { image_size: { width: 64, height: 64 } }
    const made = await app.fetch('/api/jobs', {
      body: {
        slug: 'fake/solo',
        inputs: { prompt: 'a cat mode:rewrites', ...size, enable_prompt_expansion: true },
      },
      token,
    })
    const { id } = (await made.json()) as { id: string }
    expect(await job(id, token)).toMatchObject({ status: 'completed', fallback_reason: null })
    expect(await latest(token)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ model_id: 'author', requested_model: 'writer', fallback_reason: 'failed' }),
      ]),
    )
  })
})
