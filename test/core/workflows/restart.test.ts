import { afterEach, expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { openJobs } from '../../../core/jobs/jobs.ts'
import { openExecutions } from '../../../core/workflows/executions.ts'
import { openFrozen } from '../../../core/workflows/frozen.ts'
import { openNodeRunner, openNodeWork } from '../../../core/workflows/node-run.ts'
import { planOf } from '../../../core/workflows/plan.ts'
import { slotsOnly } from '../jobs/_fleet.ts'
import { done, runner } from '../jobs/_runs.ts'
import { keptLog, openTestStore, organizationId, temporaryDirectory } from '../store/_store.ts'
import { newExecution, newWorkflow } from '../store/_workflows.ts'

const none = () => Promise.reject(new Error('There is no such thing here'))
const { log, lines } = keptLog()
afterEach(() => expect(lines.filter(line => line.includes('"level":"error"'))).toEqual([]))

/** A server without engines on a data directory; `ran` hears the inputs of every job that one would have got. */
async function openServer(dataDir: string, ran: (input: string) => Promise<void>) {
  const opened = await openTestStore({ dataDir })
  const { store } = opened
  const { fleet, models } = slotsOnly()
  const frozen = openFrozen(store.executions)
  const work = openNodeWork({
    frozen,
    registry: models,
    cpu: { referred: none },
    content: inputs => Promise.resolve({ inputs, foreign: false }),
  })
  const run = openNodeRunner({
    work,
    frozen,
    store: store.executions,
    media: { take: none },
    run: runner(async job => {
      const { input } = JSON.parse(job.inputs) as { input: string }
      await ran(input)
      return { ...done, result: JSON.stringify({ data: input }) }
    }),
  })
  const jobs = openJobs({ store, fleet, models, weightOf: () => 1, log, run })
  const executions = openExecutions({ store, jobs, frozen, work, log })
  return {
    store,
    ended: (id: string) =>
      expect.poll(async () => (await store.executions.summary(organizationId, id))!.status).toBe('completed'),
    nodes: async (id: string) =>
      Object.fromEntries((await store.executions.nodes(organizationId, id)).map(node => [node.nodeId, node])),
    async [Symbol.asyncDispose]() {
      await jobs.drain(0)
      await executions.close()
      await opened[Symbol.asyncDispose]()
    },
  }
}

const embed = (input: string, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  ...more,
})

/** Written down, and nobody is there to hear of it: as if the server had ended at that moment. */
async function createdBefore(dataDir: string, nodes: Record<string, object>, edges: object[] = []): Promise<string> {
  await using opened = await openTestStore({ dataDir })
  const dag = Dag.parse({ nodes, edges })
  const { modelId: _, ...execution } = newExecution({ nodes: {} })
  const definition = newWorkflow({ dag })
  const made = await opened.store.executions.create({ ...execution, definition, nodes: planOf(dag) })
  return made.execution.id
}

test('after a restart what waits takes over the results of the same work, and does the same work once', async () => {
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
    // So that the same work comes while this is being done.
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
  expect(progress).toEqual({ total: 5, completed: 5, failed: 0, skipped: 0, running: 0 })
  expect(await server.store.jobs.counts()).toMatchObject({ pending: 0, processing: 0, completed: 3 })
  expect(server.store.stats().lateResults).toBe(0)
})
