import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { Failure } from '../../../core/failure.ts'
import type { NewWorkflow } from '../../../core/store/workflows.ts'
import { newWorkflow } from '../../store/conformance/drawn.ts'
import { requester } from '../_admission.ts'
import { organizationId, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

type Server = Awaited<ReturnType<typeof openServer>>

const embed = (input: string, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  cache: 'off',
  retries: { max: 0 },
  ...more,
})
const runs = (workflow: string, input: object = {}, more: object = {}) => ({
  task: 'workflow/run',
  inputs: { workflow, input },
  ...more,
})

const stored = (server: Server, nodes: Record<string, object>, more: Partial<NewWorkflow> = {}) =>
  server.store.workflows.create(newWorkflow({ dag: Dag.parse({ nodes, edges: [] }), ...more }))

function start(server: Server, nodes: Record<string, object>, more: Partial<NewWorkflow> = {}) {
  const definition = newWorkflow({ dag: Dag.parse({ nodes, edges: [] }), ...more })
  return server.executions.execute({ ...terms(server), definition }).then(({ execution }) => execution.id)
}
const terms = (server: Server) => ({
  workflow: null,
  inputParams: {},
  priority: 5,
  timeout: undefined,
  retentionMs: 60_000,
  metadata: null,
  idempotency: null,
  origin: 'http://here',
  requester: requester(organizationId),
  offer: server.offer,
})

const endOf = async (server: Server, id: string) => {
  await expect.poll(async () => (await server.summary(id)).finishedAt, { interval: 5 }).not.toBeNull()
  return server.summary(id)
}
const childOf = async (server: Server, id: string, node: string): Promise<string> => {
  const find = async () => (await server.nodes(id))[node]!.childExecutionId
  await expect.poll(find, { interval: 5 }).not.toBeNull()
  return (await find())!
}
const broken = () => new Failure('invalid_value', 'This is broken.')
const nothing = () => Promise.resolve()

test('the result of a node is the outputs of the workflow that it runs, whose use counts once', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  const inner = await stored(
    server,
    { a: embed('${input.topic}', { outputs: ['data'] }), b: embed('${nodes.a.result.data}!') },
    { name: 'Inner', parameters: { topic: { type: 'string' }, more: { type: 'string', default: 'x' } } },
  )
  const id = await start(server, {
    sub: runs('Inner', { topic: 'tea' }),
    after: embed('${nodes.sub.result.a.values.data} and ${nodes.sub.result.b.result.data}'),
  })
  const child = await childOf(server, id, 'sub')
  expect(await endOf(server, id)).toMatchObject({ status: 'completed', cost: 9, parentNode: null })
  expect(ran).toEqual(['tea', 'tea!', 'tea and tea!'])
  expect(await server.summary(child)).toMatchObject({
    status: 'completed',
    workflowId: inner.id,
    workflowVersion: 1,
    inputParams: { topic: 'tea', more: 'x' },
    parentNode: { executionId: id, nodeId: 'sub' },
    priority: 5,
    retentionMs: 60_000,
    origin: 'http://here',
    cost: 6,
  })
  const { sub } = await server.store.executions.results(organizationId, id, ['sub'])
  expect(JSON.parse(sub!.result as string)).toEqual({
    a: { result: { data: 'tea' }, values: { data: 'tea' } },
    b: { result: { data: 'tea!' }, values: {} },
  })
})

test('a failure names the execution, the node and the first failure; a tolerated one lets the parent go on', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, input =>
    input === 'bad' ? Promise.reject(broken()) : Promise.resolve(),
  )
  const { id: inner } = await stored(server, { a: embed('bad') }, { name: 'Inner' })
  const id = await start(server, { sub: runs(inner), tolerated: runs(inner, {}, { on_error: 'continue' }) })
  const child = await childOf(server, id, 'sub')
  expect(await endOf(server, id)).toMatchObject({ status: 'failed' })
  const { sub } = await server.nodes(id)
  expect(sub!.error!.message).toContain(`The execution ${child} of the workflow 'Inner' failed at the node 'a': `)
})

