import { afterAll, beforeAll, expect, test } from 'vitest'
import { wavHead } from '../../../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

/** The stored inputs of a job: known fields only, within the limits of a job. */
let app: TestApp
const audio = { 'std/audio-speech': 'speaker', 'std/audio-transcription': 'writer' } as const
type Audio = keyof typeof audio
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('speaker', [], { tasks: ['std/audio-speech'], extra_params: ['mood'] }),
      fakeModel('writer', [], { tasks: ['std/audio-transcription', 'std/audio-translation'], extra_params: ['mood'] }),
      fakeModel('painter', [], { tasks: ['slug/text-to-image'] }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const samples = Buffer.alloc(32_000)
const url = `data:audio/wav;base64,${Buffer.concat([wavHead(16_000, samples.length), samples]).toString('base64')}`
const own: Record<Audio, object> = {
  'std/audio-speech': { input: 'Hello', voice: 'alto' },
  'std/audio-transcription': { url, language: 'en' },
}
const kept: Record<Audio, object> = {
  'std/audio-speech': { input: 'Hello', voice: 'alto' },
  'std/audio-transcription': { language: 'en', file_id: expect.stringMatching(/^file-/) as string },
}
const paths: Record<Audio, string> = {
  'std/audio-speech': '/v1/audio/speech',
  'std/audio-transcription': '/v1/audio/transcriptions',
}
const megabytes = 'x'.repeat(2 << 20)

interface Body {
  id: string
  task: string
  inputs: object
  error?: { code: string; param?: string; message: string }
}
async function ask(path: string, body?: object, headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { ...(body ? { body } : {}), headers })
  return { status: response.status, body: (await response.json()) as Body }
}
const submit = (task: string, model_id: string, inputs: object) => ask('/api/jobs', { task, model_id, inputs })
const inputsOf = async (id: string) => (await ask(`/api/jobs/${id}`)).body.inputs

test.each(Object.entries(audio) as [Audio, string][])(
  '%s: a job refuses unknown fields, the endpoint drops them, fields that the model configures are kept',
  async (task, model) => {
    const known = { mood: 'glad', ...(task === 'std/audio-speech' ? {} : { stream: false }) }
    const junk = { junk: 'x', ...known }
    const refused = await submit(task, model, { ...own[task], ...junk })
    expect([refused.status, refused.body.error?.code]).toEqual([400, 'unknown_parameter'])
    const made = await submit(task, model, { ...own[task], ...known })
    expect(made.status).toBe(202)
    expect(await inputsOf(made.body.id)).toEqual({ ...kept[task], model, mood: 'glad' })

    const later = await ask(paths[task], { ...own[task], ...junk, model }, { prefer: 'respond-async' })
    expect(later.status).toBe(202)
    expect(await inputsOf(later.body.id)).toEqual({ ...kept[task], model, mood: 'glad' })
  },
)

test.each<[task: string, model: string, inputs: object]>([
  ['std/audio-speech', 'speaker', { input: 'Hello', junk: megabytes }],
  ['std/audio-speech', 'speaker', { input: `data:text/plain;base64,${megabytes}` }],
  ['std/audio-transcription', 'writer', { url, junk: megabytes }],
  ['std/audio-transcription', 'writer', { url, mood: megabytes }],
  ['slug/text-to-image', 'painter', { prompt: 'a cat', junk: megabytes }],
])('%s beyond the limits of a job is refused', async (task, model, inputs) => {
  const refused = await submit(task, model, inputs)
  expect(refused.status).toBe(413)
  expect(refused.body.error).toMatchObject({
    code: 'payload_too_large',
    message: expect.stringContaining('1024 KiB') as string,
  })
})

test('the same holds for an endpoint with respond-async', async () => {
  const body = { model: 'writer', url, chunking_strategy: { type: 'server_vad', junk: megabytes } }
  const refused = await ask('/v1/audio/transcriptions', body, { prefer: 'respond-async' })
  expect([refused.status, refused.body.error?.code]).toEqual([413, 'payload_too_large'])
})

test('large audio inside the inputs becomes a file and does not count as inputs', async () => {
  const long = Buffer.alloc(2 << 20)
  const large = `data:audio/wav;base64,${Buffer.concat([wavHead(16_000, long.length), long]).toString('base64')}`
  expect((await submit('std/audio-transcription', 'writer', { url: large })).status).toBe(202)
})

test('an invalid transcription request is refused', async () => {
  const refused = await submit('std/audio-transcription', 'writer', { url, response_format: 'docx' })
  expect(refused.status).toBe(400)
  expect(refused.body.error).toMatchObject({ code: 'invalid_value', param: 'inputs.response_format' })
})

test.each([
  ['std/speech', 'std/audio-speech'],
  ['std/transcription', 'std/audio-transcription'],
] as const)('%s is accepted, and kept as %s', async (alias, task) => {
  const made = await submit(alias, audio[task], own[task])
  expect([made.status, made.body.error]).toEqual([202, undefined])
  expect((await ask(`/api/jobs/${made.body.id}`)).body.task).toBe(task)
})
