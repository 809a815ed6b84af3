import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { Failure } from '../../../core/failure.ts'
import { planNodes } from '../../../core/workflows/plan.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { organizationId, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

/** An execution of one node whose result can be reused by every equal one. */
function ofOne(input: string) {
  const dag = Dag.parse({ nodes: { one: { model_id: 'any', task: 'std/embeddings', inputs: { input } } } })
  const { modelId: _, ...execution } = newExecution({ nodes: {} })
  return { ...execution, definition: newWorkflow({ dag }), nodes: planNodes(dag) }
}

test('running work is awaited without a slot, and done once', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using server = await openServer(
    directory.path,
    async input => {
      ran.push(input)
      if (input !== 'slow') return
      begun.resolve()
      await held.promise
    },
    { slots: 2 },
  )
  const [first, second, third, other] = [ofOne('slow'), ofOne('slow'), ofOne('slow'), ofOne('other')]
  await server.store.executions.create(first)
  await begun.promise
  for (const like of [second, third, other]) await server.store.executions.create(like)
  // Two wait, and one of the two slots is free.
  await server.ended(other.id)
  held.resolve()
  for (const { id } of [first, second, third]) await server.ended(id)
  expect(ran).toEqual(['slow', 'other'])
})

test('a job cancelled during its cache lookup does not block equal work', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  const [looked, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using server = await openServer(directory.path, async input => void ran.push(input), {
    async content(inputs) {
      looked.resolve()
      await go.promise
      return { inputs, foreign: false }
    },
  })
  const [first, second] = [ofOne('same'), ofOne('same')]
  await server.store.executions.create(first)
  await looked.promise
  await server.executions.cancel(organizationId, first.id)
  go.resolve()
  await server.store.executions.create(second)
  await server.ended(second.id)
  expect(ran).toEqual(['same'])
})

test('when the work fails, the next waiting job does it', async () => {
  using directory = temporaryDirectory()
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let runs = 0
  await using server = await openServer(directory.path, async () => {
    if (++runs > 1) return
    begun.resolve()
    await held.promise
    throw new Failure('invalid_value', 'No.')
  })
  const [first, second] = [ofOne('same'), ofOne('same')]
  await server.store.executions.create(first)
  await begun.promise
  await server.store.executions.create(second)
  held.resolve()
  await server.ended(second.id)
  expect((await server.store.executions.summary(organizationId, first.id))!.status).toBe('failed')
  expect(runs).toBe(2)
})

test('the inputs of a node are bound once: the values found before its job was queued are kept for its run', async () => {
  using directory = temporaryDirectory()
  let bound = 0
  await using server = await openServer(directory.path, () => Promise.resolve(), {
    content(inputs) {
      bound++
      return Promise.resolve({ inputs, foreign: false })
    },
  })
  const only = ofOne('same')
  await server.store.executions.create(only)
  await server.ended(only.id)
  expect(bound).toBe(1)
})
