import { afterAll, beforeAll, expect, test } from 'vitest'
import { wavHead } from '../../../../core/tasks/wav.ts'
import { fakeModel, startApp, type TestApp, workspacesIn } from '../../../_app.ts'

/** Speech to text as jobs and as workflow nodes, beside the toys for speech and transcription. */
let app: TestApp
const task = 'std/audio-transcription'
beforeAll(async () => {
  const toy = { engine: 'demo', devices: 'cpu', memory: '128MiB', stop_grace: '500ms' }
  app = await startApp({
    models: [
      fakeModel('far', [], { tasks: [task, 'std/audio-translation'] }),
      fakeModel('chat'),
      { id: 'voice', ...toy, tasks: ['std/audio-speech'] },
      { id: 'ear', ...toy, tasks: [task] },
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const samples = Buffer.alloc(64_000)
for (let at = 0; at < 32_000; at++) samples.writeInt16LE(Math.round(8_000 * Math.sin(at / 6)), 2 * at)
const wav = Buffer.concat([wavHead(16_000, samples.length), samples])
const url = `data:audio/wav;base64,${wav.toString('base64')}`

interface Body {
  id: string
  job?: Job
  execution?: { id: string; nodes: Node[] }
  diagnostics?: { type_issues: { code: string; path: string; node_id: string }[] }
  error?: { code: string; param: string; message: string }
}
type Job = Record<string, unknown>
async function ask(
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Body }> {
  const response = await app.fetch(path, { ...(body ? { body } : {}), headers })
  return { status: response.status, body: (await response.json()) as Body }
}
const submit = (inputs: object, more: object = {}) => ask('/api/jobs', { task, model_id: 'far', inputs, ...more })
async function ended(id: string): Promise<Job> {
  let job: Job = {}
  await expect
    .poll(async () => {
      const { body } = await ask(`/api/jobs/${id}`)
      job = body.job ?? { ...body }
      return job.status
    })
    .toMatch(/completed|failed/)
  return job
}
const heard = 'The cat sat on the mat. The dog barked.'

test('a job has the whole transcript as its result, and the audio as a file of its own', async () => {
  const made = await submit({ url, response_format: 'srt', language: 'en' })
  expect(made.status).toBe(202)
  const job = await ended(made.body.id)
  expect(job).toMatchObject({
    status: 'completed',
    task,
    inputs: { model: 'far', file_id: expect.stringMatching(/^file-/) as string, language: 'en' },
    result: { task: 'transcribe', text: heard, language: 'english', duration: 2, segments: [{ id: 0 }, { id: 1 }] },
    usage: { input_tokens: 0, output_tokens: 0 },
  })
  expect(JSON.stringify(job.inputs)).not.toContain('data:')
  // Again, with the stored file.
  const again = await ask(`/api/jobs/${made.body.id}/retry`, {})
  expect(await ended(again.body.id)).toMatchObject({ status: 'completed', result: { text: heard } })
  expect(workspacesIn(app.dataDir)).toEqual([])
})

test('words are kept when requested, and a translation is stored as such', async () => {
  const words = await submit({ url, response_format: 'verbose_json', timestamp_granularities: ['word'] })
  expect(await ended(words.body.id)).toMatchObject({ result: { words: [{ word: 'The', start: 0, end: 0.5 }] } })
  const english = await submit({ url }, { task: 'std/audio-translation' })
  expect(await ended(english.body.id)).toMatchObject({ result: { task: 'translate', language: 'english' } })
})

test.each<[string, object, number, string, string]>([
  ['no sound', {}, 400, 'missing_required_parameter', 'inputs.file'],
  ['two', { url, file_id: 'file-01ARZ3NDEKTSV4RRFFQ69G5FAV' }, 400, 'invalid_value', 'inputs.file'],
  ['what is no sound', { url: 'data:audio/wav;base64,aGVsbG8=' }, 400, 'invalid_audio', 'inputs.url'],
  ['a file that is not there', { file_id: 'file-01ARZ3NDEKTSV4RRFFQ69G5FAV' }, 404, 'not_found', 'inputs.file_id'],
  ['an address of this machine', { url: 'http://127.0.0.1/a.mp3' }, 400, 'url_fetch_failed', 'inputs.url'],
])('%s is refused at submission', async (_name, inputs, status, code, param) => {
  const refused = await submit(inputs)
  expect([refused.status, refused.body.error]).toEqual([status, expect.objectContaining({ code, param })])
})

test('respond-async makes a job of a form, and the same key finds it', async () => {
  const send = async (file = wav) => {
    const body = new FormData()
    body.append('model', 'far')
    body.append('file', new Blob([new Uint8Array(file)]), 'speech.wav')
    const headers = { authorization: `Bearer ${app.secret}`, prefer: 'respond-async', 'idempotency-key': 'form' }
    const response = await fetch(`${app.url}/v1/audio/transcriptions`, { method: 'POST', headers, body })
    return { status: response.status, body: (await response.json()) as { id: string } }
  }
  const [first, second] = [await send(), await send()]
  expect([first.status, second.status, second.body.id]).toEqual([202, 202, first.body.id])
  expect(await ended(first.body.id)).toMatchObject({ result: { text: heard } })
  expect((await send(wav.subarray(0, 32_044))).status).toBe(422)
})

interface Node {
  node_id: string
  status: string
  cached: boolean
  result: object | null
  error: object | null
}
async function run(nodes: object, more: object = {}): Promise<Node[]> {
  const begun = await ask('/api/workflows/run', { dag: { nodes, edges: [] }, ...more })
  expect([begun.status, begun.body]).toEqual([202, expect.anything()])
  const { id } = begun.body.execution!
  const done = await ask(`/api/workflow-executions/${id}?wait=60`)
  return done.body.execution!.nodes
}
const say = {
  model_id: 'voice',
  task: 'std/audio-speech',
  inputs: { input: 'Grüße von der Katze! Und vom Hund.', response_format: 'wav' },
}
const chat = (content: string) => ({
  model_id: 'chat',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
})

test.each([
  ['url', '${nodes.say.result.audio_url}'],
  ['file', '${nodes.say.result.audio_url}'],
  ['file_id', '${nodes.say.result.file_id}'],
])('one node synthesizes and another transcribes: %s', async (field, reference) => {
  const nodes = {
    say,
    hear: { model_id: 'ear', task, inputs: { [field]: reference } },
    answer: chat('${nodes.hear.result.text} at ${nodes.hear.result.segments[0].start}'),
  }
  const checked = await ask('/api/workflows/validate', { dag: { nodes, edges: [] } })
  const { type_issues } = checked.body.diagnostics!
  expect(type_issues).toEqual([])
  const done = await run(nodes)
  expect(done.map(({ status, error }) => [status, error])).toEqual([
    ['completed', null],
    ['completed', null],
    ['completed', null],
  ])
  expect(done[1]!.result).toMatchObject({ text: say.inputs.input, segments: [{ id: 0 }, { id: 1 }] })
})

test('the same audio is transcribed once', async () => {
  const hear = { model_id: 'far', task, inputs: { url: '${nodes.say.result.audio_url}' } }
  const first = await run({ say: { ...say, cache: 'off' }, hear })
  const second = await run({ say: { ...say, cache: 'off' }, hear })
  expect([first[1]!.cached, second[1]!.cached]).toEqual([false, true])
  const hot = { ...hear, inputs: { ...hear.inputs, temperature: 0.5 } }
  await run({ say, hear: hot })
  expect((await run({ say, hear: hot }))[1]!.cached).toBe(false)
})

test('the types of results are known to validation', async () => {
  const nodes = {
    hear: { model_id: 'far', task, inputs: { url } },
    wrong: {
      model_id: 'far',
      task: 'std/transcription',
      inputs: { url, temperature: '${nodes.hear.result.text}' },
    },
    lost: chat('${nodes.hear.result.segments[0].begin} ${nodes.hear.result.words[0].word}'),
    empty: { model_id: 'far', task, inputs: {} },
  }
  const { body } = await ask('/api/workflows/validate', { dag: { nodes, edges: [] } })
  const { type_issues } = body.diagnostics!
  expect(type_issues.map(({ node_id, code, path }) => `${node_id} ${path} ${code}`).sort()).toEqual([
    'empty inputs.file missing_input',
    'lost inputs.messages[0].content unknown_output_path',
    'wrong inputs.temperature type_mismatch',
  ])
})
