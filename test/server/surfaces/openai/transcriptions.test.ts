import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { wavHead } from '../../../../core/tasks/wav.ts'
import { fakeEngine, fakeModel, fakeNeeds, startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { type OwnEngine, startEngine } from '../../../_engine.ts'

/** Speech to text as seen by a client: forms and JSON, every form of an answer, and errors. */
let app: TestApp
let far: OwnEngine
const bin = mkdtempSync(join(tmpdir(), 'infer-bin-'))
const path = process.env.PATH
const tasks = ['std/audio-transcription', 'std/audio-translation']

beforeAll(async () => {
  writeFileSync(
    join(bin, 'whisper-server'),
    `#!/bin/sh\nexec '${process.execPath}' '${fakeEngine}' --as whisper-server "$@"\n`,
  )
  chmodSync(join(bin, 'whisper-server'), 0o755)
  process.env.PATH = `${bin}:${path}`
  far = await startEngine()
  app = await startApp({
    limits: { audio_length: '60s' },
    models: [
      fakeModel('far', [], { tasks }),
      fakeModel('plain', [], { tasks, features: [] }),
      fakeModel('hurried', [], { tasks, no_progress: '300ms' }),
      fakeModel('unneeded', ['--exit', '3'], { tasks, dispatch_wait_ms: '1s' }),
      {
        id: 'whisper',
        engine: 'whisper-server',
        source: '/models/ggml.bin',
        devices: 'cpu',
        memory: '16MiB',
        tasks,
        ...fakeNeeds,
      },
      { id: 'remote', engine: 'remote', url: `${far.url}/v1`, tasks },
      fakeModel('chat'),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await far[Symbol.asyncDispose]()
  process.env.PATH = path
  rmSync(bin, { recursive: true, force: true })
})

/** Two seconds of a tone. */
const samples = Buffer.alloc(64_000)
for (let at = 0; at < 32_000; at++) samples.writeInt16LE(Math.round(8_000 * Math.sin(at / 6)), 2 * at)
const wav = Buffer.concat([wavHead(16_000, samples.length), samples])
const silence = Buffer.concat([wavHead(16_000, samples.length), Buffer.alloc(samples.length)])
const url = `data:audio/wav;base64,${wav.toString('base64')}`

interface Sending {
  file?: Buffer | null
  headers?: Record<string, string>
  to?: string
}
async function form(fields: object, { file = wav, headers = {}, to = 'transcriptions' }: Sending = {}) {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields))
    for (const one of [value as unknown].flat()) body.append(name, String(one))
  if (file) body.append('file', new Blob([new Uint8Array(file)], { type: 'audio/wav' }), 'speech.wav')
  const sent = { authorization: `Bearer ${app.secret}`, ...headers }
  return fetch(`${app.url}/std/v1/audio/${to}`, { method: 'POST', headers: sent, body })
}
const json = (body: object, to = 'transcriptions', headers: Record<string, string> = {}) =>
  app.fetch(`/v1/audio/${to}`, { body, headers })
const verbose = async (response: Response) => {
  const body = (await response.json()) as Record<string, never>
  expect([response.status, body]).toEqual([200, expect.anything()])
  return body
}
const refusal = async (response: Response) =>
  [
    response.status,
    ((await response.json()) as { error: { code: string; param: string; message: string } }).error,
  ] as const

const heard = 'The cat sat on the mat. The dog barked.'

test.each(['far', 'plain', 'whisper'])('%s: a form is answered with the text by default', async model => {
  const response = await form({ model })
  expect(await verbose(response)).toEqual({
    text: heard,
    usage: { type: 'duration', seconds: 2 },
    x_groq: { id: response.headers.get('x-request-id') },
  })
  expect(response.headers.get('x-job-id')).toMatch(/^job_/)
})

test.each([
  ['far', {}, { text: '' }],
  ['far', { response_format: 'verbose_json' }, { text: '', segments: [], duration: 2 }],
  ['far', { response_format: 'diarized_json' }, { text: '', segments: [] }],
  ['whisper', { response_format: 'verbose_json' }, { text: '', segments: [], duration: 2 }],
])('%s hears no words in silence: %j', async (model, fields, expected) => {
  expect(await verbose(await form({ model, ...fields }, { file: silence }))).toMatchObject(expected)
})

test.each([
  ['true', wav, 'vad_filter'],
  ['true', silence, null],
  ['false', wav, null],
])('an engine without a filter for silence: vad_filter=%s is named', async (vad_filter, file, ignored) => {
  const response = await form({ model: 'far', vad_filter }, { file })
  expect([response.status, response.headers.get('x-infer-ignored')]).toEqual([200, ignored])
})

test('silence takes no slot and loads no model', async () => {
  const response = await form({ model: 'unneeded' }, { file: silence })
  expect([response.status, await response.json()]).toMatchObject([200, { text: '' }])
  const { models } = (await (await app.fetch('/api/model-status')).json()) as { models: { model_id: string }[] }
  expect(models.find(({ model_id }) => model_id === 'unneeded')).toMatchObject({ status: 'cold' })
  const job = (await (await app.fetch(`/api/jobs/${response.headers.get('x-job-id')}`)).json()) as object
  expect(job).toMatchObject({ status: 'completed', usage: { audio_seconds: 2 } })
  const later = await form({ model: 'unneeded' }, { file: silence, headers: { prefer: 'respond-async' } })
  const { id } = (await later.json()) as { id: string }
  const background = (await (await app.fetch(`/api/jobs/${id}?wait=10`)).json()) as object
  expect(background).toMatchObject({ status: 'completed', result: { text: '' }, usage: { audio_seconds: 2 } })
  expect((await form({ model: 'unneeded' })).status).toBe(503)
})

test('silence is streamed as no text', async () => {
  const response = await form({ model: 'far', stream: 'true' }, { file: silence })
  const usage = { type: 'duration', seconds: 2 }
  expect(await response.text()).toBe(`data: ${JSON.stringify({ type: 'transcript.text.done', text: '', usage })}\n\n`)
})

test('whisper-server: verbose_json is OpenAI’s, words joined from their pieces', async () => {
  const body = await verbose(
    await form({ model: 'whisper', response_format: 'verbose_json', 'timestamp_granularities[]': ['word', 'segment'] }),
  )
  const facts = { seek: 0, tokens: [50364, 440], temperature: 0, avg_logprob: -0.25, no_speech_prob: 0.01 }
  expect(body).toEqual({
    task: 'transcribe',
    language: 'english',
    duration: 2,
    text: heard,
    segments: [
      {
        id: 0,
        start: 0,
        end: 1,
        text: ' The cat sat on the mat.',
        compression_ratio: expect.any(Number) as number,
        ...facts,
      },
      { id: 1, start: 1, end: 2, text: ' The dog barked.', compression_ratio: expect.any(Number) as number, ...facts },
    ],
    words: [
      { word: 'The', start: 0, end: 0.3 },
      { word: 'barked.', start: 0.3, end: 0.6 },
      { word: 'The', start: 1, end: 1.3 },
      { word: 'barked.', start: 0.3, end: 0.6 },
    ],
    usage: { type: 'duration', seconds: 2 },
    x_groq: { id: expect.stringMatching(/^req_/) as string },
  })
})

test.each([
  ['text', 'far', `${heard}\n`],
  [
    'srt',
    'far',
    '1\n00:00:00,000 --> 00:00:01,000\nThe cat sat on the mat.\n\n2\n00:00:01,000 --> 00:00:02,000\nThe dog barked.\n',
  ],
  [
    'vtt',
    'whisper',
    'WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nThe cat sat on the mat.\n\n00:00:01.000 --> 00:00:02.000\nThe dog barked.\n',
  ],
])('%s is plain text', async (response_format, model, text) => {
  const response = await form({ model, response_format })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8'])
  expect(await response.text()).toBe(text)
})

test('diarized_json has the speakers', async () => {
  expect(
    await verbose(await form({ model: 'far', response_format: 'diarized_json', prompt: 'mode:speakers' })),
  ).toEqual({
    task: 'transcribe',
    duration: 2,
    text: heard,
    segments: [
      {
        type: 'transcript.text.segment',
        id: 'seg_001',
        start: 0,
        end: 1,
        text: 'The cat sat on the mat.',
        speaker: 'A',
      },
      { type: 'transcript.text.segment', id: 'seg_002', start: 1, end: 2, text: 'The dog barked.', speaker: 'B' },
    ],
    usage: { type: 'duration', seconds: 2 },
    x_groq: { id: expect.any(String) as string },
  })
})

test('a stream is events without a [DONE]', async () => {
  const response = await form({ model: 'far', stream: 'true' })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  const events = (await response.text()).trim().split('\n\n')
  expect(events.map(event => JSON.parse(event.replace('data: ', '')) as object)).toEqual([
    { type: 'transcript.text.delta', delta: heard },
    { type: 'transcript.text.done', text: heard, usage: { type: 'duration', seconds: 2 } },
  ])
})

test('known speakers reach the engine with their recordings, as a call and as a job', async () => {
  const speaker = Buffer.concat([wavHead(8_000, 16_000), Buffer.alloc(16_000, 1)])
  const asked = {
    known_speaker_names: ['agent'],
    known_speaker_references: [`data:audio/wav;base64,${speaker.toString('base64')}`],
    chunking_strategy: 'auto',
    prompt: 'mode:echo',
  }
  const sent = (text: string) => (JSON.parse(text) as { fields: [string, string][] }).fields
  const response = await form({
    model: 'far',
    'known_speaker_names[]': asked.known_speaker_names,
    'known_speaker_references[]': asked.known_speaker_references,
    chunking_strategy: 'auto',
    prompt: asked.prompt,
  })
  const fields = sent(String((await verbose(response)).text))
  expect(fields).toContainEqual(['known_speaker_names[]', 'agent'])
  expect(fields).toContainEqual(['chunking_strategy', 'auto'])
  const [, recording] = fields.find(([name]) => name === 'known_speaker_references[]')!
  const received = Buffer.from(recording.replace('data:audio/wav;base64,', ''), 'base64')
  // One second, in the form that engines get.
  expect([received.readUInt32LE(24), received.length]).toEqual([16_000, 44 + 32_000])
  const inputs = { ...asked, url }
  const submitted = await app.fetch('/api/jobs', { body: { task: tasks[0], model_id: 'far', inputs } })
  const { id } = (await submitted.json()) as { id: string }
  const job = async () => (await (await app.fetch(`/api/jobs/${id}`)).json()) as Record<string, never>
  await expect.poll(async () => (await job()).status).toBe('completed')
  const done = (await job()) as unknown as { inputs: Record<string, string[]>; result: { text: string } }
  expect(done.inputs.known_speaker_references).toEqual([expect.stringMatching(/^file-/)])
  expect(sent(done.result.text).filter(([name]) => name.startsWith('known'))).toEqual([
    ['known_speaker_names[]', 'agent'],
    ['known_speaker_references[]', recording],
  ])
})

test('known speakers are refused where they cannot be used', async () => {
  const names = { known_speaker_names: ['a'] }
  const both = { ...names, known_speaker_references: [url] }
  const cases: [object, string, string][] = [
    [{ model: 'plain', ...both }, 'unsupported_parameter', 'known_speaker_references'],
    [{ model: 'far', ...names }, 'invalid_value', 'known_speaker_references'],
    [{ model: 'far', ...names, known_speaker_references: ['nothing'] }, 'invalid_value', 'known_speaker_references[0]'],
  ]
  for (const [body, code, param] of cases)
    expect((await refusal(await json({ url, ...body })))[1]).toMatchObject({ code, param })
})

const eventsIn = (text: string) =>
  text
    .trim()
    .split('\n\n')
    .map(event => JSON.parse(event.replace('data: ', '')) as { type?: string; error?: object })
const delta = (text: string) => ({ type: 'transcript.text.delta', delta: text })
const done = { type: 'transcript.text.done', text: heard, usage: { type: 'duration', seconds: 2 } }
const logprobs = [{ token: 'The', logprob: -0.5, bytes: [84, 104, 101] }]

/** Resolves with the events before the engine may send the second half, and with all events. */
async function inHalves(response: Response) {
  const reader = response.body!.getReader()
  let text = ''
  const read = async () => {
    const { done, value } = await reader.read()
    text += value ? Buffer.from(value).toString() : ''
    return !done
  }
  while (!text.includes('\n\n')) await read()
  const before = eventsIn(text)
  await fetch(`${far.url}/release`)
  while (await read());
  return [before, eventsIn(text)] as const
}

test.each([
  ['openai', { ...delta('The cat sat on the mat.'), logprobs }, { ...delta(' The dog barked.'), logprobs }],
  ['speaches', delta('The cat sat on the mat.'), delta(' The dog barked.')],
  ['vllm', delta('The cat sat on the mat.'), delta(' The dog barked.')],
  ['bare', delta('The cat sat on the mat.'), delta(' The dog barked.')],
])('the stream of an engine is relayed while it works: %s', async (as, ...deltas) => {
  const response = await form({ model: 'remote', stream: 'true', prompt: `mode:stream,as=${as},wait=1` })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  const [before, after] = await inHalves(response)
  // The engine sent the rest only then.
  expect(before).toEqual([deltas[0]])
  expect(after).toEqual([...deltas, done])
  const id = response.headers.get('x-job-id')!
  const { usage } = (await (await app.fetch(`/api/jobs/${id}`)).json()) as { usage: { audio_seconds?: number } }
  expect(usage).toMatchObject({ audio_seconds: 2 })
})

test('segments with speakers are relayed; an engine without streams sends them at the end', async () => {
  const asked = { model: 'remote', stream: 'true', response_format: 'diarized_json' }
  const segment = (number: number) =>
    expect.objectContaining({ type: 'transcript.text.segment', id: `seg_00${number}` })
  for (const [prompt, count] of [
    ['mode:stream,as=segments', 2],
    ['mode:speakers', 2],
  ] as const) {
    const events = eventsIn(await (await form({ ...asked, prompt })).text())
    expect(events).toEqual([...[1, 2].slice(0, count).map(segment), done])
  }
})

test('a caller that disconnects from a stream cancels it', async () => {
  const leave = new AbortController()
  const body = { model: 'remote', url, stream: true, prompt: 'mode:stream,as=openai,wait=1' }
  const response = await app.fetch('/v1/audio/transcriptions', { body, signal: leave.signal })
  const id = response.headers.get('x-job-id')!
  leave.abort()
  const job = async () => (await (await app.fetch(`/api/jobs/${id}`)).json()) as { status: string }
  await expect.poll(async () => (await job()).status).toBe('cancelled')
})

test('a stream that breaks ends with an error event', async () => {
  for (const as of ['break', 'error']) {
    const response = await form({ model: 'remote', stream: 'true', prompt: `mode:stream,as=${as},wait=1` })
    const [, events] = await inHalves(response)
    expect(events[0]).toMatchObject({ type: 'transcript.text.delta' })
    expect(events.at(-1)!.error).toMatchObject({ code: 'worker_error' })
  }
})

test.each([
  ['a data: URL as url', () => json({ model: 'far', url })],
  ['a data: URL as file', () => json({ model: 'far', file: url })],
  ['a data: URL in a form', () => form({ model: 'far', url }, { file: null })],
  ['an uploaded file by its id', async () => json({ model: 'far', file_id: await uploaded() })],
  ['an uploaded file by its id, as file', async () => json({ model: 'far', file: await uploaded() })],
])('the audio is %s', async (_name, ask) => {
  expect(await verbose(await ask())).toMatchObject({ text: heard, usage: { seconds: 2 } })
})

async function uploaded(): Promise<string> {
  const initiated = await app.fetch('/fal/rest/storage/upload/initiate?storage_type=fal-cdn-v3', {
    body: { file_name: 'speech.wav', content_type: 'audio/wav' },
  })
  const { upload_url, file_url } = (await initiated.json()) as Record<string, string>
  expect((await fetch(upload_url!, { method: 'PUT', body: new Uint8Array(wav) })).status).toBe(200)
  return /file-[0-9A-Z]{26}/.exec(file_url!)![0]
}

test('an engine gets the fields it needs and no unknown ones', async () => {
  const fields = {
    model: 'far',
    prompt: 'mode:echo',
    language: 'German',
    temperature: '0',
    response_format: 'text',
    vad_model: '/etc/passwd',
    stream: 'false',
  }
  const {
    path: asked,
    fields: sent,
    seconds,
  } = JSON.parse(await (await form(fields)).text()) as Record<string, unknown>
  expect([asked, seconds]).toEqual(['/v1/audio/transcriptions', 2])
  expect(Object.fromEntries(sent as [string, string][])).toEqual({
    model: 'far',
    response_format: 'json',
    language: 'de',
    prompt: 'mode:echo',
    temperature: '0',
    file: 'audio.wav',
  })
})

test.each([
  ['far', '/v1/audio/translations', {}],
  ['whisper', '/v1/audio/transcriptions', { translate: 'true' }],
])('a translation: %s is called at %s', async (model, route, more) => {
  const body = await verbose(
    await form({ model, prompt: 'mode:echo', response_format: 'verbose_json' }, { to: 'translations' }),
  )
  expect(body).toMatchObject({ task: 'translate', language: 'english' })
  const { path: asked, fields } = JSON.parse(body.text!) as { path: string; fields: [string, string][] }
  expect([asked, Object.fromEntries(fields)]).toEqual([route, expect.objectContaining(more)])
})

describe('errors name the field', () => {
  test.each<[string, () => Promise<Response>, number, string, string | null, RegExp]>([
    ['no sound', () => form({ model: 'far' }, { file: null }), 400, 'missing_required_parameter', 'file', /'file'/],
    ['two', () => form({ model: 'far', url }), 400, 'invalid_value', 'file', /as 'file' and as 'url'/],
    ['no model', () => form({}), 400, 'missing_required_parameter', 'model', /'model'/],
    ['a model that is none', () => form({ model: 'nobody' }), 404, 'model_not_found', 'model', /speech to text/],
    [
      'a model that chats',
      () => form({ model: 'chat' }),
      400,
      'unsupported_task',
      'model',
      /does not do speech to text/,
    ],
    [
      'a language that is none',
      () => form({ model: 'far', language: 'xx' }),
      400,
      'invalid_value',
      'language',
      /not a known language/,
    ],
    ['too hot', () => form({ model: 'far', temperature: '2' }), 400, 'invalid_value', 'temperature', /at most 1/],
    [
      'a format that is none',
      () => form({ model: 'far', response_format: 'xml' }),
      400,
      'invalid_value',
      'response_format',
      /one of: json/,
    ],
    [
      'times where they cannot be',
      () => form({ model: 'far', 'timestamp_granularities[]': 'word' }),
      400,
      'invalid_value',
      'timestamp_granularities',
      /verbose_json only/,
    ],
    [
      'subtitles without times',
      () => form({ model: 'plain', response_format: 'srt' }),
      400,
      'unsupported_parameter',
      'response_format',
      /segments/,
    ],
    [
      'speakers that it cannot tell',
      () => form({ model: 'whisper', response_format: 'diarized_json' }),
      400,
      'unsupported_parameter',
      'response_format',
      /speakers/,
    ],
    [
      'speakers that it does not tell',
      () => form({ model: 'far', response_format: 'diarized_json' }),
      400,
      'unsupported_parameter',
      'response_format',
      /does not distinguish speakers/,
    ],
    [
      'no sound at all',
      () => form({ model: 'far' }, { file: Buffer.from('hello') }),
      400,
      'invalid_audio',
      'file',
      /audio in 'file'/,
    ],
    ['nothing in the file', () => form({ model: 'far' }, { file: Buffer.alloc(0) }), 400, 'invalid_audio', 'file', /./],
    [
      'too long',
      () => form({ model: 'far' }, { file: Buffer.concat([wavHead(16_000, 61 * 32_000), Buffer.alloc(61 * 32_000)]) }),
      400,
      'invalid_audio',
      'file',
      /longer than 60 s/,
    ],
    ['a forged rate', () => form({ model: 'far' }, { file: forged() }), 400, 'invalid_audio', 'file', /./],
    [
      'too large',
      () => form({ model: 'far' }, { file: Buffer.alloc((25 << 20) + 1) }),
      413,
      'payload_too_large',
      'file',
      /25600 KiB/,
    ],
    [
      'a private address',
      () => json({ model: 'far', url: 'http://169.254.169.254/a.wav' }),
      400,
      'url_fetch_failed',
      'url',
      /could not be fetched/,
    ],
    [
      'another’s file',
      () => json({ model: 'far', file_id: 'file-01ARZ3NDEKTSV4RRFFQ69G5FAV' }),
      404,
      'not_found',
      'file_id',
      /does not exist/,
    ],
    [
      'an engine that refuses',
      () => form({ model: 'far', prompt: 'mode:status,code=400,text=no such thing' }),
      400,
      'invalid_value',
      null,
      /no such thing/,
    ],
    [
      'an engine that is full',
      () => form({ model: 'far', prompt: 'mode:status,code=429' }),
      503,
      'no_capacity',
      null,
      /./,
    ],
    ['an engine that breaks', () => form({ model: 'far', prompt: 'mode:break' }), 502, 'worker_error', null, /./],
    ['half an answer', () => form({ model: 'far', prompt: 'mode:half-json' }), 502, 'worker_error', null, /not JSON/],
  ])('%s', async (_name, ask, status, code, param, message) => {
    const [seen, error] = await refusal(await ask())
    expect([seen, error]).toEqual([status, expect.objectContaining({ code, param })])
    expect(error.message).toMatch(message)
    await expect.poll(() => workspacesIn(app.dataDir)).toEqual([])
  })
})
const forged = (): Buffer => {
  const bytes = Buffer.from(wav)
  bytes.writeUInt32LE(1, 24)
  return bytes
}

test('times and numbers of an engine are checked', async () => {
  const body = await verbose(
    await form({
      model: 'far',
      prompt: 'mode:wild',
      response_format: 'verbose_json',
      'timestamp_granularities[]': 'word',
    }),
  )
  expect(body).toMatchObject({ language: 'unknown', duration: 2, text: 'The cat', task: 'transcribe' })
  const segments = body.segments as unknown as { start: number; end: number; tokens: number[] }[]
  expect(segments).toMatchObject([
    { id: 0, seek: 0, start: 0, end: 2, text: 'The cat', tokens: [1], temperature: 0, avg_logprob: 0 },
    { id: 1, start: 0, end: 0, text: ' --> sat', tokens: [] },
  ])
  expect(body.words).toEqual([{ word: 'cat', start: 2, end: 2 }])
  expect(await (await form({ model: 'far', prompt: 'mode:wild', response_format: 'srt' })).text()).toContain(
    '\n-> sat\n',
  )
})

test.each([
  ['mode:empty', { text: '', segments: [] }],
  [
    'mode:text',
    { text: 'The cat sat on the mat.', segments: [{ id: 0, start: 0, end: 2, text: 'The cat sat on the mat.' }] },
  ],
])('%s is a valid answer too', async (prompt, expected) => {
  expect(await verbose(await form({ model: 'far', prompt, response_format: 'verbose_json' }))).toMatchObject(expected)
})

test('an engine that disconnects once is called again, and the call is recorded', async () => {
  const response = await form({ model: 'far', prompt: 'mode:break-once' })
  expect(response.status).toBe(200)
  const id = response.headers.get('x-job-id')!
  const job = (await (await app.fetch(`/api/jobs/${id}`)).json()) as { job?: object }
  expect(job.job ?? job).toMatchObject({ id, kind: 'sync', task: 'std/audio-transcription', status: 'completed' })
})

test('an engine may be silent for twice the length of the audio, and no longer', async () => {
  expect(await verbose(await form({ model: 'hurried', prompt: 'mode:slow,ms=1500' }))).toMatchObject({ text: heard })
  const half = Buffer.concat([wavHead(16_000, 8_000), samples.subarray(0, 8_000)])
  const [status, { message }] = await refusal(await form({ model: 'hurried', prompt: 'mode:silent' }, { file: half }))
  expect([status, message]).toEqual([504, expect.stringContaining('made no progress for 0.8 s')])
})

test('tokens that an engine counts are used', async () => {
  const response = await form({ model: 'far', prompt: 'mode:tokens' })
  const job = (await (await app.fetch(`/api/jobs/${response.headers.get('x-job-id')}`)).json()) as { job?: object }
  expect(job.job ?? job).toMatchObject({ usage: { input_tokens: 14, output_tokens: 7 } })
})

test('a caller that disconnects frees the engine', async () => {
  await far.until(({ running }) => running === 0)
  const before = (await far.stats()).aborted
  const controller = new AbortController()
  const gone = app.fetch('/std/v1/audio/transcriptions', {
    body: { model: 'remote', url, prompt: 'mode:silent' },
    signal: controller.signal,
  })
  const refused = expect(gone).rejects.toThrow()
  await far.until(({ running }) => running === 1)
  controller.abort()
  await refused
  await far.until(({ aborted, running }) => aborted === before + 1 && running === 0)
})

test('the same key returns the same answer, in its own content type', async () => {
  const headers = { 'idempotency-key': 'once' }
  const ask = () => form({ model: 'far', response_format: 'srt' }, { headers })
  const [first, second] = [await ask(), await ask()]
  expect([first.status, second.status]).toEqual([200, 200])
  expect(second.headers.get('idempotent-replayed')).toBe('true')
  expect(second.headers.get('content-type')).toBe(first.headers.get('content-type'))
  expect(await second.text()).toBe(await first.text())
  expect(
    (await form({ model: 'far', response_format: 'srt' }, { headers, file: wav.subarray(0, 32_044) })).status,
  ).toBe(422)
})
