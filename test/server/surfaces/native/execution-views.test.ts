import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { openReader } from '../../_sse.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Execution {
  id: string
  status: string
  error: Record<string, unknown> | null
  warnings: { code: string; node_id: string; message: string }[]
  trigger: string
  started_at: number | null
  finished_at: number | null
  nodes: { node_id: string; status: string; resolved_inputs: unknown; result: unknown }[]
}
const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const get = async <Body>(path: string): Promise<Body> => (await (await app.fetch(path)).json()) as Body
const read = async (path: string) => (await get<{ execution: Execution }>(`/api/workflow-executions/${path}`)).execution

async function run(body: { dag: { nodes: object; edges?: object[] } } & Record<string, unknown>): Promise<Execution> {
  const response = await app.fetch('/api/workflows/run', { body })
  const { execution } = (await response.json()) as { execution: Execution }
  expect([response.status, execution]).toEqual([202, expect.objectContaining({ trigger: 'api' })])
  return read(`${execution.id}?wait=60`)
}

/** The execution as shown in the list, when read, in the snapshot and in its end event. */
async function everywhere({ id }: Execution): Promise<Execution[]> {
  const { executions } = await get<{ executions: Execution[] }>('/api/workflow-executions?limit=100')
  const events = await (await app.fetch(`/api/workflow-executions/${id}/events?after=evt_0`)).text()
  const told = [...events.matchAll(/^data: (.+)$/gm)].flatMap(([, text]) => {
    const { data } = JSON.parse(text!) as { data: { execution?: Execution } }
    return data.execution && data.execution.status !== 'pending' ? [data.execution] : []
  })
  expect(told.length).toBeGreaterThan(1)
  return [executions.find(one => one.id === id)!, await read(id), told[0]!, told.at(-1)!]
}

test('a failure and the nodes skipped for it are reported wherever the failure is', async () => {
  const done = await run({
    dag: {
      nodes: {
        good: chat('x'),
        bad: chat('mode:status,code=400,text=no'),
        worse: chat('mode:status,code=400,text=no'),
        after: chat('x'),
        last: chat('x'),
      },
      edges: [
        { from: 'bad', to: 'after' },
        { from: 'after', to: 'last' },
      ],
    },
    on_failure: 'continue',
  })
  for (const view of await everywhere(done)) {
    expect(view).toMatchObject({ status: 'failed', trigger: 'api', warnings: [] })
    expect(view.error).toMatchObject({
      code: 'node_failed',
      type: 'execution_error',
      task: 'std/chat-completion',
      cause: { code: expect.any(String) as string },
      failed_nodes: ['bad', 'worse'],
      skipped_nodes: ['after', 'last'],
    })
    expect(['bad', 'worse']).toContain(view.error!.node_id)
  }
})

test('a failure that may happen is a warning of the completed execution', async () => {
  const done = await run({
    dag: {
      nodes: {
        bad: chat('mode:status,code=400,text=no', { on_error: 'continue' }),
        after: chat('it said ${nodes.bad.result.choices[0].message.content}'),
      },
    },
  })
  for (const view of await everywhere(done)) {
    expect(view).toMatchObject({ status: 'completed', error: null, trigger: 'api' })
    expect(view.warnings).toEqual([
      { code: 'node_failed', node_id: 'bad', message: expect.stringContaining('Node "bad" failed: ') as string },
    ])
  }
})

test('an execution without an engine has a start time too, and so has a retry of completed work', async () => {
  const nodes = { a: { model_id: 'fake', task: 'std/embeddings', inputs: { input: `begun ${Math.random()}` } } }
  const first = await run({ dag: { nodes } })
  const second = await run({ dag: { nodes } })
  const answer = await app.fetch(`/api/workflow-executions/${first.id}/retry`, { body: {} })
  const { execution } = (await answer.json()) as { execution: Execution }
  for (const { id } of [second, execution]) {
    const done = await read(id)
    expect(done).toMatchObject({ status: 'completed', duration_ms: 0, nodes: [{ cached: true, duration_ms: 0 }] })
    expect(done.started_at).toBe(done.finished_at)
    const events = await (await app.fetch(`/api/workflow-executions/${id}/events?after=evt_0`)).text()
    const types = [...events.matchAll(/^event: (.+)$/gm)].map(([, type]) => type)
    expect(types.filter(type => type === 'workflow_execution.started')).toHaveLength(1)
  }
})

