import { once } from 'node:events'
import type { Admission } from '../admission/admission.ts'
import { Failure } from '../failure.ts'
import { jobSeed } from '../ids.ts'
import { AttemptTimeout } from '../jobs/attempts.ts'
import { neverBegan } from '../jobs/retry.ts'
import type { Media } from '../media/media.ts'
import type { Model } from '../models/model.ts'
import { millionthsOf } from '../models/price.ts'
import { parsed } from '../schemas/issues.ts'
import { requiredLabel } from '../schemas/region.ts'
import { RunWorkflowRequest } from '../schemas/steps.ts'
import { type JobRecord, largeResultBytes } from '../store/store.ts'
import type { ExecutionStore } from '../store/workflows.ts'
import { runsWorkflow, taskRecord } from '../tasks/registry.ts'
import type { RunJob, RunResult } from '../tasks/run-job.ts'
import type { ContentOf } from './content.ts'
import { type DefinitionSnapshots, lengthOf } from './definition-snapshots.ts'
import { openItemLists } from './item-lists.ts'
import type { RunningWorkflow } from './nested-executions.ts'
import {
  type BoundNode,
  bindNodeInputs,
  cacheKeyOf,
  cacheUse,
  conditionHolds,
  hasManyValues,
  oversize,
} from './node-inputs.ts'
import type { ResultLookup } from './result-lookup.ts'
import type { SingleFlight } from './single-flight.ts'

/**
 * The work of a node's job. `skipped`: it has none, because the condition of the node is false. `items`: the node has
 * `for_each`, and the jobs of this many items do the work.
 */
export type NodeWork =
  | NodeTask
  | { skipped: true; items?: undefined; inputs: null; model: Model; runsWorkflow?: undefined }
  | { items: number; skipped?: undefined; inputs: null; model: Model; runsWorkflow?: undefined }

/** What a node's job does. */
interface NodeTask extends BoundNode {
  skipped?: undefined
  items?: undefined
  model: Model
  /** Whether it runs a workflow, instead of its task. */
  runsWorkflow: boolean
  /** Whether it may reuse a stored result, and the cache key of its own result; null: it is not cached. */
  read: boolean
  key: string | null
  /** What this server's own URLs in the inputs begin with. */
  origin: string
}

/** How many jobs' work is kept between queue and run, and the maximum length of its inputs in characters. */
const maxKept = 1_000
const maxKeptLength = 1 << 14

