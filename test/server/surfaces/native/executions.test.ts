import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp

beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Node {
  node_id: string
  status: string
  cached: boolean
  attempts: number
  job_id: string | null
  result: unknown
  error: { code: string; message: string } | null
  started_at: number | null
}
interface Execution {
  id: string
  status: string
  outputs: Record<string, { result: unknown; values: Record<string, unknown> }> | null
  error: { code: string; node_id?: string; message: string } | null
  nodes: Node[]
  progress: Record<string, number>
  parent_execution_id: string | null
}

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  outputs: ['choices[0].message.content'],
  ...more,
})
const said = (node: string) => `\${nodes.${node}.result.choices[0].message.content}`

interface Answer {
  execution: Execution
  error: { code: string; message: string; details: { code: string; path: string }[] }
}

async function post(
  path: string,
  body: unknown = {},
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Answer }> {
  const response = await app.fetch(path, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as Answer }
}

async function run(dag: object, more: object = {}): Promise<Execution> {
  const { status, body } = await post('/api/workflows/run', { dag, ...more })
  expect([status, body]).toEqual([202, expect.anything()])
  return ended(body.execution.id)
}

async function ended(id: string): Promise<Execution> {
  const response = await app.fetch(`/api/workflow-executions/${id}?wait=60`)
  return ((await response.json()) as { execution: Execution }).execution
}

const statuses = ({ nodes }: Execution) => Object.fromEntries(nodes.map(({ node_id, status }) => [node_id, status]))

test('a chain runs in order, each node with the result of the one before', async () => {
  const done = await run(
    {
      nodes: { a: chat('one ${input.word}'), b: chat(`two ${said('a')}`), c: chat(`three ${said('b')}`) },
      edges: [
        { from: 'a', to: 'b' },
        { from: 'b', to: 'c' },
      ],
    },
    { input_params: { word: 'cat' } },
  )
  expect(done.status).toBe('completed')
  expect(statuses(done)).toEqual({ a: 'completed', b: 'completed', c: 'completed' })
  const words = done.outputs!.a!.values['choices[0].message.content'] as string
  expect(words.length).toBeGreaterThan(0)
  const { node } = (await (await app.fetch(`/api/workflow-executions/${done.id}/nodes/b`)).json()) as {
    node: { resolved_inputs: { messages: { content: string }[] } }
  }
  expect(node.resolved_inputs.messages[0]!.content).toBe(`two ${words}`)
})

describe('branches', () => {
  test('run side by side and are joined', async () => {
    const done = await run({
      nodes: {
        a: chat('a mode:slow,ms=400'),
        b: chat('b mode:slow,ms=400'),
        c: chat('c mode:slow,ms=400'),
        join: chat(`joined`),
      },
      edges: ['a', 'b', 'c'].map(from => ({ from, to: 'join' })),
    })
    expect(done.status).toBe('completed')
    const jobs = await Promise.all(
      done.nodes.map(
        async ({ job_id }) =>
          (await (await app.fetch(`/api/jobs/${job_id}`)).json()) as { metrics: { run_ms: number } },
      ),
    )
    // In sequence they would have taken three times as long.
    const times = await Promise.all(
      ['a', 'b', 'c', 'join'].map(async name => {
        const { job_id } = done.nodes.find(({ node_id }) => node_id === name)!
        const events = await app.fetch(`/api/jobs/${job_id}`)
        return (await events.json()) as { started_at: number; finished_at: number }
      }),
    )
    expect(jobs.every(({ metrics }) => metrics.run_ms > 0)).toBe(true)
    expect(times[3]!.started_at).toBeGreaterThanOrEqual(Math.max(...times.slice(0, 3).map(one => one.finished_at)))
  })

  test('a failure ends nodes that have not begun, and names the failed node', async () => {
    const done = await run({
      nodes: { bad: chat('mode:status,code=400,text=no'), after: chat('x'), other: chat('mode:slow,ms=300') },
      edges: [{ from: 'bad', to: 'after' }],
    })
    expect(done.status).toBe('failed')
    expect(statuses(done)).toMatchObject({ bad: 'failed', after: 'skipped', other: 'completed' })
    expect(done.error).toMatchObject({ code: 'node_failed', node_id: 'bad' })
    expect(done.outputs).toBeNull()
  })

  test('with continue on failure only the successors are skipped', async () => {
    const done = await run(
      {
        nodes: { bad: chat('mode:status,code=400,text=no'), after: chat('x'), a: chat('one'), b: chat('two') },
        edges: [
          { from: 'bad', to: 'after' },
          { from: 'a', to: 'b' },
        ],
      },
      { on_failure: 'continue' },
    )
    expect([done.status, statuses(done)]).toEqual([
      'failed',
      { bad: 'failed', after: 'skipped', a: 'completed', b: 'completed' },
    ])
  })

  test('a failure that may happen gives nothing to nodes that refer to it', async () => {
    const done = await run({
      nodes: {
        bad: chat('mode:status,code=400,text=no', { on_error: 'continue' }),
        after: chat(`it said ${said('bad')}`),
      },
      edges: [{ from: 'bad', to: 'after' }],
    })
    expect([done.status, statuses(done)]).toEqual(['completed', { bad: 'failed', after: 'completed' }])
  })
})

