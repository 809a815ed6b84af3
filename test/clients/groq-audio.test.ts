import Groq, { toFile } from 'groq-sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { heardInWav, toneModel } from '../server/surfaces/openai/_speech.ts'

/** Groq's client, which appends `/openai/v1` to the base URL. */
let app: TestApp
let client: Groq
beforeAll(async () => {
  app = await startApp({
    models: [
      toneModel({ tasks: ['std/audio-speech', 'std/audio-transcription'] }),
      fakeModel('far', [], { tasks: ['std/audio-translation'] }),
    ],
  })
  client = new Groq({ baseURL: `${app.url}/std`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

test('speech, its transcription as a file and at a URL, and a translation', async () => {
  const input = 'Said by the client.'
  const answer = await client.audio.speech.create({ model: 'tones', voice: 'bass', input, response_format: 'wav' })
  const wav = Buffer.from(await answer.arrayBuffer())
  expect(heardInWav(wav)).toBe(input)
  const file = () => toFile(wav, 'a.wav')
  const told = await client.audio.transcriptions.create({ model: 'tones', file: await file() })
  expect(told).toMatchObject({ text: input, x_groq: { id: expect.stringMatching(/^req_/) as string } })
  const url = `data:audio/wav;base64,${wav.toString('base64')}`
  const verbose = await client.audio.transcriptions.create({
    model: 'tones',
    url,
    response_format: 'verbose_json',
    timestamp_granularities: ['word'],
  })
  expect(verbose).toMatchObject({ text: input, words: [{ word: 'Said' }, {}, {}, {}] })
  const translated = await client.audio.translations.create({ model: 'far', file: await file() })
  expect(translated.text).toBe('The cat sat on the mat. The dog barked.')
})