test('what prevents a child fails its node with the reason', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, nothing)
  await stored(server, { a: embed('x') }, { name: 'Twice' })
  await stored(server, { a: embed('x') }, { name: 'Twice' })
  // References decide the name, so nothing is known before.
  const parameters = { name: { type: 'string' as const } }
  const fails = async (name: string) => {
    const definition = newWorkflow({
      dag: Dag.parse({ nodes: { sub: runs('${input.name}') }, edges: [] }),
      parameters,
    })
    const { execution } = await server.executions.execute({ ...terms(server), definition, inputParams: { name } })
    await endOf(server, execution.id)
    return (await server.nodes(execution.id)).sub!.error
  }
  expect(await fails('Missing')).toMatchObject({ code: 'not_found', message: /no workflow 'Missing'/ })
  expect(await fails('Twice')).toMatchObject({ code: 'invalid_value', message: /Several workflows have the name/ })
})

test('a workflow that runs itself ends at the fifth level', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, nothing)
  const always = { when: { value: '${execution.id}', exists: true } }
  const { id: self } = await stored(server, { sub: runs('Self', {}, always) }, { name: 'Self' })
  const id = await start(server, { sub: runs(self) })
  expect(await endOf(server, id)).toMatchObject({ status: 'failed' })
  const { sub } = await server.nodes(id)
  expect(sub!.error!.message).toContain('nested at most 5 deep')
  const { executions } = await server.store.executions.list(organizationId, { limit: 20 })
  expect(executions.map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 'failed'))
})

test('a parent that ends cancels its children at every depth, and a cancelled child fails its node', async () => {
  using directory = temporaryDirectory()
  const { promise: never } = Promise.withResolvers<void>()
  await using server = await openServer(directory.path, () => never)
  await stored(server, { a: embed('x') }, { name: 'Inner' })
  await stored(server, { sub: runs('Inner') }, { name: 'Middle' })
  const begin = async () => {
    const id = await start(server, { sub: runs('Middle') })
    const middle = await childOf(server, id, 'sub')
    return { id, middle, inner: await childOf(server, middle, 'sub') }
  }
  const states = async ({ id, middle, inner }: Awaited<ReturnType<typeof begin>>) => [
    (await endOf(server, id)).status,
    (await endOf(server, middle)).status,
    (await endOf(server, inner)).status,
  ]
  const first = await begin()
  expect((await server.nodes(first.id)).sub).toMatchObject({ status: 'waiting', awaits: 'execution' })
  await server.executions.cancel(organizationId, first.id)
  expect(await states(first)).toEqual(['cancelled', 'cancelled', 'cancelled'])

  const second = await begin()
  await server.store.executions.expire((await server.summary(second.id)).timeoutAt!, 10)
  // The inner ones began later.
  expect(await states(second)).toEqual(['timed_out', 'cancelled', 'cancelled'])

  const third = await begin()
  await server.executions.cancel(organizationId, third.inner)
  expect(await states(third)).toEqual(['failed', 'failed', 'cancelled'])
  const { sub } = await server.nodes(third.id)
  expect(sub!.error).toMatchObject({ code: 'cancelled', message: expect.stringContaining(third.inner) as string })
  expect(await server.store.jobs.counts()).toMatchObject({ pending: 0, processing: 0 })
})

