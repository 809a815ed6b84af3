import { afterAll, beforeAll, expect, test } from 'vitest'
import { relayedHeader } from '../../core/models/relayed-header.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** Models of another infer with `engine: infer`: see the guide `second-machine`. */
let other: TestApp
let app: TestApp
const tokenVariable = 'INFER_TEST_ANOTHER_INFER'
const price = { input_per_million_tokens: 1e6 }
const tasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank']

beforeAll(async () => {
  other = await startApp({
    models: [
      fakeModel('text', [], { tasks, price }),
      { id: 'painter', engine: 'demo', tasks: ['slug/text-to-image', 'slug/text-to-video'] },
      { id: 'further', engine: 'infer', url: 'http://127.0.0.1:9', tasks, health_path: '/' },
      fakeModel('falls', ['--exit', '3'], { tasks, dispatch_wait_ms: '300ms', fallbacks: [{ model: 'further' }] }),
    ],
  })
  process.env[tokenVariable] = other.secret
  const there = { engine: 'infer', url: other.url, api_key_env: tokenVariable }
  app = await startApp({
    models: [
      { id: 'theirs', ...there, upstream_id: 'text', tasks, price },
      { id: 'drawing', ...there, upstream_id: 'painter', slug: 'drawing', tasks: ['slug/text-to-image'] },
      { id: 'circle', ...there, upstream_id: 'further', tasks },
      { id: 'falling', ...there, upstream_id: 'falls', tasks },
    ],
  })
})
afterAll(async () => {
  delete process.env[tokenVariable]
  await app[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

const messages = [{ role: 'user', content: 'Hello' }]
interface Work {
  status: string
  model_id: string
  cost: number
  error: { code: string; message: string } | null
}
const read = async <Answer>(answer: Response | Promise<Response>) => (await (await answer).json()) as Answer

/** The newest job of the model that one of the two has. */
async function newest(at: TestApp, model: string): Promise<Partial<Work>> {
  const { jobs } = await read<{ jobs: Work[] }>(at.fetch(`/api/jobs?model_id=${model}&limit=1`))
  return jobs[0] ?? {}
}

test.each<[path: string, body: object, text: RegExp]>([
  ['/std/v1/chat/completions', { messages }, /"role":"assistant"/],
  ['/std/v1/chat/completions', { messages, stream: true }, /data: \[DONE\]/],
  ['/std/v1/completions', { prompt: 'Hello' }, /"text_completion"/],
  ['/std/v1/embeddings', { input: 'Hello' }, /"embedding"/],
  ['/std/v1/rerank', { query: 'a', documents: ['b', 'c'] }, /"relevance_score"/],
])('%s %j is answered by the other infer, and billed on both sides', async (path, body, text) => {
  const answer = await app.fetch(path, { body: { model: 'theirs', ...body } })
  expect(answer.status).toBe(200)
  expect(await answer.text()).toMatch(text)
  const here = await read<Work>(app.fetch(`/api/jobs/${answer.headers.get('x-job-id')}?wait=10`))
  expect(here).toMatchObject({ status: 'completed', model_id: 'theirs', cost: expect.any(Number) })
  await expect.poll(() => newest(other, 'text')).toMatchObject({ status: 'completed', cost: here.cost })
})

test('a job, a node of a workflow and an image by its slug are done there', async () => {
  const inputs = { input: 'Hello' }
  const job = await read<{ id: string }>(
    app.fetch('/api/jobs', { body: { task: 'std/embeddings', model_id: 'theirs', inputs } }),
  )
  expect(await read(app.fetch(`/api/jobs/${job.id}?wait=30`))).toMatchObject({ status: 'completed' })
  const dag = { nodes: { a: { task: 'std/embeddings', model_id: 'theirs', inputs } } }
  const { execution } = await read<{ execution: { id: string } }>(app.fetch('/api/workflows/run', { body: { dag } }))
  expect(await read(app.fetch(`/api/workflow-executions/${execution.id}?wait=30`))).toMatchObject({
    execution: { status: 'completed' },
  })
  const size = { width: 64, height: 64 }
  const drawn = await app.fetch('/slug/queue/submit/drawing/text-to-image', { body: { prompt: 'A cat', ...size } })
  expect(drawn.status).toBeLessThan(300)
  for (const [at, model] of [
    [app, 'drawing'],
    [other, 'painter'],
  ] as const)
    await expect.poll(() => newest(at, model)).toMatchObject({ status: 'completed' })
})

test('a request is passed on once only, by name or as a fallback', async () => {
  for (const model of ['circle', 'falling']) {
    const answer = await app.fetch('/std/v1/embeddings', { body: { model, input: 'Hello' } })
    expect(answer.status, model).toBeGreaterThanOrEqual(400)
    if (model === 'circle') expect(await answer.text()).toContain('passed on once only')
  }
  const headers = { [relayedHeader]: '1' }
  const asked = { body: { model: 'further', input: 'Hello' } }
  expect((await other.fetch('/std/v1/embeddings', { ...asked, headers })).status).toBe(403)
  // Without the header it is a model as any other, whose machine does not answer.
  expect((await other.fetch('/std/v1/embeddings', asked)).status).toBeGreaterThanOrEqual(500)
})

test('a job that was passed on does not use a fallback on another infer, while others do', async () => {
  const submit = async (headers: Record<string, string>) => {
    const body = { task: 'std/embeddings', model_id: 'falls', inputs: { input: 'Hello' } }
    return (await read<{ id: string }>(other.fetch('/api/jobs', { body, headers }))).id
  }
  const passedOn = await submit({ [relayedHeader]: '1' })
  const own = await submit({})
  const modelOf = async (id: string) => (await read<Work>(other.fetch(`/api/jobs/${id}`))).model_id
  await expect.poll(() => modelOf(own)).toBe('further')
  expect(await modelOf(passedOn)).toBe('falls')
})

test('once its token is revoked, the answer says that the other infer refuses it', async () => {
  const { token, secret } = await read<{ token: { id: string }; secret: string }>(
    other.fetch(`/api/organizations/${other.organizationId}/tokens`, { body: { name: 'first' } }),
  )
  await other.fetch(`/api/organizations/${other.organizationId}/tokens/${token.id}`, { method: 'DELETE' })
  process.env.INFER_TEST_REVOKED = secret
  await using refused = await startApp({
    models: [
      { id: 'theirs', engine: 'infer', url: other.url, api_key_env: 'INFER_TEST_REVOKED', upstream_id: 'text', tasks },
    ],
  })
  const answer = await refused.fetch('/std/v1/embeddings', { body: { model: 'theirs', input: 'Hello' } })
  expect(answer.status).toBe(502)
  expect(await answer.text()).toContain('has revoked or disabled the token')
  delete process.env.INFER_TEST_REVOKED
})
