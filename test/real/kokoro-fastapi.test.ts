import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { minutes, pythonPrefixes, startInfer } from './_engine.ts'

/**
 * Kokoro-FastAPI, started by its preset in its sandbox: see README.md of this folder. Skipped without
 * INFER_REAL_KOKORO_FASTAPI, its repository with a model, and INFER_REAL_KOKORO_FASTAPI_PYTHON, its Python environment.
 */
const source = process.env.INFER_REAL_KOKORO_FASTAPI ?? ''
const environment = process.env.INFER_REAL_KOKORO_FASTAPI_PYTHON ?? ''

describe.skipIf(source === '' || environment === '')('Kokoro-FastAPI', () => {
  const infer = startInfer(join(environment, 'bin'), () => ({
    models: [
      {
        id: 'kokoro',
        engine: 'kokoro-fastapi',
        source,
        env: { OMP_NUM_THREADS: '1' },
        sandbox_read: pythonPrefixes(join(environment, 'bin/python')),
        devices: 'cpu',
        memory: '2GiB',
        tasks: ['std/audio-speech'],
        load_timeout: '500s',
        dispatch_wait_ms: '500s',
      },
    ],
  }))

  const speak = async (more: object) => {
    const body = { model: 'kokoro', voice: 'af_heart', input: 'Hello there.', response_format: 'wav', ...more } as const
    return Buffer.from(await (await infer.openai.audio.speech.create(body)).arrayBuffer())
  }

  test('speaks, and lists its voices', { timeout: 10 * minutes }, async () => {
    const wav = await speak({})
    expect(wav.toString('latin1', 0, 4)).toBe('RIFF')
    expect(wav.length).toBeGreaterThan(4_000)
    const mp3 = await speak({ response_format: 'mp3' })
    expect(mp3.length).toBeGreaterThan(500)
    const { data } = (await (await infer.app.fetch('/std/v1/audio/voices')).json()) as { data: { voices: unknown[] }[] }
    expect(data[0]!.voices).toContainEqual(expect.objectContaining({ id: 'ef_dora' }))
  })

  test('refuses an unknown voice', { timeout: 10 * minutes }, async () => {
    await expect(speak({ voice: 'nobody' })).rejects.toMatchObject({
      status: 400,
      message: expect.stringContaining('nobody'),
    })
  })
})