test('a retry from the failed nodes goes on within the child; one from the start does not', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  let isBroken = true
  await using server = await openServer(directory.path, async input => {
    ran.push(input)
    if (input === 'second' && isBroken) throw broken()
  })
  await stored(
    server,
    { a: embed('first'), b: embed('second', { when: { value: '${nodes.a.status}', exists: true } }) },
    { name: 'Inner' },
  )
  const id = await start(server, { sub: runs('Inner') })
  const child = await childOf(server, id, 'sub')
  await endOf(server, id)
  expect(ran).toEqual(['first', 'second'])
  isBroken = false
  const before = (await server.store.executions.find(organizationId, id))!
  const retry = async (from: 'failed' | 'start') => {
    ran.length = 0
    const again = await server.executions.retry(before, { from }, { ...terms(server), definition: before.definition })
    await endOf(server, again.execution.id)
    return childOf(server, again.execution.id, 'sub')
  }
  const continued = await retry('failed')
  expect(ran).toEqual(['second'])
  expect(await server.summary(continued)).toMatchObject({ status: 'completed', parentExecutionId: child })
  const anew = await retry('start')
  expect(ran).toEqual(['first', 'second'])
  expect(await server.summary(anew)).toMatchObject({ status: 'completed', parentExecutionId: null })
})

test('a workflow that allows one execution may run itself, and others wait for it', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, nothing)
  const parameters = { more: { type: 'boolean' as const } }
  const when = { value: '${input.more}', equals: true }
  const { id: self } = await stored(
    server,
    { a: embed('x'), sub: runs('Self', { more: false }, { when }) },
    { name: 'Self', parameters, concurrency: { limit: 1, when_reached: 'queue' } },
  )
  const all = await Promise.all([1, 2, 3].map(() => start(server, { sub: runs(self, { more: true }) })))
  for (const id of all) expect(await endOf(server, id)).toMatchObject({ status: 'completed' })
})

test('of two workflows that allow one execution and wait for each other, one fails at once and the other completes', async () => {
  using directory = temporaryDirectory()
  const held = Promise.withResolvers<void>()
  let begun = 0
  await using server = await openServer(directory.path, input => {
    if (input !== 'first') return Promise.resolve()
    if (++begun === 2) held.resolve()
    return held.promise
  })
  const parameters = { more: { type: 'boolean' as const } }
  const when = { value: '${input.more}', equals: true }
  for (const [name, other] of [
    ['A', 'B'],
    ['B', 'A'],
  ] as const) {
    const nodes = {
      first: embed('first', { when }),
      sub: runs(other, { more: false }, { when }),
      last: embed('last'),
    }
    const dag = Dag.parse({ nodes, edges: [{ from: 'first', to: 'sub' }] })
    const concurrency = { limit: 1, when_reached: 'queue' as const }
    await server.store.workflows.create(newWorkflow({ name, dag, parameters, concurrency }))
  }
  const ids = await Promise.all(['A', 'B'].map(name => start(server, { run: runs(name, { more: true }) })))
  const ends = await Promise.all(ids.map(id => endOf(server, id)))
  expect(ends.map(({ status }) => status).toSorted()).toEqual(['completed', 'failed'])
  const { error } = ends.find(({ status }) => status === 'failed')!
  expect(error).toMatchObject({
    cause: {
      code: 'conflict',
      message: expect.stringMatching(/The workflow '[AB]' can never start here: .* wait for one of '[AB]'/) as string,
    },
  })
})

test('what ended while no server ran is ended at the next start', async () => {
  using directory = temporaryDirectory()
  const { promise: never } = Promise.withResolvers<void>()
  let [id, child] = ['', '']
  {
    await using server = await openServer(directory.path, () => never)
    await stored(server, { a: embed('x', { on_error: 'continue' }) }, { name: 'Inner' })
    id = await start(server, { sub: runs('Inner'), after: embed('${nodes.sub.status}') })
    child = await childOf(server, id, 'sub')
    // The server stops before the node is told.
    await server.executions.close()
    await server.executions.cancel(organizationId, child)
    expect((await server.nodes(id)).sub!.status).toBe('waiting')
  }
  await using server = await openServer(directory.path, nothing)
  expect(await endOf(server, id)).toMatchObject({ status: 'failed' })
  expect((await server.nodes(id)).sub!.error!.message).toContain(`${child} of the workflow 'Inner' was cancelled.`)
})
