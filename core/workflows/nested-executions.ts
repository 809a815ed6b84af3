import { isDeepStrictEqual } from 'node:util'
import type { Requester } from '../admission/admission.ts'
import { Failure, type FailureCode, failures } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Region } from '../schemas/region.ts'
import type { RunWorkflowRequest } from '../schemas/steps.ts'
import { type JobClaim, type JobRecord, jobErrorOf, type Store } from '../store/store.ts'
import type { ExecutionRecord, Resolution, WorkflowRecord } from '../store/workflows.ts'
import type { Offer } from './diagnose-node.ts'
import { outputsOf } from './execution-outputs.ts'
import type { ExecutionOptions } from './executions.ts'
import { type KeptWork, keptWork } from './kept-work.ts'
import { offerFor } from './offer.ts'
import { dependencies } from './plan.ts'
import type { ResultLookup } from './result-lookup.ts'
import { workflowOf } from './stored-workflow.ts'

/** What nodes that run workflows need besides the executions themselves. */
export interface Nesting {
  /** The token of an execution as admission knows it; undefined if it no longer exists. */
  requesterOf: (
    organizationId: string,
    tokenId: string,
    region: Region | undefined,
  ) => Promise<(Requester & { region: Region | undefined }) | undefined>
  /** The tasks, models and workflows that it may use. */
  offerFor: (requester: Requester, region: Region) => Offer
  cpu: Pick<ResultLookup, 'pruned'>
}

/** Opens it on the owners of a server. */
export const nestingOf = ({
  store,
  requesterOf,
  admission,
  registry,
  cpu,
}: Pick<Nesting, 'requesterOf' | 'cpu'> &
  Omit<Parameters<typeof offerFor>[1], 'workflows'> & { store: Pick<Store, 'workflows'> }): Nesting => ({
  requesterOf,
  offerFor: (requester, region) => offerFor(requester, { admission, registry, workflows: store.workflows }, region),
  cpu,
})

/** What is decided about an execution besides its options. */
export interface Creation {
  parentExecutionId: string | null
  /** What stays of the execution that is repeated, and its parameters. */
  kept?: KeptWork
  parameters?: Readonly<Record<string, unknown>>
  /** Whether the executions of its nodes continue those of the execution that it retries. */
  continues?: boolean
  /** The job of the node that runs it; with a claim: its run. */
  parentJob?: ParentJob
}
export interface ParentJob extends Pick<JobRecord, 'id'> {
  claim?: Pick<JobClaim, 'boot' | 'claims'>
}

/** A node that runs a workflow, with its bound inputs. */
export interface RunningWorkflow {
  job: JobRecord
  request: RunWorkflowRequest
  /** Seconds; the workflow's when absent. */
  timeout: number | undefined
  /** The most that it may cost, in the currency unit, besides the budget of the workflow. */
  budget: number | undefined
  claim?: Pick<JobClaim, 'boot' | 'claims'>
}

/** How often the end of an execution is tried again to be told to its node, milliseconds. */
const againMs = 1_000

/**
 * Executions that nodes of other executions run. The commit that creates one sets the job of its node aside, and its end ends
 * that job: at once, or after the next start of the server.
 */
