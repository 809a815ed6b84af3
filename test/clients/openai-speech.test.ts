import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { hasFfmpeg, heardIn, heardInWav, toneModel } from '../server/surfaces/openai/_speech.ts'

/** The official client, with only the base URL changed. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ models: [toneModel()] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const speech = { model: 'tones', voice: 'alto', input: 'Said by the client.' }

test('audio, whole', async () => {
  const answer = await client.audio.speech.create({ ...speech, response_format: 'wav', speed: 1.5 })
  expect(answer.headers.get('content-type')).toBe('audio/wav')
  expect(heardInWav(new Uint8Array(await answer.arrayBuffer()))).toBe(speech.input)
})

test.skipIf(!hasFfmpeg)('in the default format, streamed', async () => {
  const answer = await client.audio.speech.create({ ...speech, instructions: 'Cheerfully.' })
  expect(answer.headers.get('content-type')).toBe('audio/mpeg')
  const pieces: Uint8Array[] = []
  for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) pieces.push(piece)
  expect(heardIn(Buffer.concat(pieces))).toBe(speech.input)
})

test('server-sent events', async () => {
  const answer = await client.audio.speech.create({ ...speech, response_format: 'wav', stream_format: 'sse' })
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  const events = (await answer.text())
    .trim()
    .split('\n\n')
    .map(
      event =>
        JSON.parse(event.replace('data: ', '')) as OpenAI.Audio.SpeechCreateParams & { type: string; audio?: string },
    )
  expect(events.at(-1)!.type).toBe('speech.audio.done')
  const pieces = events.flatMap(({ audio }) => (audio === undefined ? [] : [Buffer.from(audio, 'base64')]))
  expect(heardInWav(Buffer.concat(pieces))).toBe(speech.input)
})

test('an unknown voice', async () => {
  const error: unknown = await client.audio.speech
    .create({ ...speech, voice: 'nobody' })
    .catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(OpenAI.BadRequestError)
  const { code, param, message } = error as InstanceType<typeof OpenAI.APIError>
  expect({ code, param }).toEqual({ code: 'invalid_value', param: 'voice' })
  expect(message).toContain('alto, bass, soprano')
})
