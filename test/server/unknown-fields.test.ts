import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

let app: TestApp
const painter = fakeModel('painter', [], {
  slug: 'fake/paint',
  tasks: ['slug/text-to-image', 'slug/text-to-video'],
  extra_params: ['scheduler'],
})
beforeAll(async () => void (app = await startApp({ models: [painter, fakeModel('words')] })))
afterAll(() => app[Symbol.asyncDispose]())

const image = '/slug/fake/paint/text-to-image'
const video = '/slug/fake/paint/text-to-video'
const embeddings = { task: 'std/embeddings', model_id: 'words', inputs: { input: 'a' } }
const chat = { messages: [{ role: 'user', content: 'a' }] }
const node = { model_id: 'words', task: 'std/embeddings', inputs: { input: 'a' } }
const dag = { nodes: { one: node }, edges: [] }
const tokens = () => `/api/organizations/${app.organizationId}/tokens`

test.for<[title: string, path: string | (() => string), body: object, param: string, meant: string | undefined]>([
  ['a field of a slug', video, { prompt: 'a', num_frame: 5 }, 'num_frame', 'num_frames'],
  ['a field of the queue path', `/slug/queue/submit${video.slice(5)}`, { prompt: 'a', fsp: 5 }, 'fsp', 'fps'],
  ['a field of another task', image, { prompt: 'a', audio_url: 'a' }, 'audio_url', undefined],
  ['a required field that is misspelt', image, { promt: 'a' }, 'promt', 'prompt'],
  ['a parameter of the model', image, { prompt: 'a', schedular: 'x' }, 'schedular', 'scheduler'],
  ['a field of a batch query', '/slug/requests/batch', { request_id: ['q_1'] }, 'request_id', 'request_ids'],
  ['a field of a job', '/api/jobs', { ...embeddings, prioritty: 1 }, 'prioritty', 'priority'],
  ['its task', '/api/jobs', { ...embeddings, task: undefined, taks: 'std/embeddings' }, 'taks', 'task'],
  [
    'an input of a job with a slug',
    '/api/jobs',
    { slug: 'fake/paint/text-to-video', inputs: { prompt: 'a', num_frame: 5 } },
    'inputs.num_frame',
    'num_frames',
  ],
  [
    'an input of a text job',
    '/api/jobs',
    { task: 'std/chat-completion', model_id: 'words', input: { ...chat, temprature: 0 } },
    'input.temprature',
    'temperature',
  ],
  ['a field of a workflow', '/api/workflows', { name: 'a', dag, paramters: {} }, 'paramters', 'parameters'],
  ['a field of a graph', '/api/workflows', { name: 'a', dag: { ...dag, edge: [] } }, 'dag.edge', 'edges'],
  [
    'a field of a parameter',
    '/api/workflows',
    { name: 'a', dag, parameters: { n: { type: 'integer', minimun: 1 } } },
    'parameters.n.minimun',
    'minimum',
  ],
  ['a field of a run', '/api/workflows/run', { dag, input_parameters: {} }, 'input_parameters', 'input_params'],
  ['a field of a check', '/api/workflows/validate', { dag, name_of_it: 'a' }, 'name_of_it', undefined],
  ['a field of a token', tokens, { name: 'a', scope: ['user:read'] }, 'scope', 'scopes'],
])('%s that does not exist is refused', async ([, path, body, param, meant]) => {
  const response = await app.fetch(typeof path === 'string' ? path : path(), { body })
  const { error } = (await response.json()) as { error: { code: string; param: string; message: string } }
  expect({ status: response.status, ...error }).toMatchObject({ status: 400, code: 'unknown_parameter', param })
  expect(error.message).toContain(`'${param}'`)
  if (meant === undefined) expect(error.message).not.toContain('Did you mean')
  else expect(error.message).toContain(`Did you mean '${meant}'?`)
})

test('each unknown field is listed', async () => {
  const response = await app.fetch(video, { body: { prompt: 'a', num_frame: 5, fsp: 16 } })
  const { error } = (await response.json()) as { error: { details: { path: string; code: string }[] } }
  expect(error.details.map(({ path, code }) => [path, code])).toEqual([
    ['num_frame', 'unknown_parameter'],
    ['fsp', 'unknown_parameter'],
  ])
})