test('a reference without a target fails its node with a sentence, once', async () => {
  const done = await run({
    nodes: { a: chat('x'), b: chat('${nodes.a.result.choices[7].message.content}') },
    edges: [],
  })
  expect(done.status).toBe('failed')
  expect(done.nodes.find(({ node_id }) => node_id === 'b')).toMatchObject({
    status: 'failed',
    attempts: 1,
    error: {
      code: 'unresolved_reference',
      message: "${nodes.a.result.choices[7].message.content}: index 7 not found ('choices' has 1 item).",
    },
  })
})

describe('a running execution', () => {
  const long = { nodes: { a: chat('mode:slow,ms=60000'), b: chat(`x ${said('a')}`) }, edges: [] }

  async function begun(): Promise<string> {
    const { body } = await post('/api/workflows/run', { dag: long })
    const { id } = body.execution
    await expect
      .poll(async () =>
        statuses(
          ((await (await app.fetch(`/api/workflow-executions/${id}`)).json()) as { execution: Execution }).execution,
        ),
      )
      .toEqual({ a: 'running', b: 'pending' })
    return id
  }

  test('is cancelled with everything that runs', async () => {
    const id = await begun()
    const { status, body } = await post(`/api/workflow-executions/${id}/cancel`)
    expect([status, body.execution.status]).toEqual([200, 'cancelled'])
    const done = await ended(id)
    expect(statuses(done)).toEqual({ a: 'cancelled', b: 'cancelled' })
    const job = (await (await app.fetch(`/api/jobs/${done.nodes[0]!.job_id}`)).json()) as {
      status: string
      parent?: object
    }
    expect(job.status).toBe('cancelled')
    expect((await post(`/api/workflow-executions/${id}/cancel`)).status).toBe(200)
  })

  test('ends when its time is over', async () => {
    const { body } = await post('/api/workflows/run', { dag: long, timeout: 1 })
    const done = await ended(body.execution.id)
    expect([done.status, done.error!.code, statuses(done)]).toEqual([
      'timed_out',
      'timeout',
      { a: 'timed_out', b: 'cancelled' },
    ])
  })

  test('cannot be deleted or repeated before its end', async () => {
    const id = await begun()
    const path = `/api/workflow-executions/${id}`
    expect((await app.fetch(path, { method: 'DELETE' })).status).toBe(409)
    expect((await post(`${path}/retry`)).status).toBe(409)
    await post(`${path}/cancel`)
    expect((await app.fetch(path, { method: 'DELETE' })).status).toBe(200)
    expect((await app.fetch(path)).status).toBe(404)
  })
})

