import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { minutes, startInfer } from './_engine.ts'
import { speech, speechFile, spokenText, voiceModels, wordsOf } from './_voices.ts'

/**
 * whisper.cpp's server with the weights of Whisper base: see README.md of this folder. Skipped without
 * INFER_REAL_ENGINES with the server and INFER_REAL_VOICES with the model.
 */
const server = join(process.env.INFER_REAL_ENGINES ?? '', 'bin', 'whisper-server')
const source = join(voiceModels, 'whisper-base', 'ggml.bin')

describe.skipIf(!existsSync(server) || !existsSync(source))('whisper-server', () => {
  const infer = startInfer(dirname(server), () => {
    const model = {
      engine: 'whisper-server',
      devices: 'cpu',
      memory: '1GiB',
      tasks: ['std/audio-transcription', 'std/audio-translation'],
      dispatch_wait_ms: '300s',
      load_timeout: '120s',
    }
    return {
      models: [
        { ...model, id: 'whisper', source },
        { ...model, id: 'broken', source: join(voiceModels, 'speech.wav') },
      ],
    }
  })

  test('transcribes with times of words and segments', { timeout: 10 * minutes }, async () => {
    const heard = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await speechFile(),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })
    expect(wordsOf(heard.text)).toEqual(wordsOf(spokenText))
    expect(heard.language).toMatch(/^en/)
    expect(wordsOf(heard.words!.map(({ word }) => word).join(' '))).toEqual(wordsOf(spokenText))
    const starts = heard.words!.map(({ start }) => start)
    expect(starts).toEqual(starts.toSorted((one, other) => one - other))
    expect(heard.words!.at(-1)!.end).toBeLessThanOrEqual(heard.duration + 0.5)
    expect(wordsOf(heard.segments!.map(({ text }) => text).join(' '))).toEqual(wordsOf(spokenText))
  })

  test('translates, and takes a prompt and a temperature', { timeout: 10 * minutes }, async () => {
    const { text } = await infer.openai.audio.translations.create({ model: 'whisper', file: await speechFile() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
    const prompted = {
      model: 'whisper',
      file: await speechFile(),
      prompt: 'Gardens.',
      temperature: 0.1,
      language: 'en',
    }
    const heard = await infer.openai.audio.transcriptions.create(prompted)
    expect(wordsOf(heard.text)).toEqual(expect.arrayContaining(['weather', 'children', 'garden']))
  })

  test('refuses a file that is no audio', { timeout: minutes }, async () => {
    const file = await toFile(Buffer.from('no audio'), 'speech.wav')
    await expect(infer.openai.audio.transcriptions.create({ model: 'whisper', file })).rejects.toMatchObject({
      status: 400,
    })
  })

  test('a disconnected caller frees the engine', { timeout: 10 * minutes }, async () => {
    // One minute of speech, which takes longer than the abort.
    const wav = speech()
    const samples = Buffer.concat(Array.from({ length: 12 }, () => wav.subarray(44)))
    const head = Buffer.from(wav.subarray(0, 44))
    head.writeUInt32LE(36 + samples.length, 4)
    head.writeUInt32LE(samples.length, 40)
    const left = new AbortController()
    const request = infer.openai.audio.transcriptions.create(
      { model: 'whisper', file: await toFile(Buffer.concat([head, samples]), 'long.wav') },
      { signal: left.signal },
    )
    setTimeout(() => left.abort(), 1_000)
    await expect(request).rejects.toThrow(/abort/i)
    const { text } = await infer.openai.audio.transcriptions.create({ model: 'whisper', file: await speechFile() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('a file that is no model is named in the error', { timeout: 10 * minutes }, async () => {
    await expect(
      infer.openai.audio.transcriptions.create({ model: 'broken', file: await speechFile() }),
    ).rejects.toMatchObject({
      status: 503,
    })
  })
})