test.for<[title: string, path: string, param: string, meant: string]>([
  ['a filter of a list', '/api/jobs?stauts=failed', 'stauts', 'status'],
  ['a filter of executions', '/api/workflow-executions?worklfow_id=wf_1', 'worklfow_id', 'workflow_id'],
  ['a choice of the logs', '/api/system/logs?modle=words', 'modle', 'model'],
  ['a choice of events', '/api/events?type=job.completed', 'type', 'types'],
])('%s that does not exist is refused', async ([, path, param, meant]) => {
  const response = await app.fetch(path)
  const { error } = (await response.json()) as { error: object }
  expect({ status: response.status, error }).toMatchObject({
    status: 400,
    error: { code: 'unknown_parameter', param, message: expect.stringContaining(`Did you mean '${meant}'?`) },
  })
})

test.for<[title: string, method: string, path: string | (() => string), meant: string | undefined]>([
  ['a route without parameters', 'GET', '/api/me', undefined],
  ['a list without parameters', 'GET', '/api/model-status', undefined],
  ['a route that submits a job', 'POST', '/api/jobs', undefined],
  ['a route that cancels', 'POST', '/api/jobs/job_x/cancel', undefined],
  ['a route of tokens', 'POST', tokens, undefined],
  ['a route of workflows', 'POST', '/api/workflows/run', undefined],
  ['a result', 'GET', '/slug/requests/q_1', undefined],
  ['a submit', 'POST', image, undefined],
])('an unknown query parameter of %s is refused', async ([, method, path, meant]) => {
  const at = typeof path === 'string' ? path : path()
  const response = await app.fetch(`${at}?wiat=5`, { method, ...(method === 'POST' ? { body: {} } : {}) })
  const { error } = (await response.json()) as { error: { code: string; param: string; message: string } }
  expect({ status: response.status, ...error }).toMatchObject({ status: 400, code: 'unknown_parameter', param: 'wiat' })
  expect(error.message).toContain(meant === undefined ? 'Leave it out.' : `Did you mean '${meant}'?`)
})

test('a query parameter of a submission is compared with the known ones', async () => {
  const response = await app.fetch(`${image}?webhok_url=https://example.com`, { body: { prompt: 'a' } })
  expect([response.status, await response.text()]).toEqual([
    400,
    expect.stringContaining("Did you mean 'webhook_url'?"),
  ])
})

test.for<[title: string, path: string, body: object | undefined]>([
  ['an OpenAI path, as the Azure client sends it', '/std/v1/embeddings?api-version=1', { model: 'words', input: 'a' }],
  ['a list of models', '/std/v1/models?beta=true', undefined],
  ['a path of fal', '/fal/queue/fake/paint/text-to-image?fal_max_queue_length=5', { prompt: 'a' }],
  ['a public page', '/openapi.json?v=2', undefined],
  ['a probe', '/livez?verbose', undefined],
])('%s accepts any query parameter', async ([, path, body]) => {
  const response = await app.fetch(path, body ? { body } : {})
  expect([response.status, response.ok ? '' : await response.text()]).toEqual([200, ''])
})

test.for<[title: string, path: string, body: object, status: number]>([
  ['a parameter that the model is configured to take', image, { prompt: 'a', scheduler: 'x' }, 202],
  ["fal's name of a field", video, { prompt: 'a', frames_per_second: 8, num_frames: 2 }, 202],
  ['any field of an OpenAI body', '/std/v1/embeddings', { model: 'words', input: 'a', colour: 'red' }, 200],
  ["any field that fal's clients send", '/fal/queue/fake/paint/text-to-image', { prompt: 'a', acceleration: 'x' }, 200],
  [
    'an OpenAI field of a job that has no effect here',
    '/api/jobs',
    { task: 'std/chat-completion', model_id: 'words', inputs: { ...chat, store: false, service_tier: 'auto' } },
    202,
  ],
])('%s is accepted', async ([, path, body, status]) => {
  const response = await app.fetch(path, { body })
  expect([response.status, response.ok ? '' : await response.text()]).toEqual([status, ''])
})

test('the inputs of a job as returned can be submitted again', async () => {
  const submit = async (body: object) => {
    const response = await app.fetch('/api/jobs', { body })
    expect([response.status, response.ok ? '' : await response.text()]).toEqual([202, ''])
    return ((await response.json()) as { id: string }).id
  }
  const read = async (id: string) =>
    (await (await app.fetch(`/api/jobs/${id}`)).json()) as { inputs: Record<string, unknown> }
  const by = { slug: 'fake/paint/text-to-image' }
  const first = await submit({ ...by, inputs: { prompt: 'a', width: 64, height: 64, seed: 3, scheduler: 'x' } })
  const { inputs } = await read(first)
  expect(inputs).toMatchObject({ prompt: 'a', width: 64, height: 64, seed: 3, scheduler: 'x' })
  const second = await submit({ ...by, inputs })
  expect((await read(second)).inputs).toEqual(inputs)
})
