import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { minutes, pythonPrefixes, startInfer, temporaryFolder, worker } from './_engine.ts'
import { speechFile, spokenText, voiceModels, wordsOf } from './_voices.ts'

/**
 * The Python worker with Whisper by transformers and with Kokoro and Parler-TTS, through infer: see README.md of this folder.
 * Skipped without INFER_REAL_VOICES, the folder that `install-voices.sh` makes.
 */
const voices = process.env.INFER_REAL_VOICES ?? ''

describe.skipIf(voices === '')('voices of the Python worker', () => {
  const folder = temporaryFolder()

  /** A Python environment in which `infer-worker` is the worker of this repository. */
  function environment(name: string): { environment: string; sandbox_read: string[] } {
    const environment = join(folder(), name)
    const program = join(environment, 'bin', 'infer-worker')
    const python = join(voices, name, 'bin', 'python')
    mkdirSync(join(environment, 'bin'), { recursive: true })
    writeFileSync(program, `#!/bin/sh\nPYTHONPATH=${worker} exec ${python} -m infer_worker "$@"\n`)
    chmodSync(program, 0o755)
    return { environment, sandbox_read: [environment, worker, ...pythonPrefixes(python)] }
  }

  const infer = startInfer('', () => {
    const model = (id: string, source: string, tasks: string[], venv = 'voices-venv') => ({
      id,
      engine: 'python',
      source: join(voiceModels, source),
      ...environment(venv),
      devices: 'cpu',
      memory: '1GiB',
      threads: 1,
      tasks,
      load_timeout: '400s',
      dispatch_wait_ms: '500s',
    })
    const hears = ['std/audio-transcription']
    return {
      models: [
        model('whisper', 'whisper-base/transformers', [...hears, 'std/audio-translation']),
        model('english', 'whisper-tiny.en/transformers', [...hears, 'std/audio-translation']),
        model('kokoro', 'kokoro', ['std/audio-speech']),
        model('kokoro-onnx', 'kokoro-onnx', ['std/audio-speech']),
        model('parler', 'parler', ['std/audio-speech'], 'parler-venv'),
      ],
    }
  })

  const wav = async (model: string, more: object = {}) => {
    const body = { model, voice: 'alloy', input: 'Hello there.', response_format: 'wav', ...more } as const
    const bytes = Buffer.from(await (await infer.openai.audio.speech.create(body)).arrayBuffer())
    expect(bytes.toString('latin1', 0, 4)).toBe('RIFF')
    return bytes
  }

  test('Whisper by transformers: words with times, and the detected language', { timeout: 10 * minutes }, async () => {
    const heard = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await speechFile(),
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
    const events = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await speechFile(),
      prompt: 'Gardens.',
      temperature: 0.1,
      language: 'en',
      stream: true,
    })
    const deltas: string[] = []
    for await (const event of events) if (event.type === 'transcript.text.delta') deltas.push(event.delta)
    expect(wordsOf(deltas.join(''))).toEqual(expect.arrayContaining(['weather', 'children', 'garden']))
    const { text } = await infer.openai.audio.translations.create({ model: 'whisper', file: await speechFile() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('what a model cannot do is refused by name', { timeout: 10 * minutes }, async () => {
    const french = { model: 'english', file: await speechFile(), language: 'fr' }
    await expect(infer.openai.audio.transcriptions.create(french)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('the model knows: en'),
    })
    await expect(
      infer.openai.audio.translations.create({ model: 'english', file: await speechFile() }),
    ).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('English only'),
    })
  })

  test('a disconnected caller ends the transcription', { timeout: 10 * minutes }, async () => {
    const left = new AbortController()
    const request = infer.openai.audio.transcriptions.create(
      { model: 'whisper', file: await speechFile() },
      { signal: left.signal },
    )
    setTimeout(() => left.abort(), 1_000)
    await expect(request).rejects.toThrow(/abort/i)
    const { text } = await infer.openai.audio.transcriptions.create({ model: 'whisper', file: await speechFile() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('Kokoro with random weights, in two languages', { timeout: 10 * minutes }, async () => {
    expect((await wav('kokoro')).length).toBeGreaterThan(4_000)
    expect((await wav('kokoro', { voice: 'ef_dora', input: 'Hola, buenos días.' })).length).toBeGreaterThan(4_000)
    await expect(wav('kokoro', { voice: 'nobody' })).rejects.toMatchObject({ status: 400 })
  })

  test('Kokoro by ONNX: what it speaks is understood', { timeout: 10 * minutes }, async () => {
    const spoken = await wav('kokoro-onnx', { voice: 'jm_kumo', input: spokenText, language: 'en-us' })
    const { text } = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await toFile(spoken, 'a.wav'),
      language: 'en',
    })
    expect(wordsOf(text)).toEqual(expect.arrayContaining(['weather', 'children', 'garden', 'water']))
  })

  test.skipIf(!existsSync(join(voiceModels, 'parler')))(
    'Parler-TTS with random weights',
    { timeout: 10 * minutes },
    async () => {
      expect((await wav('parler', { instructions: 'A calm voice.' })).length).toBeGreaterThan(4_000)
      await expect(wav('parler', { speed: 2 })).rejects.toMatchObject({ status: 400 })
    },
  )
})
