import type { Cpu } from '../cpu/cpu.ts'
import { Failure } from '../failure.ts'
import { neverBegan } from '../jobs/retry.ts'
import type { Media } from '../media/take.ts'
import type { Model } from '../models/model.ts'
import type { Registry } from '../models/registry.ts'
import { type JobRecord, largeResultBytes } from '../store/store.ts'
import type { ExecutionStore } from '../store/workflows.ts'
import { taskRecord } from '../tasks/registry.ts'
import type { Ran, RunJob } from '../tasks/run-job.ts'
import type { ContentOf } from './content.ts'
import type { FrozenExecutions } from './frozen.ts'
import { type BoundNode, boundInputs, cacheKeyOf, cacheUse } from './node-inputs.ts'
import { oversize } from './result-cap.ts'
import { openSameWork } from './same-work.ts'

/** What a node's job runs with. */
export interface NodeWork extends BoundNode {
  model: Model
  /** Whether its result may be taken from one before, and under which key it is found by others; null: by none. */
  read: boolean
  key: string | null
  /** What our own addresses in the inputs begin with. */
  origin: string
}

/** Finds out what the job of a node has to do, once the nodes before it have ended. */
export function openNodeWork({
  frozen,
  registry,
  cpu,
  content,
}: {
  frozen: FrozenExecutions
  registry: Pick<Registry, 'find'>
  cpu: Pick<Cpu, 'referred'>
  content: ContentOf
}) {
  /** Throws Failure for references that point at nothing and a model that is not offered any more. */
  return async ({ parent, organizationId, modelId, task }: JobRecord): Promise<NodeWork> => {
    const execution = await frozen.of(organizationId, parent!.executionId)
    const model = registry.find(modelId)
    if (!execution) throw new Failure('not_found', `The execution ${parent!.executionId} is not there any more.`)
    if (!model?.enabled) throw new Failure('model_not_found', `The model '${modelId}' is no longer offered here.`)
    const bound = await boundInputs(execution, parent!.nodeId, { frozen, cpu })
    const { read, write } = cacheUse(bound.node, task, bound.inputs)
    const { origin } = execution
    const own = { ...bound, model, read: false, key: null, origin }
    if (!write) return own
    const { inputs, foreign } = await content(bound.inputs, execution)
    // What a foreign address holds may be another thing every time, so that has to be wished for.
    if (foreign && bound.node.cache === undefined) return own
    const { engine, source, upstream_id, url, command, args } = model
    const configured = { modelId, engine, source, upstream_id, url, command, args }
    return { ...own, read, key: cacheKeyOf(organizationId, task, configured, inputs) }
  }
}
export type NodeWorkOf = ReturnType<typeof openNodeWork>

/**
 * Runs jobs of nodes with the inputs that their references come to, and all others as they are. What a node comes to
 * is kept with its job, so that a run can be understood afterwards.
 */
export function openNodeRunner({
  run,
  work,
  frozen,
  store,
  media,
}: {
  run: RunJob
  work: NodeWorkOf
  frozen: Pick<FrozenExecutions, 'keepResult'>
  store: Pick<ExecutionStore, 'cached' | 'reuse'>
  media: Pick<Media, 'take'>
}): RunJob {
  const sameWork = openSameWork(store)

  const runNode = async (...[job, lease, signal, report]: Parameters<RunJob>): Promise<Ran> => {
    if (!job.parent) return run(job, lease, signal, report)
    const found = await work(job)
    if (found.read && found.key !== null) await sameWork.begin(job, found.key, signal)
    try {
      return await runWork(job, found, [lease, signal, report])
    } catch (thrown) {
      sameWork.end(job.id)
      throw thrown
    }
  }

  async function runWork(
    job: JobRecord,
    { node, inputs, model, key, origin }: NodeWork,
    [lease, signal, report]: [Parameters<RunJob>[1], AbortSignal, Parameters<RunJob>[3]],
  ): Promise<Ran> {
    const sender = { organizationId: job.organizationId, origin, jobId: job.id, signal }
    const filled = await taskRecord(job.task).fill(inputs, {
      model,
      drawSeed: () => seedOf(job.id),
      take: (field, value, kind, options) => media.take(sender, field, value, kind, options),
    })
    const ran = await run({ ...job, origin, inputs: JSON.stringify(filled) }, lease, signal, report).catch(
      (thrown: unknown) => {
        throw backingOff(thrown, node.retries?.backoff_ms)
      },
    )
    const tooLarge = oversize(job.parent!.nodeId, ran.result)
    if (tooLarge) {
      await run.undo(ran, job)
      throw tooLarge
    }
    // What is large is not written down twice: it is found out again from the results that it came from.
    const text = JSON.stringify(inputs)
    const known = text.length <= largeResultBytes ? { inputs: text } : {}
    return { ...ran, ...known, ...(key === null ? {} : { cacheKey: key }) }
  }

  return Object.assign(runNode, {
    undo(ran: Ran, job: JobRecord): Promise<void> {
      sameWork.end(job.id)
      return run.undo(ran, job)
    },
    written({ id, parent }: JobRecord, { result }: Ran) {
      sameWork.end(id)
      // What is large is read by its parts.
      if (parent && typeof result === 'string') frozen.keepResult(parent.executionId, parent.nodeId, result)
    },
  })
}

/** The failure of an attempt, with the least time that the node wants between it and the next. */
function backingOff(thrown: unknown, backOffMs = 0): unknown {
  if (!(thrown instanceof Failure) || neverBegan(thrown.code) || backOffMs <= (thrown.retryAfterMs ?? 0)) return thrown
  const { code, message, param, facts, details, validation } = thrown
  return new Failure(code, message, { param, facts, details, validation, cause: thrown, retryAfterMs: backOffMs })
}

/** The same for every attempt of a job, so that a second one makes what the first would have made. */
function seedOf(jobId: string): number {
  let seed = 0
  for (const character of jobId) seed = (Math.imul(seed, 31) + character.charCodeAt(0)) | 0
  return seed >>> 1
}
