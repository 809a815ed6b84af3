import { afterEach, expect } from 'vitest'
import { openJobs } from '../../../core/jobs/jobs.ts'
import { orNoModel } from '../../../core/models/no-model.ts'
import { taskNamed, taskRecords } from '../../../core/tasks/registry.ts'
import type { ContentOf } from '../../../core/workflows/content.ts'
import { openDefinitionSnapshots } from '../../../core/workflows/definition-snapshots.ts'
import type { Offer } from '../../../core/workflows/diagnose-node.ts'
import { openExecutions } from '../../../core/workflows/executions.ts'
import { openNodeRunner, openNodeWorks } from '../../../core/workflows/node-run.ts'
import { openResultLookup } from '../../../core/workflows/result-lookup.ts'
import { resultWork } from '../../../core/workflows/result-work.ts'
import { openSingleFlight } from '../../../core/workflows/single-flight.ts'
import { workflowOf } from '../../../core/workflows/stored-workflow.ts'
import { admitsAll, requester } from '../_admission.ts'
import { slotsOnly } from '../jobs/_fleet.ts'
import { done, runner } from '../jobs/_runs.ts'
import { keptLog, openTestStore, organizationId } from '../store/_store.ts'

const none = () => Promise.reject(new Error('There is no such thing here'))
/** The work of the thread, in this one. */
const lookedUp = async (work: string, request: unknown): Promise<never> =>
  resultWork[work as keyof typeof resultWork](request as never).value as never

const { log, lines } = keptLog()
afterEach(() => expect(lines.filter(line => line.includes('"level":"error"'))).toEqual([]))

/** A server without engines on a data directory; `ran` gets the inputs of every job that an engine would run. */
export async function openServer(
  dataDir: string,
  ran: (input: string) => Promise<void>,
  {
    slots,
    content = inputs => Promise.resolve({ inputs, foreign: false }),
  }: { slots?: number; content?: ContentOf } = {},
) {
  const opened = await openTestStore({ dataDir })
  const { store } = opened
  const { fleet, models } = slotsOnly(slots === undefined ? {} : { slots })
  const snapshots = openDefinitionSnapshots(store.executions)
  const admission = admitsAll(models)
  const works = openNodeWorks({
    snapshots,
    admission,
    cpu: openResultLookup({ calling: () => (_pool, work, request) => lookedUp(work, request) }),
    content,
  })
  const flight = openSingleFlight(store.executions)
  const run = openNodeRunner({
    admission,
    works,
    flight,
    store: store.executions,
    runWorkflow: running => executions.runWorkflow(running),
    snapshots,
    media: { take: none },
    run: runner(async job => {
      const { input } = JSON.parse(job.inputs) as { input: string }
      await ran(input)
      return { ...done, result: JSON.stringify({ data: input }) }
    }),
  })
  const jobs = openJobs({
    store,
    fleet,
    models: { ...models, find: orNoModel(models.find) },
    weightOf: () => 1,
    log,
    run,
  })
  const offer: Offer = {
    task(name) {
      const task = taskNamed(name)
      return task && { name: task.id, type: task }
    },
    taskNames: () => taskRecords.map(({ id }) => id),
    model: id => ({
      id,
      enabled: true,
      tasks: taskRecords.map(task => task.id),
      extraParams: [],
      voices: undefined,
      voiceAliases: {},
      resolutions: undefined,
      generationDefaults: undefined,
    }),
    modelIds: () => ['any'],
    findWorkflow: (workflow, version) => workflowOf(organizationId, { workflow, version }, store.workflows),
  }
  const executions = openExecutions({
    store,
    jobs,
    admission,
    snapshots,
    works,
    flight,
    nesting: {
      requesterOf: async (owner, tokenId, region) => ({ ...requester(owner, tokenId), region }),
      offerFor: () => offer,
      cpu: { pruned: none },
    },
    fleet: { upcoming() {} },
    log,
  })
  await executions.resume()
  return {
    store,
    offer,
    executions,
    jobs,
    models,
    ended: (id: string) =>
      expect.poll(async () => (await store.executions.summary(organizationId, id))!.status).toBe('completed'),
    summary: async (id: string) => (await store.executions.summary(organizationId, id))!,
    nodes: async (id: string) =>
      Object.fromEntries((await store.executions.nodes(organizationId, id)).map(node => [node.nodeId, node])),
    async [Symbol.asyncDispose]() {
      await jobs.drain(0)
      await executions.close()
      await opened[Symbol.asyncDispose]()
    },
  }
}
