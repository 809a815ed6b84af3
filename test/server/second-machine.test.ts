import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** Models of another infer, as a remote one: see the guide `second-machine`. */
let other: TestApp
let app: TestApp
const tokenVariable = 'INFER_TEST_OTHER_BOX'
const price = { input_per_million_tokens: 1e6 }

beforeAll(async () => {
  const tasks = ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank']
  other = await startApp({ models: [fakeModel('theirs', [], { tasks })] })
  process.env[tokenVariable] = other.secret
  const there = { engine: 'remote', api_key_env: tokenVariable, tasks, price, health_path: '/readyz' }
  app = await startApp({
    models: [
      { id: 'ours', ...there, url: `${other.url}/std/v1`, upstream_id: 'theirs' },
      { id: 'two', ...there, urls: [`${other.url}/std/v1`, 'http://127.0.0.1:9/std/v1'], upstream_id: 'theirs' },
    ],
  })
})
afterAll(async () => {
  delete process.env[tokenVariable]
  await app[Symbol.asyncDispose]()
  await other[Symbol.asyncDispose]()
})

const messages = [{ role: 'user', content: 'Hello' }]
const calls: [path: string, body: object, text: RegExp][] = [
  ['/std/v1/chat/completions', { messages }, /"role":"assistant"/],
  ['/std/v1/chat/completions', { messages, stream: true }, /data: \[DONE\]/],
  ['/std/v1/completions', { prompt: 'Hello' }, /"text_completion"/],
  ['/std/v1/embeddings', { input: 'Hello' }, /"embedding"/],
  ['/std/v1/rerank', { query: 'a', documents: ['b', 'c'] }, /"relevance_score"/],
]
test.each(calls)(
  '%s %j is answered by the other machine, and billed here by the price here',
  async (path, body, text) => {
    const answer = await app.fetch(path, { body: { model: 'ours', ...body } })
    expect(answer.status).toBe(200)
    expect(await answer.text()).toMatch(text)
    const record = await (await app.fetch(`/api/jobs/${answer.headers.get('x-job-id')}?wait=10`)).json()
    expect(record).toMatchObject({ status: 'completed', model_id: 'ours', cost: expect.any(Number) })
    expect((record as { cost: number }).cost).toBeGreaterThan(0)
  },
)

test('of two machines one is down: every request is answered, and the status says which one fails', async () => {
  for (let at = 0; at < 6; at++)
    expect((await app.fetch('/std/v1/embeddings', { body: { model: 'two', input: 'Hello' } })).status).toBe(200)
  const { engines } = (await (await app.fetch('/api/system/status')).json()) as {
    engines: { model_id: string; addresses: object[] }[]
  }
  expect(engines.find(({ model_id }) => model_id === 'two')!.addresses).toEqual([
    { url: other.url, state: 'ready', failures: 0, reason: null, retry_after: null },
    {
      url: 'http://127.0.0.1:9',
      state: 'unavailable',
      failures: 1,
      reason: 'cannot be reached',
      retry_after: expect.any(Number),
    },
  ])
})
