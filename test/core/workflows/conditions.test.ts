import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { keptWork } from '../../../core/workflows/kept-work.ts'
import { dependencies, planNodes } from '../../../core/workflows/plan.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { openTestStore, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

const node = (input: unknown, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  cache: 'off',
  ...more,
})
const result = (id: string) => `\${nodes.${id}.result.data}`

function execution(nodes: Record<string, object>, edges: [from: string, to: string][] = []) {
  const dag = Dag.parse({ nodes, edges: edges.map(([from, to]) => ({ from, to })) })
  const { modelId: _, ...drawn } = newExecution({ nodes: {} })
  return { ...drawn, definition: newWorkflow({ dag }), nodes: planNodes(dag) }
}

/** Two branches by what `ask` has answered, and three ways to go on after them. */
const branches = () =>
  execution(
    {
      ask: node('cat'),
      cats: node('miaow', { when: { value: result('ask'), equals: 'cat' } }),
      dogs: node('woof', { when: { value: result('ask'), in: ['dog', 'wolf'] } }),
      afterDogs: node(result('dogs')),
      joined: node(`${result('cats')}, ${result('dogs')}`, { join: 'any' }),
      withDefault: node(result('dogs'), { defaults: { 'nodes.dogs.result.data': 'silence' } }),
      status: node('${nodes.dogs.status}'),
      ordered: node('never'),
    },
    [['dogs', 'ordered']],
  )

test('a false condition skips its node and what needs its result, and a join and a default go on without it', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  const wanted = branches()
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(ran.toSorted()).toEqual(['cat', 'miaow', 'miaow, ', 'silence', 'skipped'])
  const nodes = await server.nodes(wanted.id)
  expect(Object.fromEntries(Object.values(nodes).map(({ nodeId, status }) => [nodeId, status]))).toEqual({
    ask: 'completed',
    cats: 'completed',
    dogs: 'skipped',
    afterDogs: 'skipped',
    joined: 'completed',
    withDefault: 'completed',
    status: 'completed',
    ordered: 'skipped',
  })
  expect(nodes.dogs).toMatchObject({ jobId: null, attempts: 0, startedAt: null, error: null })
  expect(
    Object.values(nodes).flatMap(({ nodeId, skipReason }) => (skipReason ? [`${nodeId}: ${skipReason}`] : [])),
  ).toEqual(['dogs: condition', 'afterDogs: skipped_node', 'ordered: skipped_node'])
  const { progress } = await server.summary(wanted.id)
  expect(progress).toEqual({ total: 8, completed: 5, failed: 0, skipped: 3, running: 0, waiting: 0 })
})

test('a condition on a value that cannot be tested fails its node with the reason', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, () => Promise.resolve())
  const wanted = execution({
    a: node('cat'),
    b: node('x', { when: { value: result('a'), less_than: 3 }, retries: { max: 0 } }),
  })
  await server.store.executions.create(wanted)
  await expect.poll(async () => (await server.summary(wanted.id)).status).toBe('failed')
  const { b } = await server.nodes(wanted.id)
  expect(b!.error).toMatchObject({
    code: 'invalid_value',
    message: `The condition of node 'b': "cat" is not a number, so it cannot be compared.`,
  })
})

test('a node that waited with a false condition when the server ended is skipped when its job gets a slot', async () => {
  using directory = temporaryDirectory()
  const wanted = execution({
    a: node('x', { when: { value: 1, equals: 2 } }),
    b: node(result('a'), { defaults: { '${nodes.a.result.data}': 'without' } }),
  })
  {
    await using opened = await openTestStore({ dataDir: directory.path })
    await opened.store.executions.create(wanted)
  }
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  await server.ended(wanted.id)
  expect(ran).toEqual(['without'])
  expect((await server.nodes(wanted.id)).a).toMatchObject({ status: 'skipped', jobId: null })
})

test('a retry of what has failed keeps what has run beside a skipped node', () => {
  const { definition } = branches()
  const { dag } = definition
  const [completed, skipped]: [string[], string[]] = [
    ['ask', 'cats', 'joined'],
    ['dogs', 'afterDogs', 'ordered'],
  ]
  const statusOf = (nodeId: string): 'completed' | 'skipped' | 'failed' =>
    completed.includes(nodeId) ? 'completed' : skipped.includes(nodeId) ? 'skipped' : 'failed'
  const ended = Object.keys(dag.nodes).map(nodeId => ({
    nodeId,
    status: statusOf(nodeId),
    jobId: `job of ${nodeId}`,
    items: null,
  }))
  const { reuse } = keptWork(dag, dependencies(dag), ended, { from: 'failed' })
  expect([...reuse.keys()]).toEqual(completed)
})