/** Determines the work of node jobs, once the nodes before them have ended. */
export function openNodeWorks(options: {
  snapshots: DefinitionSnapshots
  admission: Pick<Admission, 'readmit'>
  cpu: Pick<ResultLookup, 'referred' | 'listed'>
  content: ContentOf
}) {
  const { snapshots, admission, cpu, content } = options
  const lists = openItemLists({ snapshots, cpu })
  /** By job id. Results never change, so the inputs of a job never change either. */
  const kept = new Map<string, NodeWork>()

  async function bound(job: JobRecord, model: Model): Promise<NodeWork> {
    const { parent, organizationId, modelId, requestedModel, task } = job
    const execution = await snapshots.of(organizationId, parent!.executionId)
    if (!execution) throw new Failure('not_found', `The execution ${parent!.executionId} no longer exists.`)
    admission.readmit({ ...job, region: requiredLabel(execution.definition.region) })
    const { nodeId, item } = parent!
    if (item === undefined) {
      if (!(await conditionHolds(execution, nodeId, { snapshots, cpu }))) return { skipped: true, inputs: null, model }
      if (execution.definition.dag.nodes[nodeId]!.for_each !== undefined)
        return { items: await lists.count(execution, nodeId), inputs: null, model }
    }
    const bound = item === undefined ? undefined : await lists.item(execution, nodeId, item)
    const node = await bindNodeInputs(execution, nodeId, { snapshots, cpu }, bound)
    const { read, write } = cacheUse(node.node, task, node.inputs)
    const { origin } = execution
    const isNested = runsWorkflow(taskRecord(task))
    const uncached = { ...node, model, runsWorkflow: isNested, read: false, key: null, origin }
    if (isNested || !write || hasManyValues(node.inputs)) return uncached
    const { inputs, foreign } = await content(node.inputs, execution)
    // The content at a foreign URL may change, so caching it has to be requested.
    if (foreign && node.node.cache === undefined) return uncached
    const { engine, source, upstream_id, url, urls, command, args, adapter } = model
    const profile = requestedModel === null ? undefined : model.profiles?.[requestedModel]
    const own = { ...(profile && { profile }), ...(adapter && { adapter }), ...(urls && { urls }) }
    const configured = { modelId, engine, source, upstream_id, url, command, args, ...own }
    return { ...uncached, read, key: cacheKeyOf(organizationId, task, configured, inputs) }
  }

  /** Throws Failure for references to something that does not exist, and for a model that is no longer offered. */
  async function of(job: JobRecord): Promise<NodeWork> {
    const model = admission.readmit(job)
    const before = kept.get(job.id)
    // A model whose configuration was changed gives other results.
    return before?.model === model ? before : bound(job, model)
  }

  return {
    of,
    /** The same for a job that is about to be queued: its work is kept for its run. */
    async prepare(job: JobRecord): Promise<NodeWork> {
      const found = await of(job)
      if (kept.size < maxKept && lengthOf(found.inputs) <= maxKeptLength) kept.set(job.id, found)
      return found
    },
    /** Call it when the job has started or will not run. */
    forget: (jobId: string): void => void kept.delete(jobId),
    /** Call it when the items of a node have ended. */
    forgetList: lists.drop,
  }
}
export type NodeWorks = ReturnType<typeof openNodeWorks>

/**
 * Runs node jobs with their bound inputs, and all other jobs unchanged. The bound inputs are stored with the job, so
 * that a run can be understood afterwards.
 */
