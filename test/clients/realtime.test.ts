import { once } from 'node:events'
import { connect } from 'node:net'
import OpenAI from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeClientEvent, RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { makeOrganization } from '../server/_organization.ts'

/** Realtime transcription, with OpenAI's client and with a bare WebSocket. */
let app: TestApp
// oxlint-disable-next-line no-explicit-any
type Json = any
const path = '/std/v1/realtime?intent=transcription'

beforeAll(async () => {
  app = await startApp({
    cors: { origins: ['https://app.example'] },
    limits: { stream_ping: '200ms' },
    models: [
      fakeModel('hears', [], { tasks: ['std/audio-transcription'] }),
      fakeModel('listens', [], { tasks: ['std/audio-transcription'] }),
      fakeModel('chat'),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

/** Base64 of a voice of harmonics and of silence, at a rate. */
function sound(parts: [seconds: number, loud: boolean][], rate = 24_000): string {
  const values: number[] = []
  for (const [seconds, loud] of parts)
    for (let at = 0; at < seconds * rate; at++) {
      const time = (2 * Math.PI * values.length) / rate
      // Quieter ten times a second, as between syllables.
      const level = loud ? 0.1 + 0.9 * Math.abs(Math.sin(5 * time)) : 0
      values.push(Math.round(level * (9_000 * Math.sin(140 * time) + 6_000 * Math.sin(420 * time))))
    }
  return Buffer.from(Int16Array.from(values).buffer).toString('base64')
}

/** A connection with its events so far. */
function open(
  to = path,
  {
    token = app.secret,
    protocols = [],
    headers = {},
  }: { token?: string | null; protocols?: string[]; headers?: object } = {},
) {
  const url = app.url.replace('http', 'ws') + to
  const socket = new WebSocket(url, protocols, {
    headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
  })
  const events: Json[] = []
  let wake: (() => void) | undefined
  socket.on('message', data => {
    events.push(JSON.parse((data as Buffer).toString('utf8')))
    wake?.()
  })
  const closed = new Promise<number>(resolve => socket.once('close', resolve))
  void closed.then(() => wake?.())
  return {
    socket,
    events,
    closed,
    send: (event: object | string) => socket.send(typeof event === 'string' ? event : JSON.stringify(event)),
    append: (audio: string) => socket.send(JSON.stringify({ type: 'input_audio_buffer.append', audio })),
    /** Resolves with the event of this type that follows those that were waited for before. */
    async seen(type: string, from = 0): Promise<Json> {
      for (;;) {
        const found = events.slice(from).find(event => event.type === type)
        if (found) return found
        if (socket.readyState === WebSocket.CLOSED) throw new Error(`closed without ${type}: ${JSON.stringify(events)}`)
        await new Promise<void>(resolve => (wake = resolve))
      }
    },
    async until(met: (events: Json[]) => boolean): Promise<void> {
      while (!met(events)) {
        if (socket.readyState === WebSocket.CLOSED) throw new Error(`closed: ${JSON.stringify(events)}`)
        await new Promise<void>(resolve => (wake = resolve))
      }
    },
    types: () => events.map(({ type }) => (type as string).replace('conversation.item.input_audio_transcription.', '')),
  }
}
const configured = (input: object) => ({ type: 'session.update', session: { type: 'transcription', audio: { input } } })
const refused = async (...options: Parameters<typeof open>): Promise<[number, string]> => {
  const { socket } = open(...options)
  const [, response] = (await once(socket, 'unexpected-response')) as [
    unknown,
    NodeJS.ReadableStream & { statusCode: number },
  ]
  let text = ''
  for await (const piece of response) text += String(piece)
  return [response.statusCode, text]
}

test("OpenAI's client: speech is detected, committed and transcribed, with text while it goes on", async () => {
  const client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret })
  const { port } = new URL(app.url)
  // The client connects with TLS only; the server of this test has none.
  const options = { createConnection: () => connect(Number(port), '127.0.0.1') }
  const realtime = new OpenAIRealtimeWS({ intent: 'transcription', options }, client)
  const events: RealtimeServerEvent[] = []
  const done = Promise.withResolvers<void>()
  realtime.on('event', event => {
    events.push(event)
    if (event.type === 'conversation.item.input_audio_transcription.completed') done.resolve()
    if (event.type === 'error') done.reject(new Error(JSON.stringify(event)))
  })
  realtime.on('error', done.reject)
  await once(realtime.socket, 'open')
  realtime.send(configured({ transcription: { model: 'hears', language: 'en' } }) as RealtimeClientEvent)
  for (const loud of [false, true, true, true, true, true, false])
    for (let piece = 0; piece < 10; piece++)
      realtime.send({ type: 'input_audio_buffer.append', audio: sound([[0.1, loud]]) })
  await done.promise
  realtime.close()
  const types = events.map(({ type }) => type)
  expect(types.slice(0, 3)).toEqual(['session.created', 'session.updated', 'input_audio_buffer.speech_started'])
  const [started, stopped, committed] = ['speech_started', 'speech_stopped', 'committed'].map(
    name => events.find(({ type }) => type === `input_audio_buffer.${name}`) as Json,
  )
  expect(started.audio_start_ms).toBeCloseTo(700, -2)
  expect(stopped.audio_end_ms).toBeCloseTo(6_500, -2)
  expect(new Set([started, stopped, committed].map(({ item_id }) => item_id)).size).toBe(1)
  const completed = events.at(-1) as Json
  expect(completed).toMatchObject({ item_id: started.item_id, usage: { type: 'duration' } })
  expect(completed.usage.seconds).toBeCloseTo(5.8, 1)
  const deltas = events.flatMap(event =>
    event.type === 'conversation.item.input_audio_transcription.delta' ? [event.delta] : [],
  )
  expect(deltas.join('')).toBe(completed.transcript)
  expect(new Set(events.map(event => (event as Json).event_id)).size).toBe(events.length)
})

test('without turn detection the client commits; 16 kHz are heard as they are, and the seconds are metered once', async () => {
  const { secret, organizationId } = await makeOrganization(app)
  const connection = open(`${path}&model=hears`, { token: secret })
  await connection.seen('session.created')
  connection.send(
    configured({
      format: { type: 'audio/pcm', rate: 16_000 },
      turn_detection: null,
      transcription: { prompt: 'mode:echo' },
    }),
  )
  const audio = sound([[1.5, true]], 16_000)
  connection.append(audio)
  connection.append(audio)
  connection.send({ type: 'input_audio_buffer.commit' })
  const { transcript, usage } = await connection.seen('conversation.item.input_audio_transcription.completed')
  expect([JSON.parse(transcript as string).seconds, usage.seconds]).toEqual([3, 3])
  connection.socket.close()
  expect(await connection.closed).toBe(1005)
  const heard = async () => {
    const response = await app.fetch(`/api/organizations/${organizationId}/usage`, { token: secret })
    return ((await response.json()) as Json).totals.audio_seconds as number
  }
  await expect.poll(heard).toBe(3)
})

test('the older events, clear, and two items in their order', async () => {
  const connection = open()
  connection.socket.once('open', () => {
    const session = { input_audio_transcription: { model: 'hears' }, turn_detection: null }
    connection.send({ type: 'transcription_session.update', session })
    connection.append(sound([[0.5, true]]))
    connection.send({ type: 'input_audio_buffer.clear' })
    for (let count = 0; count < 2; count++) {
      connection.append(sound([[0.5, true]]))
      connection.send({ type: 'input_audio_buffer.commit' })
    }
  })
  const first = await connection.seen('conversation.item.input_audio_transcription.completed')
  const at = connection.events.indexOf(first) + 1
  const second = await connection.seen('conversation.item.input_audio_transcription.completed', at)
  const committed = connection.events.filter(({ type }) => type === 'input_audio_buffer.committed')
  expect(committed.map(({ item_id }) => item_id)).toEqual([first.item_id, second.item_id])
  expect(committed.map(({ previous_item_id }) => previous_item_id)).toEqual([null, first.item_id])
  expect(connection.types().filter(type => !/delta|completed/.test(type))).toEqual([
    'session.created',
    'transcription_session.updated',
    'input_audio_buffer.cleared',
    'input_audio_buffer.committed',
    'conversation.item.created',
    'input_audio_buffer.committed',
    'conversation.item.created',
  ])
  connection.socket.close()
})

test('what is wrong becomes an error event, and the session continues', async () => {
  const connection = open()
  await connection.seen('session.created')
  const audio = sound([[1, true]])
  const wrong: [string | object, string][] = [
    ['{', 'invalid_json'],
    ['[]', 'invalid_type'],
    [{ type: 'response.create', event_id: 'mine' }, 'response.create'],
    [{ type: 'input_audio_buffer.append', audio: 7 }, 'base64'],
    [{ type: 'input_audio_buffer.append', audio: 'AAAA' }, 'base64'],
    [{ type: 'input_audio_buffer.commit' }, '100 ms'],
    [configured({ transcription: { model: 'chat' } }), "'chat' does not do speech to text"],
    [configured({ transcription: { model: 'nobody' } }), 'model_not_found'],
    [configured({ turn_detection: { type: 'semantic_vad' } }), 'semantic_vad'],
    [configured({ turn_detection: null }), ''],
    [{ type: 'input_audio_buffer.append', audio }, ''],
    [{ type: 'input_audio_buffer.commit' }, 'has no model'],
    ...Array.from(
      { length: 20 },
      () => [{ type: 'input_audio_buffer.append', audio: sound([[3, true]]) }, ''] as never,
    ),
  ]
  for (const [event] of wrong) connection.send(event)
  connection.socket.send(Buffer.from('x'))
  const expected = [...wrong.map(([, text]) => text).filter(Boolean), 'at most 60 s', 'Binary']
  await connection.until(events => events.filter(({ type }) => type === 'error').length === expected.length)
  const errors = connection.events.filter(({ type }) => type === 'error').map(({ error }) => JSON.stringify(error))
  for (const text of expected) expect(errors.join('\n')).toContain(text)
  expect(errors.find(text => text.includes('response.create'))).toContain('"event_id":"mine"')
  // A failure of the engine is that of the item.
  connection.send(configured({ transcription: { model: 'hears', prompt: 'mode:status,code=400' } }))
  connection.send({ type: 'input_audio_buffer.commit' })
  const { error } = await connection.seen('conversation.item.input_audio_transcription.failed')
  expect(error.message).toBeTruthy()
  connection.socket.close()
})

describe('before the connection is upgraded', () => {
  test.each<[string, Parameters<typeof open>, number, string]>([
    ['no token', [path, { token: null }], 401, 'missing_api_key'],
    ['a wrong token', [path, { token: 'sk-infer-wrong' }], 401, 'invalid_api_key'],
    ['another intent', ['/std/v1/realtime?intent=conversation'], 400, 'conversation'],
    ['speech to speech', ['/v1/realtime?model=gpt-realtime'], 404, 'gpt-realtime'],
    ['a model of another task', ['/v1/realtime?model=chat'], 400, 'unsupported_task'],
    ['no intent', ['/std/v1/realtime'], 400, 'intent=transcription'],
    ['another origin', [path, { headers: { origin: 'https://evil.example' } }], 403, 'origin_not_allowed'],
    ['another host', [path, { headers: { host: 'evil.example' } }], 421, 'invalid_host'],
    ['another path', ['/std/v1/models'], 200, '"list"'],
  ])('%s is refused with a status', async (_, options, status, contains) => {
    const [code, text] = await refused(...options)
    expect([code, text]).toEqual([status, expect.stringContaining(contains)])
  })

  test('a request without an upgrade, and tokens for browsers, are refused by name', async () => {
    expect(await (await app.fetch(path)).text()).toContain('WebSocket')
    const secrets = await app.fetch('/std/v1/realtime/client_secrets', { body: {} })
    expect([secrets.status, await secrets.text()]).toEqual([404, expect.stringContaining('Tokens for browsers')])
  })
})

test('a browser sends its token as a subprotocol, from a listed origin', async () => {
  const connection = open(path, {
    token: null,
    protocols: ['realtime', `openai-insecure-api-key.${app.secret}`],
    headers: { origin: 'https://app.example' },
  })
  await connection.seen('session.created')
  expect(connection.socket.protocol).toBe('realtime')
  connection.socket.close()
})

test('a message that is too long, and a token that is revoked, close the connection', async () => {
  const long = open()
  await long.seen('session.created')
  long.send({ type: 'input_audio_buffer.append', audio: 'A'.repeat(1 << 21) })
  expect(await long.closed).toBe(1009)
  const body = { name: 'voice', scopes: ['user:write'] }
  const made = (await (await app.fetch(`/api/organizations/${app.organizationId}/tokens`, { body })).json()) as Json
  const connection = open(path, { token: made.secret })
  await connection.seen('session.created')
  const since = performance.now()
  await app.fetch(`/api/organizations/${app.organizationId}/tokens/${made.token.id}`, { method: 'DELETE' })
  expect(await connection.closed).toBe(1008)
  expect(performance.now() - since).toBeLessThan(2_000)
  expect(connection.events.at(-1).error.message).toContain('revoked')
})

test('utterances count as submissions, connections as streams, and a silent one is pinged', async () => {
  const { secret } = await makeOrganization(app, { jobsPerMinute: 1 })
  const connection = open(`${path}&model=hears`, { token: secret })
  await connection.seen('session.created')
  const pinged = once(connection.socket, 'ping')
  connection.send(configured({ turn_detection: null }))
  for (let count = 0; count < 2; count++) {
    connection.append(sound([[0.5, true]]))
    connection.send({ type: 'input_audio_buffer.commit' })
  }
  const { error } = await connection.seen('conversation.item.input_audio_transcription.failed')
  expect(error.code).toBe('rate_limit')
  await pinged
  connection.socket.terminate()
})

test('a server that stops closes its sessions', async () => {
  await using other = await startApp({ models: [fakeModel('hears', [], { tasks: ['std/audio-transcription'] })] })
  const socket = new WebSocket(other.url.replace('http', 'ws') + path, {
    headers: { authorization: `Bearer ${other.secret}` },
  })
  await once(socket, 'message')
  const closed = once(socket, 'close')
  const stopped = other.app.close()
  expect((await closed)[0]).toBe(1001)
  await stopped
})
