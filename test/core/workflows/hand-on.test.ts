import { expect, test } from 'vitest'
import { AbortSource } from '../../../core/abort-source.ts'
import { Dag } from '../../../core/dag/definition.ts'
import { planNodes } from '../../../core/workflows/plan.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { admittedWork } from '../_admission.ts'
import { completed, openTestStore, organizationId, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

const names = (count: number) => Array.from({ length: count }, (_, at) => `n${at}`)
const node = (input: string, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  cache: 'off',
  ...more,
})

/** A chain of nodes. */
function chain(count: number, more: (name: string) => object = () => ({})) {
  const all = names(count)
  const dag = Dag.parse({
    nodes: Object.fromEntries(all.map(name => [name, node(name, more(name))])),
    edges: all.slice(1).map((to, at) => ({ from: all[at], to })),
  })
  const { modelId: _, ...execution } = newExecution({ nodes: {} })
  return { ...execution, definition: newWorkflow({ dag }), nodes: planNodes(dag) }
}

test('a chain costs one commit a node: the end of one and the start of the next are one', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  const wanted = chain(30)
  const before = server.store.stats().commits
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(ran).toEqual(names(30))
  // The creation, the first claim, thirty ends, and one spare for a node that missed its slot.
  expect(server.store.stats().commits - before).toBeLessThanOrEqual(36)
  const events = await server.store.events.ofExecution(organizationId, {
    executionId: wanted.id,
    sequence: 0,
    limit: 1000,
  })
  const ofNodes = events.filter(({ nodeId }) => nodeId !== null).map(({ nodeId, type }) => `${nodeId} ${type}`)
  expect(ofNodes.toSorted()).toEqual(
    names(30)
      .flatMap(name => ['created', 'started', 'completed'].map(what => `${name} job.${what}`))
      .toSorted(),
  )
  expect(Object.values(await server.nodes(wanted.id)).map(({ attempts }) => attempts)).toEqual(names(30).map(() => 1))
})

test('a slot is not kept from waiting jobs', async () => {
  using directory = temporaryDirectory()
  const order: string[] = []
  let ask: () => void = () => {}
  const ran = async (input: string): Promise<void> => {
    order.push(input)
    if (input === 'n0') ask()
  }
  await using server = await openServer(directory.path, ran, { slots: 1 })
  ask = () =>
    void server.jobs.calls.run(
      {
        admitted: admittedWork({ organizationId, tokenId: 'tok', task: 'std/chat-completion', modelId: 'any' }),
        createdAt: Date.now(),
        waitMs: 60_000,
        caller: new AbortSource(),
      },
      async () => {
        order.push('caller')
        return { how: 'completed', usage: { inputTokens: 0, outputTokens: 0 } }
      },
    )
  const wanted = chain(3)
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(order).toEqual(['n0', 'caller', 'n1', 'n2'])
})

test.each([
  ['the next is claimed with the end of the one before', {}, 'processing'],
  ['unless it runs on another model', { model_id: 'other' }, 'pending'],
  ['or has to be looked for in the cache first', { cache: 'use' }, 'pending'],
])('%s', async (_rule, more, status) => {
  await using opened = await openTestStore()
  const { store } = opened
  const claimedSuccessors: string[] = []
  const released: string[] = []
  store.onCommitted(effects => {
    claimedSuccessors.push(
      ...effects.claimedSuccessors.map(({ before, job }) => `${before} ${job.id} ${job.parent?.nodeId}`),
    )
    released.push(...effects.released.map(({ id }) => id))
  })
  const wanted = chain(2, name => (name === 'n1' ? more : {}))
  await store.executions.create(wanted)
  const [first, second] = wanted.nodes
  const claim = (await store.jobs.claim(organizationId, first!.jobId, Date.now()))!
  expect(await store.jobs.settle(claim, completed(), 'any')).toBe(true)
  expect((await store.jobs.find(organizationId, second!.jobId))!.status).toBe(status)
  const handed = status === 'processing'
  expect(claimedSuccessors).toEqual(handed ? [`${first!.jobId} ${second!.jobId} n1`] : [])
  expect(released).toEqual(handed ? [first!.jobId] : [first!.jobId, second!.jobId])
})

test('an execution cancelled in the same commit is stopped after its next node was started', async () => {
  await using opened = await openTestStore()
  const { store } = opened
  const wanted = chain(2)
  await store.executions.create(wanted)
  const [first, second] = wanted.nodes
  const claim = (await store.jobs.claim(organizationId, first!.jobId, Date.now()))!
  const told: [string[], string[]][] = []
  store.onCommitted(({ claimedSuccessors, withdrawn }) =>
    told.push([claimedSuccessors.map(({ job }) => job.id), withdrawn.map(({ id }) => id)]),
  )
  await Promise.all([
    store.jobs.settle(claim, completed(), 'any'),
    store.executions.cancel(organizationId, wanted.id, Date.now()),
  ])
  expect(told).toEqual([[[second!.jobId], [second!.jobId]]])
  expect((await store.jobs.find(organizationId, second!.jobId))!.status).toBe('cancelled')
})