export function openNodeRunner(dependencies: {
  run: RunJob
  admission: Pick<Admission, 'readmit' | 'holdNode'>
  works: Pick<NodeWorks, 'of' | 'forget'>
  flight: SingleFlight
  store: Pick<ExecutionStore, 'skip' | 'expand' | 'budgets'>
  /** Starts the execution of a node that runs a workflow; the store sets the job aside, which stops its run. */
  runWorkflow: (running: RunningWorkflow) => Promise<void>
  snapshots: Pick<DefinitionSnapshots, 'keepResult'>
  media: Pick<Media, 'take'>
}): RunJob {
  const { run, admission, works, flight, store, runWorkflow, snapshots, media } = dependencies
  const runNode = async (...[job, lease, signal, report]: Parameters<RunJob>): Promise<RunResult> => {
    if (!job.parent) {
      admission.readmit(job)
      return run(job, lease, signal, report)
    }
    const found = await works.of(job)
    works.forget(job.id)
    if (found.skipped) return leave(signal, claim => store.skip(job.organizationId, job.id, claim), job)
    if (found.items !== undefined) {
      const { items: count } = found
      return leave(signal, claim => store.expand(job.organizationId, job.id, { ...claim, count }), job)
    }
    if (found.runsWorkflow) return startWorkflow(job, found, signal)
    if (found.read && found.key !== null) await begin(job, found.key, signal)
    try {
      return await runWork(job, found, [lease, signal, report])
    } catch (thrown) {
      flight.end(job.id, 'running')
      throw thrown
    }
  }

  /** Makes the store take the job out of the queue, which stops this run. Never resolves; rejects with the signal's reason. */
  async function leave(
    signal: AbortSignal,
    take: (how: { at: number; claim: Pick<JobRecord, 'boot' | 'claims'> }) => Promise<boolean>,
    { boot, claims }: JobRecord,
  ): Promise<never> {
    signal.throwIfAborted()
    const stopped = once(signal, 'abort')
    await take({ at: Date.now(), claim: { boot, claims } })
    await stopped
    throw signal.reason
  }

  /** Starts the execution of the node. Never resolves; rejects with the signal's reason once the job is set aside. */
  async function startWorkflow(job: JobRecord, found: NodeTask, signal: AbortSignal): Promise<never> {
    signal.throwIfAborted()
    const stopped = once(signal, 'abort')
    const { boot, claims } = job
    await runWorkflow({ ...workflowRunOf(job, found), claim: { boot, claims } })
    await stopped
    throw signal.reason
  }

  /**
   * Resolves when this job is the one that does the work. Rejects with the signal's reason; also if its node reuses a
   * stored result, because then there is nothing to run.
   */
  async function begin(job: JobRecord, key: string, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    const stopped = once(signal, 'abort')
    for (let other = flight.other(job.id, key); other; other = flight.other(job.id, key)) {
      await Promise.race([other, stopped])
      signal.throwIfAborted()
    }
    const { boot, claims } = job
    if (await flight.begin(job, key, 'running', { boot, claims })) return
    await stopped
    signal.throwIfAborted()
  }

  async function runWork(
    job: JobRecord,
    { node, inputs, model, key, origin }: NodeTask,
    [lease, signal, report]: [Parameters<RunJob>[1], AbortSignal, Parameters<RunJob>[3]],
  ): Promise<RunResult> {
    const sender = { organizationId: job.organizationId, origin, jobId: job.id, signal }
    const record = taskRecord(job.task)
    let audioBytes = 0
    const filled = await record.fill(inputs, {
      model: { ...model, id: job.requestedModel ?? model.id },
      drawSeed: () => jobSeed(job.id),
      async take(field, value, kind, options) {
        const file = await media.take(sender, field, value, kind, options)
        if (kind === 'audio') audioBytes = file.bytes
        return file
      },
    })
    const filledText = JSON.stringify(filled)
    const contextLength = model.context_length ?? null
    await admission.holdNode(
      job,
      model,
      () => record.metering.estimate({ inputs: { ...filled }, length: filledText.length, contextLength, audioBytes }),
      async () => ({
        node: node.budget === undefined ? undefined : millionthsOf(node.budget),
        executions: await store.budgets(job.organizationId, job.parent!.executionId),
      }),
    )
    const ran = await run({ ...job, origin, inputs: filledText }, lease, signal, report).catch((thrown: unknown) => {
      throw backingOff(thrown, node.retries?.backoff_ms)
    })
    const tooLarge = oversize(job.parent!.nodeId, ran.result)
    if (tooLarge) {
      await run.undo(ran, job)
      throw tooLarge
    }
    // Large inputs are not stored: they can be bound again from the results they came from.
    const text = JSON.stringify(inputs)
    const known = text.length <= largeResultBytes ? { inputs: text } : {}
    return { ...ran, ...known, ...(key === null ? {} : { cacheKey: key }) }
  }

  return Object.assign(runNode, {
    undo(ran: RunResult, job: JobRecord): Promise<void> {
      flight.end(job.id, 'running')
      return run.undo(ran, job)
    },
    written({ id, parent }: JobRecord, { result }: RunResult) {
      flight.end(id, 'running')
      // Large results are read in parts, and that of an item is not the result of the node.
      if (parent && parent.item === undefined && typeof result === 'string')
        snapshots.keepResult(parent.executionId, parent.nodeId, result)
    },
  })
}

/** What a node that runs a workflow asks for. Throws Failure for wrong inputs. */
export const workflowRunOf = (job: JobRecord, { node, inputs }: BoundNode): RunningWorkflow => ({
  job,
  request: parsed(RunWorkflowRequest, inputs),
  timeout: node.timeout,
  budget: node.budget,
})

/** The failure of an attempt, with the node's time until the next one. */
function backingOff(thrown: unknown, backOffMs: number | undefined): unknown {
  if (backOffMs === undefined || !(thrown instanceof Failure) || !thrown.retryable || neverBegan(thrown.code))
    return thrown
  // It is not tried again, and known by its class.
  if (thrown instanceof AttemptTimeout) return thrown
  return thrown.with({ backOffMs })
}