export function openNestedExecutions(options: {
  store: Pick<Store, 'executions' | 'jobs' | 'workflows'>
  nesting: Nesting
  create: (options: ExecutionOptions, creation: Creation) => Promise<unknown>
  log: Log
  clock: { now(): number }
}) {
  const { store, nesting, create, log, clock } = options
  const { requesterOf, offerFor, cpu } = nesting
  /** One after the other, so that the outputs of one only are in memory. */
  let ending: Promise<void> = Promise.resolve()
  const closing = new AbortController()

  async function begin({ job, request, timeout, budget, claim }: RunningWorkflow): Promise<void> {
    const { organizationId, tokenId, parent } = job
    const outer = await store.executions.summary(organizationId, parent!.executionId)
    if (!outer) throw new Failure('not_found', `The execution ${parent!.executionId} no longer exists.`)
    const workflow = await workflowOf(organizationId, request, store.workflows)
    const { region } = outer.definition
    const requester = await requesterOf(organizationId, tokenId, region)
    if (!requester) throw new Failure('token_revoked', 'The token that executed this workflow no longer exists.')
    const { input = {} } = request
    const { retentionMs, origin, traceparent, priority } = outer
    const started: ExecutionOptions = {
      workflow: { id: workflow.id, version: workflow.version },
      definition: workflow,
      inputParams: input,
      priority,
      timeout,
      budget: lower(budget, workflow.budget ?? undefined),
      retentionMs,
      metadata: null,
      idempotency: null,
      origin,
      webhook: null,
      traceparent,
      requester,
      offer: offerFor(requester, region),
    }
    const parentJob = { id: job.id, ...(claim ? { claim } : {}) }
    const before = await continued(outer, parent!, workflow, input)
    if (before)
      try {
        return void (await create(started, { ...before, parentJob, continues: true }))
      } catch (thrown) {
        // A result that it would reuse was deleted.
        if (Failure.from(thrown).code !== 'conflict') throw thrown
      }
    await create(started, { parentExecutionId: null, parentJob })
  }

  /** The execution of the same work that this node or item of the retried execution ran: its nodes are run on. */
  async function continued(
    outer: ExecutionRecord,
    of: { nodeId: string; item?: number | undefined },
    { id, version, parameters }: WorkflowRecord,
    input: Readonly<Record<string, unknown>>,
  ): Promise<Pick<Creation, 'parentExecutionId' | 'kept' | 'parameters'> | undefined> {
    const { organizationId, parentExecutionId, continues } = outer
    if (!continues || parentExecutionId === null) return undefined
    const filled = { ...defaultsOf(parameters), ...input }
    const same = await store.executions.nested(organizationId, parentExecutionId, of)
    if (same?.workflowId !== id || same.workflowVersion !== version || same.finishedAt === null) return undefined
    if (!isDeepStrictEqual(same.inputParams, filled)) return undefined
    const before = await store.executions.find(organizationId, same.id)
    if (!before) return undefined
    const nodes = await store.executions.nodes(organizationId, before.id)
    const { dag } = before.definition
    const kept = keptWork(dag, dependencies(dag), nodes, { from: 'failed' })
    return { parentExecutionId: before.id, kept, parameters: before.inputParams }
  }

  async function resolutionOf(organizationId: string, id: string): Promise<Resolution> {
    const execution = await store.executions.find(organizationId, id)
    if (!execution) return { error: jobErrorOf(deleted(id), 0) }
    const failure = failureOf(execution)
    if (failure) return { error: jobErrorOf(failure, 0) }
    try {
      return { result: await outputsOf(execution, store.executions, cpu) }
    } catch (thrown) {
      const failure = Failure.from(thrown)
      if (failure.retryable) throw failure
      if (failure.code === 'internal_error') log.error('The outputs of an execution could not be read', { id }, thrown)
      return { error: jobErrorOf(failure, 0) }
    }
  }

  async function end(organizationId: string, id: string, jobId: string): Promise<void> {
    while (!closing.signal.aborted)
      try {
        const resolution = await resolutionOf(organizationId, id)
        const at = clock.now()
        // False: the node has ended before, with its own execution.
        await store.executions.resolve(organizationId, jobId, { awaits: 'execution', at, ...resolution })
        return
      } catch (thrown) {
        const { code, retryable } = Failure.from(thrown)
        if (code === 'shutting_down') return
        if (!retryable) {
          log.error(
            'A node could not be ended with its execution, so it is given up',
            { execution: id, job: jobId },
            thrown,
          )
          await store.jobs.giveUp(organizationId, jobId, clock.now()).catch(() => undefined)
          return
        }
        await new Promise(resolve => setTimeout(resolve, againMs).unref())
      }
  }

  /** An execution that a node runs has ended: ends the job of the node. */
  function ended(those: readonly { organizationId: string; id: string; jobId: string }[]): void {
    for (const { organizationId, id, jobId } of those) ending = ending.then(() => end(organizationId, id, jobId))
  }

  return {
    /**
     * Creates the execution of a node and sets the job of the node aside, in one commit. Throws Failure like `execute`, and
     * `not_found` for an unknown workflow.
     */
    begin,
    ended,
    /** Ends the nodes whose executions have ended while no server ran. */
    resume: async (): Promise<void> => ended(await store.executions.unresolved()),
    async close(): Promise<void> {
      closing.abort()
      await ending
    },
  }
}

const defaultsOf = (parameters: WorkflowRecord['parameters']): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(parameters ?? {}).flatMap(([name, { default: value }]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )

/** The lower of two limits, where there are any. */
const lower = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)

const deleted = (id: string) =>
  new Failure('output_expired', `The execution ${id}, which this node has run, was deleted.`)

/** Why an execution that has ended did not complete, as the failure of its node; undefined if it did. */
function failureOf({
  id,
  definition: { name },
  status,
  error,
  timeoutMs,
}: Pick<ExecutionRecord, 'id' | 'definition' | 'status' | 'error' | 'timeoutMs'>): Failure | undefined {
  if (status === 'completed') return undefined
  const which = `The execution ${id} of the workflow '${name}'`
  if (error?.code === 'timeout')
    return new Failure('timeout', `${which} exceeded its timeout of ${timeoutMs / 1000} s.`, { final: true })
  if (error === null) return new Failure('cancelled', `${which} was cancelled.`)
  const { nodeId, cause } = error
  const at = nodeId === null ? '' : ` at the node '${nodeId}'`
  const code: FailureCode = cause && Object.hasOwn(failures, cause.code) ? cause.code : 'cancelled'
  return new Failure(code, `${which} failed${at}: ${cause?.message ?? 'its job was cancelled.'}`, { final: true })
}
