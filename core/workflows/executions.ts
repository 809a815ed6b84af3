import { isDeepStrictEqual } from 'node:util'
import type { Admission, Requester } from '../admission/admission.ts'
import { conflict, Failure } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Jobs } from '../jobs/jobs.ts'
import type { Log } from '../log.ts'
import { pick } from '../members.ts'
import type { Fleet } from '../models/fleet.ts'
import { millionthsOf } from '../models/price.ts'
import type { Task } from '../schemas/task.ts'
import { noModelId } from '../schemas/task-table.ts'
import type { JobLimits, JobRecord, RequestWebhook, Store } from '../store/store.ts'
import type { ExecutionRecord, NewExecution, WorkflowDefinition } from '../store/workflows.ts'
import { referencesOfNode } from './bind.ts'
import type { DefinitionSnapshots } from './definition-snapshots.ts'
import { diagnoseExecution } from './diagnose.ts'
import type { Offer } from './diagnose-node.ts'
import { blockingOf, type Diagnostic } from './diagnostics.ts'
import { openGathering } from './gathering.ts'
import { type Creation, type Nesting, openNestedExecutions } from './nested-executions.ts'
import { openNodeQueueing } from './node-queue.ts'
import type { NodeWorks } from './node-run.ts'
import { fillParameters } from './parameters.ts'
import { withFileIds } from './pinned-files.ts'
import { planNodes, usedParameters } from './plan.ts'
import { planRetry, type RetryOptions } from './retry.ts'
import { runningNodes, type Selection, selectedPart } from './selection.ts'
import type { SingleFlight } from './single-flight.ts'
import { openTimeouts } from './timeouts.ts'
import { openUpcomingModels } from './upcoming-models.ts'

/** A request to execute a workflow. */
export interface ExecutionOptions {
  workflow: { id: string; version: number } | null
  definition: WorkflowDefinition
  inputParams: Record<string, unknown>
  /** The nodes to run, and pinned results. Default: all nodes, without the pins of the definition. */
  selection?: Selection
  priority: number
  /** Seconds; the definition's when absent. */
  timeout: number | undefined
  /** The most that it may cost, in the currency unit; the definition's when absent. */
  budget?: number | undefined
  /** How long it is kept after its end, milliseconds; null: until it is removed. */
  retentionMs: number | null
  /** JSON text. */
  metadata: string | null
  idempotency: NewExecution['idempotency']
  /** What this server's own URLs begin with for the caller, whose inputs may contain some. */
  origin: string
  /** Where its events are sent besides the endpoints of the organization. */
  webhook?: RequestWebhook | null
  /** The trace that it belongs to (W3C Trace Context); null or absent without one. */
  traceparent?: string | null
  /** The token for which its nodes run. */
  requester: Requester
  /** The tasks and models that the caller may use. */
  offer: Offer
}

/**
 * Called after a change; `ended`: whether the execution has ended. Undefined: it may have changed in another server.
 */
export type Follower = (ended: boolean | undefined) => void

/** How many jobs of items are removed in one transaction. */
const itemsRemovedAtOnce = 500

/** How often followers look for what another server does, milliseconds. */
const pollMs = 100

