import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { pythonPrefixes, spokenText, wordsOf } from './_voices.ts'

/**
 * The Python worker with Whisper by transformers and with Kokoro and Parler-TTS, through infer: see README.md of this folder.
 * Skipped without INFER_REAL_VOICES, the folder that `install-voices.sh` makes.
 */
const voices = process.env.INFER_REAL_VOICES ?? ''
const models = join(voices, 'models')
const worker = join(import.meta.dirname, '..', '..', 'gpu', 'worker')
const minutes = 60_000

describe.skipIf(voices === '')('voices of the Python worker', () => {
  let folder: string
  let app: TestApp
  let openai: OpenAI

  /** A Python environment in which `infer-worker` is the worker of this repository. */
  async function environment(name: string): Promise<{ environment: string; sandbox_read: string[] }> {
    const program = join(folder, name, 'bin', 'infer-worker')
    const python = join(voices, name, 'bin', 'python')
    await mkdir(join(folder, name, 'bin'), { recursive: true })
    writeFileSync(program, `#!/bin/sh\nPYTHONPATH=${worker} exec ${python} -m infer_worker "$@"\n`)
    chmodSync(program, 0o755)
    return { environment: join(folder, name), sandbox_read: [join(folder, name), worker, ...pythonPrefixes(python)] }
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'infer-voices-'))
    const model = async (id: string, source: string, tasks: string[], venv = 'voices-venv') => ({
      id,
      engine: 'python',
      source: join(models, source),
      ...(await environment(venv)),
      devices: 'cpu',
      memory: '1GiB',
      threads: 1,
      tasks,
      load_timeout: '400s',
      dispatch_wait_ms: '500s',
    })
    const hears = ['std/audio-transcription']
    app = await startApp({
      models: [
        await model('whisper', 'whisper-base/transformers', [...hears, 'std/audio-translation']),
        await model('english', 'whisper-tiny.en/transformers', [...hears, 'std/audio-translation']),
        await model('kokoro', 'kokoro', ['std/audio-speech']),
        await model('kokoro-onnx', 'kokoro-onnx', ['std/audio-speech']),
        await model('parler', 'parler', ['std/audio-speech'], 'parler-venv'),
      ],
    })
    openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0, timeout: 10 * minutes })
  }, minutes)
  afterAll(async () => {
    await app?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })

  const audio = () => toFile(readFileSync(join(models, 'speech.wav')), 'speech.wav')
  const wav = async (model: string, more: object = {}) => {
    const body = { model, voice: 'alloy', input: 'Hello there.', response_format: 'wav', ...more } as const
    const bytes = Buffer.from(await (await openai.audio.speech.create(body)).arrayBuffer())
    expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
    return bytes
  }

  test('Whisper by transformers: words with times, and the detected language', { timeout: 10 * minutes }, async () => {
    const heard = await openai.audio.transcriptions.create({
      model: 'whisper',
      file: await audio(),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    expect(wordsOf(heard.text)).toEqual(wordsOf(spokenText))
    expect(heard.language).toMatch(/^en/)
    expect(heard.words!.map(({ word }) => wordsOf(word)[0])).toEqual(wordsOf(spokenText))
    const starts = heard.words!.map(({ start }) => start)
    expect(starts).toEqual(starts.toSorted((one, other) => one - other))
    expect(wordsOf(heard.segments!.map(segment => segment.text).join(' '))).toEqual(wordsOf(spokenText))
  })

  test('a prompt, a temperature and a stream; translation', { timeout: 10 * minutes }, async () => {
    const events = await openai.audio.transcriptions.create({
      model: 'whisper',
      file: await audio(),
      prompt: 'Gardens.',
      temperature: 0.1,
      language: 'en',
      stream: true,
    })
    const deltas: string[] = []
    for await (const event of events) if (event.type === 'transcript.text.delta') deltas.push(event.delta)
    expect(wordsOf(deltas.join(''))).toEqual(expect.arrayContaining(['weather', 'children', 'garden']))
    const { text } = await openai.audio.translations.create({ model: 'whisper', file: await audio() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('what a model cannot do is refused by name', { timeout: 10 * minutes }, async () => {
    const french = { model: 'english', file: await audio(), language: 'fr' }
    await expect(openai.audio.transcriptions.create(french)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('the model knows: en'),
    })
    await expect(openai.audio.translations.create({ model: 'english', file: await audio() })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('English only'),
    })
  })

  test('a disconnected caller ends the transcription', { timeout: 10 * minutes }, async () => {
    const left = new AbortController()
    const request = openai.audio.transcriptions.create(
      { model: 'whisper', file: await audio() },
      { signal: left.signal },
    )
    setTimeout(() => left.abort(), 1_000)
    await expect(request).rejects.toThrow(/abort/i)
    const { text } = await openai.audio.transcriptions.create({ model: 'whisper', file: await audio() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('Kokoro with random weights, in two languages', { timeout: 10 * minutes }, async () => {
    expect((await wav('kokoro')).length).toBeGreaterThan(4_000)
    expect((await wav('kokoro', { voice: 'ef_dora', input: 'Hola, buenos días.' })).length).toBeGreaterThan(4_000)
    await expect(wav('kokoro', { voice: 'nobody' })).rejects.toMatchObject({ status: 400 })
  })

  test('Kokoro by ONNX: what it speaks is understood', { timeout: 10 * minutes }, async () => {
    const spoken = await wav('kokoro-onnx', { voice: 'jm_kumo', input: spokenText, language: 'en-us' })
    const { text } = await openai.audio.transcriptions.create({
      model: 'whisper',
      file: await toFile(spoken, 'a.wav'),
      language: 'en',
    })
    expect(wordsOf(text)).toEqual(expect.arrayContaining(['weather', 'children', 'garden', 'water']))
  })

  test.skipIf(!existsSync(join(models, 'parler')))(
    'Parler-TTS with random weights',
    { timeout: 10 * minutes },
    async () => {
      expect((await wav('parler', { instructions: 'A calm voice.' })).length).toBeGreaterThan(4_000)
      await expect(wav('parler', { speed: 2 })).rejects.toMatchObject({ status: 400 })
    },
  )
})
