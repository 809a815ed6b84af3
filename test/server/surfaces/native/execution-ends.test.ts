import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Execution {
  id: string
  status: string
  error: { node_id: string; cause: { code: string } } | null
  nodes: { node_id: string; status: string; attempts: number; job_id: string; error: { code: string } | null }[]
}
const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const read = async (path: string) =>
  ((await (await app.fetch(`/api/workflow-executions/${path}`)).json()) as { execution: Execution }).execution

async function begin(nodes: object, edges: object[] = []): Promise<string> {
  const response = await app.fetch('/api/workflows/run', { body: { dag: { nodes, edges } } })
  const body = (await response.json()) as { execution: Execution }
  expect([response.status, body]).toEqual([202, expect.anything()])
  return body.execution.id
}

test('a node that exceeds its time limit fails, and is not tried again', async () => {
  const done = await read(`${await begin({ a: chat('mode:slow,ms=60000', { timeout: 0.3 }) })}?wait=60`)
  expect(done).toMatchObject({ status: 'failed', error: { node_id: 'a', cause: { code: 'timeout' } } })
  expect(done.nodes[0]).toMatchObject({ status: 'failed', attempts: 1, error: { code: 'timeout' } })
})

test('a node that may fail lets its successors run', async () => {
  const nodes = {
    a: chat('mode:slow,ms=60000', { timeout: 0.3, on_error: 'continue' }),
    b: chat('it said ${nodes.a.result.choices[0].message.content}'),
  }
  const done = await read(`${await begin(nodes)}?wait=60`)
  expect([done.status, done.nodes.map(({ status }) => status)]).toEqual(['completed', ['failed', 'completed']])
})

test.for([
  [0, 1],
  [1, 2],
])('with %i retries a node whose engine fails is tried %i times', async ([max, attempts]) => {
  const node = chat('mode:status,code=500,text=no', { retries: { max, backoff_ms: 10 } })
  const done = await read(`${await begin({ a: node })}?wait=60`)
  expect([done.status, done.nodes[0]!.attempts]).toEqual(['failed', attempts])
})

test('a further attempt waits as long as the node configures, neither longer nor shorter', async () => {
  const tookMs = async (max: number, backoff_ms: number) => {
    const node = chat('mode:status,code=500,text=no', { retries: { max, backoff_ms } })
    const before = performance.now()
    await read(`${await begin({ a: node })}?wait=60`)
    return performance.now() - before
  }
  expect(await tookMs(1, 1_500)).toBeGreaterThan(1_450)
  // Three times the usual back-off would be at least 5 s.
  expect(await tookMs(3, 10)).toBeLessThan(4_000)
})

test('an attempt that ran out of its own time is not tried again, whatever the back-off', async () => {
  const node = chat('mode:slow,ms=60000', { timeout: 0.3, retries: { max: 3, backoff_ms: 10 } })
  const done = await read(`${await begin({ a: node })}?wait=60`)
  expect([done.status, done.nodes[0]!.attempts]).toEqual(['failed', 1])
})

test('cancelling the job of a node fails the node, and the partial result stays readable', async () => {
  const id = await begin({ a: chat('mode:slow,ms=60000'), b: chat('${nodes.a.result.id}') })
  await expect.poll(async () => (await read(id)).nodes[0]!.status).toBe('running')
  const [a] = (await read(id)).nodes
  expect((await app.fetch(`/api/jobs/${a!.job_id}/cancel`, { body: {} })).status).toBe(200)
  const done = await read(`${id}?wait=60`)
  expect(done).toMatchObject({ status: 'failed', error: { node_id: 'a', cause: { code: 'cancelled' } } })
  expect(done.nodes.map(({ status }) => status)).toEqual(['failed', 'skipped'])
  expect(done.nodes[0]!.error).toMatchObject({ code: 'cancelled' })
})

test('the inputs of a failed node can be read', async () => {
  const id = await begin({ a: chat('one'), b: chat('mode:status,code=400,text=no ${nodes.a.result.object}') })
  await read(`${id}?wait=60`)
  const answer = await app.fetch(`/api/workflow-executions/${id}/nodes/b`)
  const { node } = (await answer.json()) as { node: { resolved_inputs: { messages: { content: string }[] } } }
  expect(node.resolved_inputs.messages[0]!.content).toBe('mode:status,code=400,text=no chat.completion')
})
