import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'

/** What people need of workflows, each as one small workflow whose nodes need no model. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Node {
  node_id: string
  status: string
  skip_reason: string | null
  result: unknown
  error: { message: string } | null
  items: { total: number; completed: number; failed: number; running: number } | null
  answer_url: string | null
}
interface Execution {
  id: string
  status: string
  nodes: Node[]
}
type Nodes = Record<string, object>

async function call<Answer>(path: string, body?: unknown): Promise<Answer & { status: number }> {
  const response = await app.fetch(path, { body })
  return { ...((await response.json()) as Answer), status: response.status }
}
async function start(nodes: Nodes, input: object = {}, more: object = {}): Promise<string> {
  const answer = await call<{ execution: Execution }>('/api/workflows/run', {
    dag: { nodes },
    input_params: input,
    ...more,
  })
  expect(answer).toMatchObject({ status: 202 })
  return answer.execution.id
}
async function read(id: string, query = '') {
  const { execution } = await call<{ execution: Execution }>(`/api/workflow-executions/${id}${query}`)
  const nodes = Object.fromEntries(execution.nodes.map(node => [node.node_id, node]))
  return { ...execution, nodes, statuses: statusesOf(execution.nodes) }
}
const statusesOf = (nodes: readonly Node[]) => Object.fromEntries(nodes.map(node => [node.node_id, node.status]))
const ended = (id: string) => read(id, '?wait=60')
const run = async (nodes: Nodes, input: object = {}, more: object = {}) => ended(await start(nodes, input, more))
const textOf = (node: Node | undefined) => (node!.result as { text: string }).text

/** A node that writes a text. */
const text = (template: string, more: object = {}) => ({ task: 'text/template', inputs: { template }, ...more })
/** A node that takes JSON out of a text, and fails without any. */
const json = (from: string, more: object = {}) => ({
  task: 'text/extract',
  inputs: { text: from },
  retries: { max: 0 },
  ...more,
})
const is = (value: string, equals: unknown) => ({ when: { value, equals } })

interface Item {
  index: number
  status: string
  started_at: number | null
}
const itemsOf = async (id: string, node: string) =>
  (await call<{ items: Item[] }>(`/api/workflow-executions/${id}/nodes/${node}/items`)).items

test('a list that an earlier node has made is worked on item by item, and the next list item by item of that', async () => {
  const { status, nodes } = await run(
    {
      plan: json('${input.plan}'),
      draft: text('${index}: ${item.title}', { for_each: '${nodes.plan.result.value.scenes}' }),
      final: text('<${item.text}>', { for_each: '${nodes.draft.result}' }),
      all: text('${nodes.final.result[*].text}'),
    },
    { plan: 'Here: {"scenes": [{"title": "dawn"}, {"title": "noon"}, {"title": "dusk"}]}' },
  )
  expect(status).toBe('completed')
  expect(textOf(nodes.all)).toBe('<0: dawn>\n<1: noon>\n<2: dusk>')
  expect(nodes.draft!.items).toEqual({ total: 3, completed: 3, failed: 0, running: 0, waiting: 0 })
})

test('each item may run another workflow, and each result is that of its own item', async () => {
  for (const name of ['Greet', 'Part']) {
    const parameters = { who: { type: 'string' } }
    const dag = { nodes: { said: text(`${name} \${input.who}`, { outputs: ['text'] }) } }
    expect(await call('/api/workflows', { name, parameters, dag })).toMatchObject({ status: 201 })
  }
  const visits = [
    { workflow: 'Greet', who: 'Ada' },
    { workflow: 'Part', who: 'Ada' },
    { workflow: 'Greet', who: 'Bob' },
  ]
  const { status, nodes } = await run(
    {
      each: {
        task: 'workflow/run',
        for_each: '${input.visits}',
        inputs: { workflow: '${item.workflow}', input: { who: '${item.who}' } },
      },
      all: { task: 'text/template', inputs: { template: '${nodes.each.result[*].said.values.text}', separator: ', ' } },
    },
    { visits },
  )
  expect(status).toBe('completed')
  expect(textOf(nodes.all)).toBe('Greet Ada, Part Ada, Greet Bob')
})