/** Executions of workflows: created with a commit, moved forward by the ends of their jobs, ended exactly once. */
export function openExecutions(dependencies: {
  store: Store
  jobs: Pick<Jobs, 'queued' | 'claimedSuccessors' | 'withdrawn' | 'setAside' | 'wait'>
  admission: Pick<Admission, 'admit'>
  snapshots: DefinitionSnapshots
  works: NodeWorks
  flight: SingleFlight
  /** For nodes that run workflows. */
  nesting: Nesting
  /** Learns how many running executions need each model next. */
  fleet: Pick<Fleet, 'upcoming'>
  log: Log
  clock?: { now(): number }
}) {
  const { store, jobs, admission, snapshots, works, flight, nesting, log, clock = { now: Date.now } } = dependencies
  /** By execution id and by organization id. */
  const followers = new Map<string, Set<Follower>>()
  const nested = openNestedExecutions({ store, nesting, create, log, clock })
  const runWorkflow = nested.begin
  const queueing = openNodeQueueing({ store, works, flight, runWorkflow, queue: jobs.queued, ended: jobs.wait, log })
  const { forgetList } = works
  const gathering = openGathering({ store: store.executions, snapshots, ended: forgetList, log })
  const timeouts = openTimeouts({ store: store.executions, clock, log })
  const upcoming = openUpcomingModels(models => dependencies.fleet.upcoming(models))

  store.onCommitted(effects => {
    const {
      released,
      claimedSuccessors,
      withdrawn,
      setAside,
      gathers,
      executions,
      nestedEnded,
      organizations: ofEvents,
    } = effects
    // First, because jobs must be started before they can be stopped.
    if (claimedSuccessors.length > 0) jobs.claimedSuccessors(claimedSuccessors)
    if (setAside.length > 0) jobs.setAside(setAside)
    if (withdrawn.length > 0) jobs.withdrawn(withdrawn)
    if (released.length > 0) queueing.released(released)
    if (nestedEnded.length > 0) nested.ended(nestedEnded)
    if (gathers.length > 0) gathering.add(gathers)
    const organizations = new Set(ofEvents)
    for (const { id, organizationId, ended, timeoutAt, next } of executions) {
      upcoming.changed(
        id,
        next.filter(modelId => modelId !== noModelId),
      )
      organizations.add(organizationId)
      if (timeoutAt !== undefined) timeouts.at(timeoutAt)
      if (ended) snapshots.drop(id)
      notify(id, ended)
    }
    for (const id of organizations) notify(id, false)
  })

  function notify(id: string, ended: boolean | undefined): void {
    for (const listener of followers.get(id) ?? [])
      try {
        listener(ended)
      } catch (thrown) {
        log.error('A follower of an execution failed', { execution: id }, thrown)
      }
  }

  async function create(options: ExecutionOptions, { kept, parameters, ...more }: Creation) {
    const {
      definition: whole,
      selection = {},
      requester,
      offer,
      workflow,
      timeout,
      budget,
      inputParams,
      ...execution
    } = options
    const { unused, ...part } = selectedPart(whole, selection)
    const { frames: _, ...graph } = part.dag
    const dag = await withFileIds(graph, requester.organizationId, store.files)
    const given = { ...whole, ...part, dag }
    const diagnostics = await diagnoseExecution(dag, given.parameters ?? undefined, offer, workflow?.id)
    requireRunnable(blockingOf(diagnostics))
    const references = runningNodes(given.dag).flatMap(node =>
      referencesOfNode(node).flatMap(({ reference }) => ('root' in reference ? [reference] : [])),
    )
    const nodes = planNodes(given.dag, kept)
    const limits: JobLimits[] = []
    let { region } = given
    for (const node of nodes)
      if (node.reuses === null && !node.pinned) {
        const { task, modelId } = node
        const admitted = admission.admit(requester, { kind: 'node', task: task as Task, modelId, region })
        node.modelId = admitted.model.id
        node.requestedModel = admitted.requestedModel
        region = admitted.region ?? region
        if (admitted.jobLimits) limits.push(admitted.jobLimits)
      }
    const [limit] = limits.toSorted((a, b) => b.storedBytes - a.storedBytes)
    // The execution keeps the region of the request and of the organization, for nodes that start later.
    const definition = region === given.region ? given : { ...given, region }
    const { organizationId, tokenId } = requester
    const { origin } = execution
    // Values for the nodes that are left out are no mistake.
    const known = { ...parameters, ...Object.fromEntries([...unused].map(name => [name, null])) }
    const filled = fillParameters(inputParams, definition.parameters, usedParameters(references), known)
    const snapshot = {
      id: newId('exec'),
      organizationId,
      definition,
      inputParams: filled,
      origin,
      createdAt: clock.now(),
    }
    // Before the commit: its first jobs are released together with the answer.
    snapshots.keep(snapshot)
    return store.executions.create({
      ...execution,
      ...snapshot,
      ...more,
      tokenId,
      workflowId: workflow?.id ?? null,
      workflowVersion: workflow?.version ?? null,
      budget: millionthsOf(budget ?? definition.budget ?? null),
      timeoutMs: (timeout ?? definition.timeout) * 1000,
      nodes,
      // What nodes start is not limited, as the jobs of later nodes are not.
      ...(limit && !more.parentJob ? { limits: limit } : {}),
    })
  }

  return {
    ...pick(store.executions, 'find', 'summary', 'list', 'nodes', 'items', 'results', 'inputs'),
    events: pick(store.events, 'ofExecution', 'ofOrganization'),

    /**
     * Resolves after the commit: from then on the execution survives a crash. Throws Failure `invalid_graph` with the
     * diagnostics that prevent execution; `missing_required_parameter` and the like for its input.
     */
    execute: (options: ExecutionOptions) => create(options, { parentExecutionId: null }),

    /**
     * Executes an ended execution again: the nodes that have not completed, all nodes, or those from a given node on; with
     * changed nodes, those and what comes after them. Reuses the results of the other nodes. Throws like `execute` and
     * `planRetry`, and `conflict` while it is unfinished.
     */
    async retry(before: ExecutionRecord, retry: RetryOptions, options: ExecutionOptions) {
      const { id, organizationId, definition, inputParams: parameters } = before
      if (before.finishedAt === null)
        throw conflict(`The execution ${id} is ${before.status}. Wait for its end, or cancel it.`)
      const nodes = await store.executions.nodes(organizationId, id)
      const { dag, kept: stays } = planRetry({ id, dag: definition.dag, nodes }, retry)
      // Other parameters may make another list.
      const kept = isDeepStrictEqual(options.inputParams, parameters) ? stays : { ...stays, lists: new Set<string>() }
      const again = { ...options, definition: { ...options.definition, dag }, selection: { usePins: true } }
      const continues = retry.from === undefined || retry.from === 'failed'
      return create(again, { parentExecutionId: id, kept, parameters, continues })
    },

    /** Starts the execution of a node that runs a workflow. */
    runWorkflow,
    /** Ends nodes whose executions have ended while no server ran. */
    resume: nested.resume,

    /** The bound inputs of a node, also while it runs or after a failure; null if they cannot be determined. */
    async inputsOf(job: JobRecord): Promise<unknown> {
      if (job.inputs !== 'null' || !job.parent) return JSON.parse(job.inputs)
      return (await works.of(job).catch(() => undefined))?.inputs ?? null
    },

    /**
     * Cancels an execution; running jobs are stopped. Undefined: no such execution. Throws
     * `execution_already_finished`.
     */
    cancel: (organizationId: string, id: string): Promise<ExecutionRecord | undefined> =>
      store.executions.cancel(organizationId, id, clock.now()),

    /**
     * Removes an ended execution with its jobs and files. Undefined: no such execution. Throws `conflict` while
     * unfinished.
     */
    async remove(organizationId: string, id: string): Promise<true | undefined> {
      const now = clock.now()
      // In batches, so that other commands never wait long.
      while ((await store.executions.removeItems(organizationId, id, now, itemsRemovedAtOnce)) === itemsRemovedAtOnce);
      return store.executions.remove(organizationId, id, now)
    },

    /**
     * Calls the listener after every commit that changed the execution, or any of the organization, until the returned
     * function is called.
     */
    follow(id: string, listener: Follower): () => void {
      const listeners = followers.get(id) ?? new Set()
      followers.set(id, listeners.add(listener))
      return () => {
        listeners.delete(listener)
        if (listeners.size === 0 && followers.get(id) === listeners) followers.delete(id)
      }
    },

    /** Another server runs the executions from now on: followers are called often, to look whether they have changed. */
    leave(): void {
      setInterval(() => {
        for (const id of followers.keys()) notify(id, undefined)
      }, pollMs).unref()
    },

    async close(): Promise<void> {
      upcoming.close()
      await Promise.all([timeouts.close(), nested.close(), gathering.close()])
    },
  }
}
export type Executions = ReturnType<typeof openExecutions>

/** For a missing or disabled model the failure has the same code as for every other request. */
const withoutModel: ReadonlySet<string> = new Set(['unknown_model', 'model_disabled'])

/** Throws Failure `invalid_graph` if any diagnostic prevents execution. */
function requireRunnable(blocking: readonly Diagnostic[]): void {
  const [first] = blocking
  if (!first) return
  const others = blocking.length > 1 ? ` ${blocking.length - 1} more: see details.` : ''
  throw new Failure('invalid_graph', `The workflow cannot run. ${first.message}${others}`, {
    param: first.node_id === undefined ? 'dag' : `dag.nodes.${first.node_id}${first.path ? `.${first.path}` : ''}`,
    details: blocking.map(({ code, node_id, path, ...more }) => ({
      ...more,
      code: withoutModel.has(code) ? 'model_not_found' : code,
      ...(node_id === undefined ? {} : { node_id }),
      path: node_id === undefined ? 'dag' : `dag.nodes.${node_id}${path ? `.${path}` : ''}`,
    })),
  })
}