test('a repeat from the failed node keeps the completed nodes', async () => {
  const dag = {
    nodes: { a: chat('one'), b: chat(`mode:status,code=400,text=no ${said('a')}`), c: chat(`x ${said('b')}`) },
    edges: [],
  }
  const first = await run(dag)
  expect(statuses(first)).toEqual({ a: 'completed', b: 'failed', c: 'skipped' })
  for (const { node_id, job_id } of first.nodes.filter(node => node.job_id)) {
    const alone = await post(`/api/jobs/${job_id}/retry`)
    expect([node_id, alone.status, alone.body.error.code]).toEqual([node_id, 409, 'conflict'])
    expect(alone.body.error.message).toContain(`POST /api/workflow-executions/${first.id}/retry`)
  }
  const { status, body } = await post(`/api/workflow-executions/${first.id}/retry`)
  expect(status).toBe(202)
  const second = await ended(body.execution.id)
  expect(second.parent_execution_id).toBe(first.id)
  const [before, after] = [first, second].map(({ nodes }) => nodes.find(({ node_id }) => node_id === 'a')!)
  expect(after).toMatchObject({ status: 'completed', cached: true, job_id: before!.job_id, result: before!.result })
  // The results that it uses of the first execution are kept when that is deleted.
  expect((await app.fetch(`/api/workflow-executions/${first.id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await ended(second.id)).nodes.find(({ node_id }) => node_id === 'a')!.result).toEqual(before!.result)
})

test('equal work is done once, at the same time and later', async () => {
  const embed = {
    model_id: 'fake',
    task: 'std/embeddings',
    inputs: { input: `text ${Math.random()} mode:slow,ms=300` },
  }
  const nodes = Object.fromEntries(['a', 'b', 'c'].map(name => [name, embed]))
  const first = await run({ nodes, edges: [] })
  expect(first.nodes.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed'])
  expect(first.nodes.filter(({ cached }) => !cached)).toHaveLength(1)
  const second = await run({ nodes: { z: embed, fresh: { ...embed, cache: 'off' } }, edges: [] })
  expect(second.nodes.map(({ node_id, cached }) => [node_id, cached])).toEqual([
    ['z', true],
    ['fresh', false],
  ])
  expect(second.nodes[0]!.result).toEqual(first.nodes[0]!.result)
})

test('the executed definition is shown on request', async () => {
  const dag = { nodes: { a: chat('x'), b: chat(said('a')) }, edges: [] }
  const { id } = await run(dag)
  const read = async (query: string) => {
    const response = await app.fetch(`/api/workflow-executions/${id}${query}`)
    return ((await response.json()) as { execution: { dag?: object; nodes?: object[] } }).execution
  }
  expect((await read('')).dag).toBeUndefined()
  const told = await read('?include=dag')
  expect([told.dag, told.nodes]).toMatchObject([dag, [{ node_id: 'a' }, { node_id: 'b' }]])
})

test('an invalid workflow is refused with all reasons, and no execution is created', async () => {
  const { status, body } = await post('/api/workflows/run', {
    dag: {
      nodes: { a: chat('x', { model_id: 'ghost' }), b: chat('y', { task: 'std/dance' }) },
      edges: [{ from: 'a', to: 'nobody' }],
    },
  })
  expect([status, body.error.code]).toEqual([400, 'invalid_graph'])
  expect(body.error.details[0]).toMatchObject({ edge: { from: 'a', to: 'nobody' } })
  expect(body.error.details[1]).toMatchObject({ node_id: 'a' })
  expect(body.error.details.map(({ code, path }) => [code, path])).toEqual([
    ['edge_unknown_node', 'dag'],
    ['model_not_found', 'dag.nodes.a.model_id'],
    ['unknown_task', 'dag.nodes.b.task'],
  ])
})

test('a body that is too large is refused with the way to send its files', async () => {
  const dag = { nodes: { a: chat('${input.picture}') }, edges: [] }
  const input_params = { picture: `data:image/png;base64,${'A'.repeat(3_000_000)}` }
  const { status, body } = await post('/api/workflows/run', { dag, input_params })
  expect([status, body.error.code]).toEqual([413, 'payload_too_large'])
  expect(body.error.message).toContain('Upload large files with POST /std/v1/files')
})

test('an idempotency key makes one execution', async () => {
  const dag = { nodes: { a: chat('x') }, edges: [] }
  const key = { 'idempotency-key': `run-${Math.random()}` }
  const [one, two] = await Promise.all([
    post('/api/workflows/run', { dag }, key),
    post('/api/workflows/run', { dag }, key),
  ])
  expect([one.status, two.status, two.body.execution.id]).toEqual([202, 202, one.body.execution.id])
  expect((await post('/api/workflows/run', { dag, name: 'another' }, key)).status).toBe(422)
})

test('it can be followed: a snapshot first, every change once, the end last', async () => {
  const dag = { nodes: { a: chat('mode:slow,ms=200'), b: chat(`x ${said('a')}`) }, edges: [] }
  const { body } = await post('/api/workflows/run', { dag })
  const response = await app.fetch(`/api/workflow-executions/${body.execution.id}/events`)
  const text = await response.text()
  const types = [...text.matchAll(/^event: (.+)$/gm)].map(([, type]) => type!)
  expect(types[0]).toBe('snapshot')
  expect(types.at(-1)).toBe('workflow_execution.completed')
  const node = types.filter(type => type.startsWith('workflow_execution.node.') && !type.endsWith('.progress'))
  expect(node.filter(type => type.endsWith('.completed'))).toHaveLength(2)
  const ids = [...text.matchAll(/^id: evt_(\d+)$/gm)].map(([, id]) => Number(id))
  expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
})
