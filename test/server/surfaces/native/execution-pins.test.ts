import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Node {
  node_id: string
  status: string
  pinned: boolean
  cached: boolean
  job_id: string | null
  attempts: number
  result: unknown
}
interface Execution {
  id: string
  status: string
  cost: number
  progress: object
  outputs: Record<string, { result: unknown }> | null
  nodes: Node[]
}

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const answer = (content: string) => ({ choices: [{ index: 0, message: { role: 'assistant', content } }] })
const told = '${nodes.a.result.choices[0].message.content}'
/** Each node says what the one before it has said. */
const dag = {
  nodes: {
    a: chat('mode:status,code=400,text=no'),
    b: chat(`b ${told}`, { pin: answer('stored') }),
    c: chat('c ${nodes.b.result.choices[0].message.content}'),
  },
}

const post = async (path: string, body: object) => {
  const response = await app.fetch(path, { body })
  return { status: response.status, body: (await response.json()) as { execution: Execution; error: Refusal } }
}
interface Refusal {
  code: string
  message: string
  param: string
}
const read = async (path: string): Promise<Execution> =>
  ((await (await app.fetch(`/api/workflow-executions/${path}`)).json()) as { execution: Execution }).execution

async function run(body: object): Promise<Execution> {
  const { status, body: answered } = await post('/api/workflows/run', { dag, ...body })
  expect([status, answered]).toEqual([202, expect.objectContaining({ execution: expect.anything() as object })])
  return read(`${answered.execution.id}?wait=60`)
}
const states = ({ nodes }: Execution) =>
  nodes.map(({ node_id, status, pinned }) => `${node_id} ${pinned ? 'pinned' : status}`).join(', ')
/** The inputs with which a node ran. */
async function asked({ id }: Execution, node: string): Promise<unknown> {
  const answered = await app.fetch(`/api/workflow-executions/${id}/nodes/${node}`)
  const { node: shown } = (await answered.json()) as {
    node: { resolved_inputs: { messages: { content: string }[] } | null }
  }
  return shown.resolved_inputs?.messages[0]!.content
}

test('a pinned node does not run, and the nodes after it use its result', async () => {
  const done = await run({ pins: { a: answer('given') } })
  expect([done.status, states(done)]).toEqual(['completed', 'a pinned, b completed, c completed'])
  expect(await asked(done, 'b')).toBe('b given')
  expect(done.nodes[0]).toMatchObject({ job_id: null, attempts: 0, cached: false, result: answer('given') })
  expect(done.outputs!.a!.result).toEqual(answer('given'))
  expect(done.progress).toEqual({ total: 3, completed: 3, failed: 0, waiting: 0, skipped: 0, running: 0 })
  const { node } = (await (await app.fetch(`/api/workflow-executions/${done.id}/nodes/a`)).json()) as { node: Node }
  expect(node).toMatchObject({ pinned: true, result: answer('given') })
  const events = await (await app.fetch(`/api/workflow-executions/${done.id}/events?after=evt_0`)).text()
  const types = [...events.matchAll(/^event: workflow_execution\.(.+)$/gm)].map(([, type]) => type)
  expect(types.slice(0, 2)).toEqual(['created', 'node.pinned'])
})

test('a pin names a file by id, whatever its URL, and readers get a new one; a file of nobody known stays a URL', async () => {
  const form = new FormData()
  form.set('purpose', 'user_data')
  form.set('file', new Blob(['content']), 'note.txt')
  const headers = { authorization: `Bearer ${app.secret}` }
  const uploaded = await fetch(`${app.url}/std/v1/files`, { method: 'POST', headers, body: form })
  const { id } = (await uploaded.json()) as { id: string }
  const old = `http://before.example/files/${id}/note.txt?exp=1&sig=x`
  const unknown = old.replace(id, 'file-01ARZ3NDEKTSV4RRFFQ69G5FAV')
  const pin = { data: [{ url: old, thumbnail_url: unknown, text: `see ${old}` }] }
  const nodes = {
    a: { ...chat('x'), pin },
    b: { task: 'text/template', inputs: { template: '${nodes.a.result.data[0].url}' } },
    c: { task: 'text/template', inputs: { template: '${nodes.a.result.data[0].thumbnail_url}' } },
  }
  const done = await run({ dag: { nodes }, use_pins: true })
  expect(done.nodes.slice(1).map(({ result }) => result)).toEqual([{ text: id }, { text: unknown }])
  const { node } = (await (await app.fetch(`/api/workflow-executions/${done.id}/nodes/a`)).json()) as { node: Node }
  for (const shown of [node.result, done.nodes[0]!.result, done.outputs!.a!.result]) {
    const [{ url, ...others }] = (shown as typeof pin).data as [(typeof pin.data)[number]]
    expect(others).toEqual({ thumbnail_url: unknown, text: `see ${old}` })
    expect(await (await fetch(url)).text()).toBe('content')
  }
})