test('items run one after another where each has to wait for the one before, and a failure stops the rest', async () => {
  const parts = ['{"n": 0}', '{"n": 1}', 'nothing', '{"n": 3}']
  const { id, status, nodes } = await run(
    { each: json('${item}', { for_each: '${input.parts}', max_parallel: 1 }), after: text('${nodes.each.result}') },
    { parts },
  )
  expect(status).toBe('failed')
  expect(nodes.each!.error!.message).toMatch(/^Item 2: /)
  expect(nodes.after).toMatchObject({ status: 'skipped', skip_reason: 'failure' })
  expect((await itemsOf(id, 'each')).map(({ status: one }) => one)).toEqual(['completed', 'completed', 'failed'])
})

test('one bad item of many costs only its own place', async () => {
  const parts = ['{"n": 0}', 'nothing', '{"n": 2}']
  const { status, nodes } = await run(
    {
      each: json('${item}', { for_each: '${input.parts}', on_item_error: 'continue' }),
      kept: { task: 'json/select', inputs: { input: '${nodes.each.result[*].value.n}', steps: [{ pick: 'length' }] } },
    },
    { parts },
  )
  expect(status).toBe('completed')
  expect(nodes.each!.items).toEqual({ total: 3, completed: 2, failed: 1, running: 0, waiting: 0 })
  expect((nodes.each!.result as ({ value: { n: number } } | null)[]).map(one => one?.value.n ?? null)).toEqual([
    0,
    null,
    2,
  ])
})

test('what comes after an empty list runs, and what comes after a skipped list does not', async () => {
  const { status, nodes, statuses } = await run(
    {
      none: text('${item}', { for_each: '${input.list}' }),
      afterNone: text('${nodes.none.result}.'),
      off: text('${item}', { for_each: ['a', 'b'], ...is('${input.mode}', 'on') }),
      afterOff: text('${nodes.off.result}.'),
    },
    { list: [], mode: 'off' },
  )
  expect(status).toBe('completed')
  expect(statuses).toEqual({ none: 'completed', afterNone: 'completed', off: 'skipped', afterOff: 'skipped' })
  expect(nodes.none!.result).toEqual([])
  expect([nodes.off!.items, nodes.afterOff!.skip_reason]).toEqual([null, 'skipped_node'])
})

/** A decision with a branch for `yes` of two nodes, one for `no` of one, and a join of both. */
const decision = {
  ask: text('${input.answer}'),
  yes: text('agreed', is('${nodes.ask.result.text}', 'yes')),
  more: text('${nodes.yes.result.text}, and more'),
  no: text('refused', is('${nodes.ask.result.text}', 'no')),
  joined: text('${nodes.more.result.text}${nodes.no.result.text}', { join: 'any' }),
  last: text('${nodes.joined.result.text}.'),
}

test.for([
  ['yes', 'agreed, and more.'],
  ['no', 'refused.'],
] as const)('the way that both branches share goes on after the one for %s', async ([answer, said]) => {
  const { status, nodes } = await run(decision, { answer })
  expect(status).toBe('completed')
  expect(textOf(nodes.last)).toBe(said)
})

test('a join after branches of which none was taken is skipped, and a join after that join goes on', async () => {
  const { status, statuses, nodes } = await run(
    { ...decision, end: text('last: ${nodes.last.status}, joined: ${nodes.joined.result.text}', { join: 'any' }) },
    { answer: 'perhaps' },
  )
  expect(status).toBe('completed')
  expect(statuses).toMatchObject({ yes: 'skipped', more: 'skipped', no: 'skipped', joined: 'skipped', last: 'skipped' })
  // It is after skipped nodes only: no branch has reached it.
  expect(nodes.end).toMatchObject({ status: 'skipped', skip_reason: 'skipped_node' })
  const other = await run(
    {
      ...decision,
      plain: text('always'),
      end: text('${nodes.plain.result.text}${nodes.last.result.text}', { join: 'any' }),
    },
    { answer: 'perhaps' },
  )
  expect([other.status, textOf(other.nodes.end)]).toEqual(['completed', 'always'])
})