test('the inputs and the kept results of each node are in the execution and in the list of its nodes', async () => {
  const said = 'choices[0].message.content'
  const done = await run({
    dag: {
      nodes: {
        a: chat('one ${input.word}', { outputs: [said] }),
        b: { model_id: 'fake', task: 'std/embeddings', inputs: { input: `two \${nodes.a.result.${said}}` } },
        again: { model_id: 'fake', task: 'std/embeddings', inputs: { input: `two \${nodes.a.result.${said}}` } },
        bad: chat('mode:status,code=400,text=no ${nodes.a.result.object}'),
        last: chat('x ${nodes.bad.result.id}'),
      },
      edges: [{ from: 'b', to: 'again' }],
    },
    input_params: { word: 'cat' },
    on_failure: 'continue',
  })
  const given = done.nodes.map(({ node_id, resolved_inputs }) => [node_id, resolved_inputs])
  const [{ result }] = done.nodes as unknown as [{ result: { choices: { message: { content: string } }[] } }]
  const two = { input: `two ${result.choices[0]!.message.content}` }
  expect(given).toEqual([
    ['a', { messages: [{ role: 'user', content: 'one cat' }] }],
    ['b', two],
    ['again', two],
    ['bad', { messages: [{ role: 'user', content: 'mode:status,code=400,text=no chat.completion' }] }],
    ['last', null],
  ])
  expect(Object.keys(result)).toEqual(['choices'])
  const { nodes } = await get<Execution>(`/api/workflow-executions/${done.id}/nodes`)
  expect(nodes).toEqual(done.nodes)
  const long = 'x'.repeat(20_000)
  const large = await run({ dag: { nodes: { a: chat('${input.word}') } }, input_params: { word: long } })
  expect(large.nodes[0]!.resolved_inputs).toBeNull()
  const { node } = await get<{ node: object }>(`/api/workflow-executions/${large.id}/nodes/a`)
  expect(node).toMatchObject({ resolved_inputs: { messages: [{ content: long }] } })
})

test('the events of an organization contain executions and their nodes, and resume where they stopped', async () => {
  using reader = await openReader(app, '/api/events?types=workflow_execution.*')
  await reader.until(() => reader.records.length === 1)
  expect(reader.records[0]).toMatchObject({ event: 'snapshot', data: { data: { jobs: [], executions: [] } } })
  const input = `heard ${Math.random()}`
  const embed = { model_id: 'fake', task: 'std/embeddings', inputs: { input } }
  const done = await run({
    dag: {
      nodes: { a: embed, b: embed, bad: chat('mode:status,code=400,text=no'), last: chat('x') },
      edges: [
        { from: 'a', to: 'b' },
        { from: 'b', to: 'bad' },
        { from: 'bad', to: 'last' },
      ],
    },
  })
  const ended = ({ data }: { data: { type: string } }) => data.type === 'workflow_execution.failed'
  await reader.until(() => reader.records.some(ended))
  const told = (records: typeof reader.records) =>
    records.slice(1).map(({ data: { type, data } }) => [type.replace('workflow_execution.', ''), data.node_id ?? null])
  expect(told(reader.records)).toEqual([
    ['created', null],
    ['node.started', 'a'],
    ['started', null],
    ['node.completed', 'a'],
    ['node.cached', 'b'],
    ['node.started', 'bad'],
    ['node.failed', 'bad'],
    ['node.skipped', 'last'],
    ['failed', null],
  ])
  for (const { data } of reader.records.slice(1)) expect(data.data.execution_id).toBe(done.id)
  expect(reader.records.at(-1)!.data.data.execution).toMatchObject({
    status: 'failed',
    error: { failed_nodes: ['bad'] },
  })

  using again = await openReader(app, '/api/events?types=workflow_execution.failed,job.failed', {
    'last-event-id': reader.records[1]!.id!,
  })
  await again.until(() => again.records.some(ended))
  expect(again.records.slice(1).map(({ data }) => data.type)).toEqual(['job.failed', 'workflow_execution.failed'])
})

test("the job of a node shows the node's inputs, also before its end and after a failure", async () => {
  const done = await run({
    dag: {
      nodes: {
        a: chat('one ${input.word}'),
        paint: { model_id: 'fake', task: 'std/embeddings', inputs: { input: 'two ${input.word}' } },
        bad: chat('mode:status,code=400,text=no ${input.word}'),
      },
    },
    input_params: { word: 'cat' },
    on_failure: 'continue',
  })
  const nodes = done.nodes as (Execution['nodes'][number] & { job_id: string })[]
  for (const { job_id, resolved_inputs } of nodes) {
    const { inputs } = await get<{ inputs: unknown }>(`/api/jobs/${job_id}`)
    expect(inputs).toEqual(resolved_inputs)
    expect(JSON.stringify(inputs)).toContain('cat')
  }
  const answered = await app.fetch('/api/workflows/run', { body: { dag: { nodes: { a: chat('mode:silent now') } } } })
  const { execution } = (await answered.json()) as { execution: Execution }
  const running = await read(execution.id)
  const [{ job_id: id }] = running.nodes as unknown as [{ job_id: string }]
  expect(await get(`/api/jobs/${id}`)).toMatchObject({ inputs: { messages: [{ content: 'mode:silent now' }] } })
  await app.fetch(`/api/workflow-executions/${execution.id}/cancel`, { body: {} })
})
