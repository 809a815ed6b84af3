import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

/** `Prefer`: a job instead of a synchronous answer, and a limit to the wait for one. */
let app: TestApp
let engine: ScriptedEngine
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    if (!String(seen.body.input).startsWith('hold')) well(seen, response)
  })
  app = await startApp({
    models: [engine.model('far'), engine.model('narrow', { concurrency: 1, dispatch_wait_ms: '20s' })],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const chat = (more: object = {}) => ({ model: 'far', messages: [{ role: 'user', content: 'Hello' }], ...more })
async function ask(path: string, body: object, headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { body, headers })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}
const later = { prefer: 'respond-async' }

test.each<[string, object]>([
  ['/std/v1/chat/completions', chat()],
  ['/v1/embeddings', { model: 'far', input: 'a' }],
  ['/std/v1/rerank', { model: 'far', query: 'a', documents: ['a', 'b'] }],
  ['/std/v1/score', { model: 'far', text_1: 'a', text_2: 'b' }],
])('respond-async makes a job of %s', async (path, body) => {
  const made = await ask(path, body, later)
  expect([made.status, made.headers.get('preference-applied')]).toEqual([202, 'respond-async'])
  expect(made.body).toEqual({
    id: expect.stringMatching(/^job_/),
    queue_id: expect.stringMatching(/^q_/),
    status: 'pending',
    status_url: `${app.url}/api/jobs/${String(made.body.id)}`,
  })
  const job = (await (await app.fetch(`/api/jobs/${String(made.body.id)}?wait=30`)).json()) as Record<string, unknown>
  expect(job).toMatchObject({ kind: 'async', model_id: 'far', inputs: body, status: 'completed' })
})

test('invalid requests are refused at once, and no job is made', async () => {
  for (const [body, status] of [
    [{ model: 'none', input: 'a' }, 404],
    [{ model: 'far' }, 400],
  ] as const) {
    const refused = await ask('/std/v1/embeddings', body, later)
    expect([refused.status, refused.headers.get('x-job-id')]).toEqual([status, null])
  }
})

test('the same key finds the same job', async () => {
  const headers = { ...later, 'idempotency-key': 'one' }
  const first = await ask('/std/v1/embeddings', { model: 'far', input: 'a' }, headers)
  const again = await ask('/std/v1/embeddings', { input: 'a', model: 'far' }, headers)
  expect([again.body.id, again.headers.get('idempotent-replayed')]).toEqual([first.body.id, 'true'])
  expect((await ask('/std/v1/embeddings', { model: 'far', input: 'b' }, headers)).status).toBe(422)
})

test('a stream is answered as a stream', async () => {
  const response = await app.fetch('/std/v1/chat/completions', { body: chat({ stream: true }), headers: later })
  expect([response.status, response.headers.get('preference-applied')]).toEqual([200, null])
  expect(await response.text()).toContain('[DONE]')
})

test('wait=1 limits the wait for a free slot', async () => {
  const leave = new AbortController()
  void app
    .fetch('/std/v1/embeddings', { body: { model: 'narrow', input: 'hold the slot' }, signal: leave.signal })
    .catch(() => {})
  await engine.until(seen => seen.some(({ body }) => body.input === 'hold the slot'))
  const from = performance.now()
  const refused = await ask('/std/v1/embeddings', { model: 'narrow', input: 'a' }, { prefer: 'wait=1' })
  expect([refused.status, (refused.body.error as { code: string }).code]).toEqual([503, 'no_capacity'])
  expect(performance.now() - from).toBeLessThan(15_000)
  leave.abort()
  expect((await ask('/std/v1/embeddings', { model: 'narrow', input: 'a' }, { prefer: 'wait=10' })).status).toBe(200)
})

test.each(['', 'handling=lenient', 'respond-asynchronously', 'wait=soon', 'x'.repeat(2000)])(
  'any other value, %j, is ignored',
  async prefer => {
    expect((await ask('/std/v1/embeddings', { model: 'far', input: 'a' }, { prefer })).status).toBe(200)
  },
)