test('a condition may ask for the result of a skipped node: it ends, and does not hang', async () => {
  const { status, statuses, nodes } = await run(
    {
      ...decision,
      without: text('${nodes.yes.result.text}', {
        join: 'any',
        when: { value: '${nodes.no.result.text}', exists: false },
      }),
      other: text('${nodes.yes.result.text}', { join: 'any', ...is('${nodes.no.result.text}', 'refused') }),
      after: text('never', is('${nodes.no.result.text}', 'refused')),
      instead: text('${nodes.no.result.text}', { defaults: { 'nodes.no.result.text': 'kept' } }),
    },
    { answer: 'yes' },
  )
  expect([status, statuses.no]).toEqual(['completed', 'skipped'])
  expect(textOf(nodes.instead)).toBe('kept')
  expect(statuses.without).toBe('completed')
  expect([nodes.other!.skip_reason, nodes.after!.skip_reason]).toEqual(['condition', 'skipped_node'])
})

/** Waits until the node waits, and returns where its event is sent to. */
async function waiting(id: string, node: string): Promise<string> {
  const find = async () => (await call<{ node: Node }>(`/api/workflow-executions/${id}/nodes/${node}`)).node
  await expect.poll(async () => (await find()).status, { interval: 10 }).toBe('waiting')
  return (await find()).answer_url!
}
const post = (url: string, body: object) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

/** An event with three ways to go on, and what is done in every case. */
const review = (more: object = {}) => ({
  made: text('draft'),
  wait: { task: 'wait/event', inputs: { title: 'Review of ${nodes.made.result.text}', ...more } },
  publish: text('published', is('${nodes.wait.result.body.decision}', 'approved')),
  revise: text('revised', is('${nodes.wait.result.body.decision}', 'rejected')),
  escalate: text('escalated', is('${nodes.wait.result.timed_out}', true)),
  clean: {
    ...text('${nodes.publish.result.text}${nodes.revise.result.text}${nodes.escalate.result.text}'),
    join: 'any',
  },
})

test.for([
  ['approved', 'published'],
  ['rejected', 'revised'],
] as const)('what an event says decides how the workflow goes on: %s', async ([decided, done]) => {
  const id = await start(review())
  const url = await waiting(id, 'wait')
  expect((await read(id)).statuses).toMatchObject({ made: 'completed', publish: 'pending', clean: 'pending' })
  expect((await post(url, { decision: decided })).status).toBe(200)
  const { status, nodes } = await ended(id)
  expect([status, textOf(nodes.clean)]).toEqual(['completed', done])
})

test('without an event in time another way is taken, and an event that comes later changes nothing', async () => {
  const id = await start(review({ timeout: 1, default: { decision: 'none' } }))
  const url = await waiting(id, 'wait')
  const { status, nodes, statuses } = await ended(id)
  expect([status, textOf(nodes.clean)]).toEqual(['completed', 'escalated'])
  expect([404, 409]).toContain((await post(url, { decision: 'approved' })).status)
  expect((await read(id)).statuses).toEqual(statuses)
})

test('a person approves, rejects or fills in a form, and the workflow goes on with the answer', async () => {
  const form = { properties: { amount: { type: 'integer', minimum: 1 } }, required: ['amount'] }
  const id = await start({
    ask: { task: 'wait/approval', inputs: { title: 'How much?', form } },
    pay: text('pay ${nodes.ask.result.answer.amount}', is('${nodes.ask.result.approved}', true)),
    stop: text('no', is('${nodes.ask.result.approved}', false)),
  })
  await waiting(id, 'ask')
  const resolve = (body: object) => call(`/api/workflow-executions/${id}/nodes/ask/resolve`, body)
  expect(await resolve({ approved: true, answer: { amount: 0 } })).toMatchObject({ status: 400 })
  expect(await resolve({ approved: true, answer: { amount: 7 } })).toMatchObject({ status: 200 })
  const { status, nodes, statuses } = await ended(id)
  expect([status, textOf(nodes.pay), statuses.stop]).toEqual(['completed', 'pay 7', 'skipped'])
})
