import OpenAI, { toFile } from 'openai'
import type { TranscriptionDiarized, TranscriptionVerbose } from 'openai/resources/audio/transcriptions'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { wavHead } from '../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { toneModel } from '../server/surfaces/openai/_speech.ts'

/** Transcribes audio with the official client, with only the base URL changed. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('far', [], { tasks: ['std/audio-transcription', 'std/audio-translation'] }),
      toneModel(),
      toneModel({ id: 'ear', tasks: ['std/audio-transcription'] }),
    ],
  })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const wav = Buffer.concat([wavHead(16_000, 64_000), Buffer.alloc(64_000, 'tone')])
const file = () => toFile(wav, 'speech.wav')
const url = `data:audio/wav;base64,${wav.toString('base64')}`
const heard = 'The cat sat on the mat. The dog barked.'

test('json, with the request id', async () => {
  const { data, request_id } = await client.audio.transcriptions
    .create({ model: 'far', file: await file() })
    .withResponse()
  expect(data).toEqual({
    text: heard,
    usage: { type: 'duration', seconds: 2 },
    x_groq: { id: request_id },
  })
})

test('verbose_json with word timestamps', async () => {
  const told: TranscriptionVerbose = await client.audio.transcriptions.create({
    model: 'far',
    file: await file(),
    response_format: 'verbose_json',
    timestamp_granularities: ['word', 'segment'],
    language: 'en',
    temperature: 0,
  })
  expect(told).toMatchObject({
    text: heard,
    language: 'english',
    duration: 2,
    words: [{ word: 'The', start: 0, end: 0.5 }],
  })
  expect(told.segments!.map(({ start, end }) => [start, end])).toEqual([
    [0, 1],
    [1, 2],
  ])
})

test.each(['text', 'srt', 'vtt'] as const)('%s is a string', async response_format => {
  const told = await client.audio.transcriptions.create({
    model: 'far',
    file: await file(),
    response_format,
  })
  expect(told).toContain('The dog barked.\n')
  expect(told.startsWith({ text: 'The cat', srt: '1\n', vtt: 'WEBVTT' }[response_format])).toBe(true)
})

test('diarized_json', async () => {
  const told = (await client.audio.transcriptions.create({
    model: 'far',
    file: await file(),
    response_format: 'diarized_json',
    chunking_strategy: 'auto',
    prompt: 'mode:speakers',
  })) as unknown as TranscriptionDiarized
  expect(told.segments.map(({ speaker, type }) => [speaker, type])).toEqual([
    ['A', 'transcript.text.segment'],
    ['B', 'transcript.text.segment'],
  ])
})

test('a stream', async () => {
  const stream = await client.audio.transcriptions.create({ model: 'far', file: await file(), stream: true })
  let text = ''
  const types: string[] = []
  for await (const event of stream) {
    types.push(event.type)
    if (event.type === 'transcript.text.delta') text += event.delta
    if (event.type === 'transcript.text.done') expect(event.text).toBe(text)
  }
  expect([text, types.at(-1)]).toEqual([heard, 'transcript.text.done'])
})

test('a stream that arrives word by word', async () => {
  const input = 'The cat sat on the mat, and the dog barked at the cat.'
  const said = await client.audio.speech.create({ model: 'tones', voice: 'alto', input, response_format: 'wav' })
  const stream = await client.audio.transcriptions.create({
    model: 'ear',
    file: await toFile(said, 'a.wav'),
    stream: true,
  })
  const deltas: string[] = []
  for await (const event of stream) {
    if (event.type === 'transcript.text.delta') deltas.push(event.delta)
    if (event.type === 'transcript.text.done') expect(event.text).toBe(input)
  }
  expect(deltas.join('')).toBe(input)
  expect(deltas.length).toBeGreaterThan(2)
})

test('a URL instead of a file, as with Groq', async () => {
  const request = { model: 'far', url } as unknown as OpenAI.Audio.TranscriptionCreateParams<'json'>
  expect(((await client.audio.transcriptions.create(request)) as { text: string }).text).toBe(heard)
})

test('a translation', async () => {
  const told = await client.audio.translations.create({
    model: 'far',
    file: await file(),
    response_format: 'verbose_json',
  })
  expect(told).toMatchObject({ text: heard, language: 'english', task: 'translate' })
})

test('an error has the error class of the client', async () => {
  const wrong = client.audio.transcriptions.create({ model: 'far', file: await toFile(Buffer.from('hello'), 'a.mp3') })
  await expect(wrong).rejects.toMatchObject({ status: 400, code: 'invalid_audio', param: 'file' })
  await expect(wrong).rejects.toBeInstanceOf(OpenAI.BadRequestError)
})

test('synthesized text is transcribed back, as wav and as mp3', async () => {
  for (const response_format of ['wav', 'mp3'] as const) {
    const said = await client.audio.speech.create({
      model: 'tones',
      voice: 'alto',
      input: 'Hello, cat!',
      response_format,
    })
    const told = await client.audio.transcriptions.create({
      model: 'ear',
      file: await toFile(said, `a.${response_format}`),
    })
    expect(told.text).toBe('Hello, cat!')
  }
})