test('stored pins count only where asked', async () => {
  const without = await run({ pins: { a: answer('given') } })
  expect(await asked(without, 'c')).not.toBe('c stored')
  const used = await run({ pins: { a: answer('given') }, use_pins: true })
  expect(states(used)).toBe('a pinned, b pinned, c completed')
  expect(await asked(used, 'c')).toBe('c stored')
})

test('a stored workflow runs to a node, or only one, and nothing else', async () => {
  const stored = await app.fetch('/api/workflows', { body: { name: 'Pinned', dag } })
  const { workflow } = (await stored.json()) as { workflow: { id: string; dag: { nodes: Record<string, Node> } } }
  expect(workflow.dag.nodes.b).toMatchObject({ pin: answer('stored') })
  const execute = async (body: object) => {
    const { status, body: answered } = await post(`/api/workflows/${workflow.id}/execute`, body)
    expect([status, answered]).toEqual([202, expect.anything()])
    return read(`${answered.execution.id}?wait=60`)
  }
  expect(states(await execute({ to: 'c', use_pins: true }))).toBe('b pinned, c completed')
  expect(states(await execute({ to: 'b', pins: { a: answer('given') } }))).toBe('a pinned, b completed')
  const one = await execute({ only: ['c'], pins: { b: answer('sent') } })
  expect([states(one), await asked(one, 'c')]).toEqual(['b pinned, c completed', 'c sent'])
  const all = await execute({ only: ['a'] })
  expect([all.status, states(all)]).toEqual(['failed', 'a failed'])
})

test('an execution whose nodes are all pinned is completed at once', async () => {
  const done = await run({ pins: { a: answer('1'), b: answer('2'), c: answer('3') } })
  expect([done.status, states(done), done.cost]).toEqual(['completed', 'a pinned, b pinned, c pinned', 0])
})

test('errors of nodes that do not run are no obstacle, and those of the others are', async () => {
  const draft = {
    nodes: {
      a: { task: 'std/chat-completion', inputs: {}, pin: answer('given') },
      b: chat(told),
      broken: chat('${nodes.missing.result.id}'),
    },
  }
  expect(states(await run({ dag: draft, to: 'b', use_pins: true }))).toBe('a pinned, b completed')
  const { status, body } = await post('/api/workflows/run', { dag: draft, to: 'b' })
  expect([status, body.error.code]).toEqual([400, 'invalid_graph'])
  const lacking = await post('/api/workflows/run', { dag: draft, to: 'b', pins: { a: { choices: [] } } })
  expect(lacking.body.error).toMatchObject({ code: 'invalid_graph', param: expect.stringMatching(/^dag\.nodes\.b/) })
  expect(lacking.body.error.message).toContain("the pinned result of node 'a' has no such member")
})

test.each([
  [{ only: ['c'] }, 'only', "needs the result of 'b'"],
  [{ to: 'x' }, 'to', "no node 'x'"],
  [{ pins: { a: 'x'.repeat(300_000) } }, 'pins.a', '256 kB'],
  [{ only: [] }, 'only', 'only'],
])('a selection that cannot run is refused: %s', async (selection, param, message) => {
  const { status, body } = await post('/api/workflows/run', { dag, ...selection })
  expect([status, body.error.param]).toEqual([body.error.code === 'not_found' ? 404 : 400, param])
  expect(body.error.message).toContain(message)
})

test('a pin that the task would not give is a warning', async () => {
  const list = { task: 'text/template', inputs: { template: 'x' }, for_each: ['x', 'y'] }
  const nodes = {
    a: chat('x', { pin: { text: 'x' } }),
    each: { ...list, pin: [null, { text: 'x' }] },
    other: { ...list, pin: [null, {}] },
  }
  const answered = await app.fetch('/api/workflows/validate', { body: { dag: { nodes } } })
  const { valid, diagnostics } = (await answered.json()) as {
    valid: boolean
    diagnostics: { warnings: { code: string; node_id: string; path: string }[] }
  }
  expect(valid).toBe(true)
  const pins = diagnostics.warnings.filter(({ code }) => code === 'unusual_pin')
  expect(pins.map(({ node_id, path }) => [node_id, path])).toEqual([
    ['a', expect.stringMatching(/^pin\./)],
    ['other', expect.stringMatching(/^pin\[1\]\./)],
  ])
})

test('a retry keeps the pins, but not that of the node from which it runs', async () => {
  const first = await run({ pins: { b: answer('given') }, on_failure: 'continue' })
  expect(states(first)).toBe('a failed, b pinned, c completed')
  const retry = async (from: string) => {
    const { body } = await post(`/api/workflow-executions/${first.id}/retry`, { from })
    return read(`${body.execution.id}?wait=60`)
  }
  expect(states(await retry('start'))).toBe('a failed, b pinned, c completed')
  const failed = await retry('failed')
  expect([states(failed), failed.nodes[2]!.cached]).toEqual(['a failed, b pinned, c completed', true])
  expect(states(await retry('b'))).toBe('a failed, b skipped, c skipped')
})
