import { join } from 'node:path'
import { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { minutes, pythonPrefixes, startInfer } from './_engine.ts'
import { speechFile, spokenText, wordsOf } from './_voices.ts'

/**
 * Speaches, started by its preset in its sandbox, with trained weights: see README.md of this folder. Skipped without
 * INFER_REAL_SPEACHES, its Python environment. INFER_REAL_SPEACHES_HUB is a cache of the model hub with the models, and
 * INFER_REAL_SPEACHES_READ the folder of its sources, if it is installed in place.
 */
const environment = process.env.INFER_REAL_SPEACHES ?? ''
const hub = process.env.INFER_REAL_SPEACHES_HUB ?? ''

describe.skipIf(environment === '' || hub === '')('Speaches', () => {
  const infer = startInfer(join(environment, 'bin'), () => {
    const sources = process.env.INFER_REAL_SPEACHES_READ
    const speaches = {
      engine: 'speaches',
      env: { HF_HUB_CACHE: hub, OMP_NUM_THREADS: '1' },
      sandbox_read: [hub, ...pythonPrefixes(join(environment, 'bin/python')), ...(sources ? [sources] : [])],
      devices: 'cpu',
      memory: '1GiB',
      load_timeout: '400s',
      dispatch_wait_ms: '500s',
    }
    return {
      models: [
        {
          ...speaches,
          id: 'whisper',
          source: 'Systran/faster-whisper-base',
          tasks: ['std/audio-transcription', 'std/audio-translation'],
        },
        { ...speaches, id: 'piper', source: 'speaches-ai/piper-en_US-joe-medium', tasks: ['std/audio-speech'] },
        { ...speaches, id: 'absent', source: 'nobody/absent', tasks: ['std/audio-transcription'] },
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
    expect(heard.words!.map(({ word }) => wordsOf(word)[0])).toEqual(wordsOf(spokenText))
    expect(wordsOf(heard.segments!.map(({ text }) => text).join(' '))).toEqual(wordsOf(spokenText))
  })

  test('streams the text, and translates', { timeout: 10 * minutes }, async () => {
    const events = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await speechFile(),
      stream: true,
    })
    const deltas: string[] = []
    let done = ''
    for await (const event of events) {
      if (event.type === 'transcript.text.delta') deltas.push(event.delta)
      if (event.type === 'transcript.text.done') done = event.text
    }
    expect(wordsOf(deltas.join(''))).toEqual(wordsOf(spokenText))
    expect(wordsOf(done)).toEqual(wordsOf(spokenText))
    const { text } = await infer.openai.audio.translations.create({ model: 'whisper', file: await speechFile() })
    expect(wordsOf(text)).toEqual(wordsOf(spokenText))
  })

  test('Piper speaks what Whisper transcribes', { timeout: 10 * minutes }, async () => {
    const spoken = await infer.openai.audio.speech.create({ model: 'piper', voice: 'joe', input: spokenText })
    const file = await toFile(Buffer.from(await spoken.arrayBuffer()), 'a.mp3')
    const { text } = await infer.openai.audio.transcriptions.create({ model: 'whisper', file, language: 'en' })
    expect(wordsOf(text)).toEqual(expect.arrayContaining(['weather', 'children', 'garden']))
  })

  test('names a model that is not in the cache', { timeout: 10 * minutes }, async () => {
    await expect(
      infer.openai.audio.transcriptions.create({ model: 'absent', file: await speechFile() }),
    ).rejects.toMatchObject({
      message: expect.stringContaining('absent'),
    })
  })
})
