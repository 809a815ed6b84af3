import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { planNodes } from '../../../core/workflows/plan.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { openTestStore, organizationId, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

const embed = (input: string, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  ...more,
})

/** Stored without an event to the server: as if it had ended at that time. */
async function createdBefore(dataDir: string, nodes: Record<string, object>, edges: object[] = []): Promise<string> {
  await using opened = await openTestStore({ dataDir })
  const dag = Dag.parse({ nodes, edges })
  const { modelId: _, ...execution } = newExecution({ nodes: {} })
  const definition = newWorkflow({ dag })
  const made = await opened.store.executions.create({ ...execution, definition, nodes: planNodes(dag) })
  return made.execution.id
}

test('after a restart waiting nodes reuse the results of equal work, and equal work is done once', async () => {
  using directory = temporaryDirectory()
  const dataDir = directory.path
  const asked: string[] = []
  const ran = async (input: string): Promise<void> => void asked.push(input)

  const first = await createdBefore(dataDir, { one: embed('one') })
  {
    await using server = await openServer(dataDir, ran)
    await server.ended(first)
  }
  const second = await createdBefore(
    dataDir,
    {
      a: embed('one'),
      b: embed('two'),
      c: embed('two'),
      d: embed('${nodes.a.result.data}'),
      e: embed('one', { cache: 'off' }),
    },
    [{ from: 'a', to: 'd' }],
  )
  const held = Promise.withResolvers<void>()
  await using server = await openServer(dataDir, async input => {
    await ran(input)
    // So that equal work arrives while this is running.
    if (input === 'two') await held.promise
  })
  await expect.poll(async () => (await server.nodes(second)).d!.status).toBe('completed')
  held.resolve()
  await server.ended(second)
  expect(asked.toSorted()).toEqual(['one', 'one', 'two'])

  const { one } = await server.nodes(first)
  const { a, b, c, d, e } = await server.nodes(second)
  expect([a, d]).toMatchObject([
    { cached: true, jobId: one!.jobId, attempts: 0 },
    { cached: true, jobId: one!.jobId },
  ])
  expect(e!.cached).toBe(false)
  expect(b!.cached).toBe(!c!.cached)
  expect(b!.jobId).toBe(c!.jobId)
  const { progress } = (await server.store.executions.summary(organizationId, second))!
  expect(progress).toEqual({ total: 5, completed: 5, failed: 0, skipped: 0, running: 0, waiting: 0 })
  expect(await server.store.jobs.counts()).toMatchObject({ pending: 0, processing: 0, completed: 3 })
  expect(server.store.stats().lateResults).toBe(0)
})
