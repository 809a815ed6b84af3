import { type ExecutionStatus } from '../../dag/execution-state.ts'
import { conflict, Failure, invalid } from '../../failure.ts'
import { limitFailure } from '../limits.ts'
import type { Statements } from '../method-table.ts'
import { type JobClaim, type RowKey, waitingOf } from '../store.ts'
import type { ExecutionRecord, NewExecution, NewExecutionNode } from '../workflows.ts'
import { openInsert } from './columns.ts'
import type { Connection } from './database.ts'
import type { JobRow } from './job-reads.ts'
import type { StoredPlanNode } from './live-executions.ts'
import { type OwnJob, openReusedWork } from './reused-work.ts'
import { openSetAside } from './set-aside.ts'
import type { WriteContext } from './write-context.ts'

interface ExecutionRow extends Pick<ExecutionRecord, 'organizationId' | 'id' | 'status'> {
  number: number
}
const columns = 'number, organization_id AS organizationId, id, status'

/** How deep executions are nested. */
const maxDepth = 5

type ParentJob = NonNullable<NewExecution['parentJob']>

/** A sweep stops after this many jobs; the next sweep continues. */
const maxForgotten = 500

const unfinishedStatuses: ReadonlySet<ExecutionStatus> = new Set(['pending', 'running'])

/** Whether a node is completed from the start. */
const hasResult = ({ reuses, pinned }: NewExecutionNode): boolean => reuses !== null || pinned === true

/** The writer's commands for whole executions; execution-flow.ts moves them forward. */
export function executionCommands(connection: Connection, context: WriteContext) {
  const { flow, queue, effects, events, outbox, use, keys, forgetJob, eachRow, giveUpExecution } = context
  const insert = openInsert(
    connection,
    'executions',
    `organizationId, id, tokenId, workflowId, workflowVersion, onFailure, priority, status, timeoutMs, retentionMs,
    metadata, parentId, createdAt, updatedAt, nodes, completed, webhook, traceparent,
    queued, continues, parentExecution, parentNode, parentJob, depth,
    budget`,
  )
  const insertPlan = openInsert(connection, 'execution_plans', 'execution, definition, inputParams, plan, dag, origin')
  const insertNode = openInsert(
    connection,
    'execution_nodes',
    'execution, node, nodeId, task, modelId, onError, status, jobId, cached, at',
  )
  const nestedOf = connection.scalar<string>`SELECT id FROM executions WHERE organization_id = ? AND parent_job = ?`
  const facts = connection.query<{ depth: number; workflowId: string | null }>`SELECT depth, workflow_id AS workflowId
    FROM executions WHERE number = ?`
  const nestingJob = connection.query<{
    number: number
    execution: number
    node: number
  }>`SELECT number, execution, node
    FROM jobs WHERE organization_id = ? AND id = ? AND finished_at IS NULL AND node IS NOT NULL`
  // The node has begun when its execution has.
  const begin = connection.statement`UPDATE jobs SET started_at = ? WHERE number = ?`
  const setAside = openSetAside(connection, context)
  const reusedWork = openReusedWork(connection, context)
  const one = connection.query<ExecutionRow>`SELECT ${columns} FROM executions WHERE organization_id = ? AND id = ?`
  const late = connection.query<ExecutionRow>`SELECT ${columns} FROM executions WHERE finished_at IS NULL
    AND timeout_at IS NOT NULL AND timeout_at <= ? ORDER BY timeout_at LIMIT ?`
  const over = connection.query<ExecutionRow>`SELECT ${columns} FROM executions WHERE expires_at IS NOT NULL
    AND expires_at <= ? AND (parent_job IS NULL OR NOT EXISTS (SELECT 1 FROM jobs
      WHERE jobs.organization_id = executions.organization_id AND jobs.id = parent_job))
    ORDER BY expires_at LIMIT ?`
  /** The job of the node that has run an execution, while it is kept: its result names files of that execution. */
  const parentJob = connection.scalar<string>`SELECT jobs.id FROM executions JOIN jobs
    ON jobs.organization_id = executions.organization_id AND jobs.id = executions.parent_job WHERE executions.number = ?`
  const neverExpires = connection.statement`UPDATE executions SET expires_at = NULL WHERE number = ?`
  const ownJobs = connection.query<OwnJob>`SELECT ${columns}, node, item FROM jobs WHERE execution = ?`
  const someItems = connection.query<OwnJob>`SELECT ${columns}, node, item FROM jobs WHERE execution = ? AND item >= 0
    LIMIT ?`
  const someJobs = connection.query<OwnJob>`SELECT ${columns}, node, item FROM jobs WHERE execution = ? LIMIT ?`
  const drops = [
    'DELETE FROM execution_plans WHERE execution = ?',
    'DELETE FROM execution_items WHERE execution = ?',
    'DELETE FROM execution_nodes WHERE execution = ?',
    'DELETE FROM events WHERE execution = ?',
    'DELETE FROM executions WHERE number = ?',
  ].map(sql => connection.prepare(sql))
  const unfinished = connection.query<
    Pick<JobRow, 'number' | 'organizationId' | 'id' | 'modelId' | 'rank' | 'status' | 'boot' | 'claims'> & {
      execution: number
      node: number
      item: number | null
    }
  >`SELECT ${columns}, model_id AS modelId, rank, boot, claims, execution, node, item FROM jobs WHERE organization_id = ?
    AND id = ? AND finished_at IS NULL AND execution IS NOT NULL AND node IS NOT NULL AND awaits IS NULL`
  const takeOver = connection.statement`UPDATE execution_nodes SET job_id = ?, cached = 1 WHERE execution = ?
    AND node = ?`
  const itemTakesOver = connection.statement`UPDATE execution_items SET job_id = ?, cached = 1 WHERE execution = ?
    AND node = ? AND item = ?`
  const withoutJob = connection.statement`UPDATE execution_nodes SET job_id = NULL WHERE execution = ? AND node = ?`
  const completed = connection.scalar<number>`SELECT 1 FROM jobs WHERE organization_id = ? AND id = ?
    AND status = 'completed'`

  /** Removes an execution. A job whose result another execution reuses is assigned to that execution. */
  function forget(row: ExecutionRow, at: number): number {
    const { number } = row
    reusedWork.assignLists(row)
    const jobs = ownJobs.all(number)
    for (const job of jobs) reusedWork.forgetOrAssign(job, number, at)
    events.insert()
    for (const drop of drops) drop.run(number)
    return jobs.length
  }

  /** The job of a node that can be removed: it waits, or runs under the claim. */
  function removableJob(organizationId: string, jobId: string, claim: Pick<JobClaim, 'boot' | 'claims'> | undefined) {
    const own = unfinished.get(organizationId, jobId)
    if (!own) return undefined
    const runs = own.status === 'processing'
    const isRemovable = claim ? runs && own.boot === claim.boot && own.claims === claim.claims : !runs
    return isRemovable ? { ...own, runs } : undefined
  }

  function removeJob(own: NonNullable<ReturnType<typeof removableJob>>, at: number): void {
    forgetJob(own, at)
    if (own.runs) effects.add('withdrawn', waitingOf({ ...own, class: 'workflow' }))
  }

  /**
   * What an execution has of the node that runs it; or why it cannot run there. `around`, `workflows`: the executions around
   * it and their workflows, which wait for it, so that it must not wait for them.
   */
  function parentOf({ organizationId, definition }: NewExecution, { id }: ParentJob) {
    const job = nestingJob.get(organizationId, id)
    if (!job) return conflict(`The job ${id}, which runs this execution, has ended.`)
    const around = flow.around(job.execution)
    const outer = around.map(number => facts.get(number))
    const depth = (outer[0]?.depth ?? 0) + 1
    if (depth > maxDepth)
      return invalid(
        'workflow',
        `The workflow '${definition.name}' cannot run here: workflows are nested at most ${maxDepth} deep.`,
      )
    const columns = { parentExecution: job.execution, parentNode: job.node, parentJob: id, depth }
    return { columns, job: job.number, around, workflows: new Set(outer.map(one => one?.workflowId)) }
  }

  function setParentAside(
    { organizationId, createdAt: at }: NewExecution,
    { id, claim }: ParentJob,
    job: number,
  ): void {
    // Thrown, so that nothing of the execution is kept.
    if (!setAside(organizationId, id, { awaits: 'execution', at, ...(claim ? { claim } : {}) }))
      throw conflict(`The job ${id} no longer waits for an execution.`)
    begin.run(at, job)
  }

  return {
    /** Null if stored, otherwise the id of the execution that the same key created before. */
    addExecution(execution: NewExecution): string | null | Failure {
      const { parentJob } = execution
      const known = parentJob && nestedOf.get(execution.organizationId, parentJob.id)
      if (known !== undefined) return known
      const holder = keys.assign(execution)
      if (holder !== undefined) return holder
      const reached = execution.limits && use.forbidsJobs(execution.organizationId, execution.limits)
      if (reached) {
        keys.release(execution)
        return limitFailure(reached)
      }
      const { createdAt: at, definition, nodes } = execution
      for (const { nodeId, reuses } of nodes)
        if (reuses !== null && completed.get(execution.organizationId, reuses) === undefined)
          throw conflict(
            `The result of node '${nodeId}' was deleted meanwhile. Retry from the start, or from that node.`,
          )
      const completedAtOnce = nodes.every(({ reuses }) => reuses !== null)
      const parent = parentJob ? parentOf(execution, parentJob) : undefined
      if (parent instanceof Failure) return parent
      const startsAtOnce = completedAtOnce || parent?.workflows.has(execution.workflowId)
      const admittance = startsAtOnce ? 'start' : queue.admit(execution, parent?.around)
      if (admittance instanceof Failure) {
        keys.release(execution)
        return admittance
      }
      if (parent) setParentAside(execution, parentJob!, parent.job)
      const queued = admittance === 'queue'
      const plan: StoredPlanNode[] = nodes.map(node => ({ ...node, reuses: undefined, keepsItems: undefined }))
      const { dag, onFailure } = definition
      const { lastInsertRowid } = insert({
        ...execution,
        onFailure,
        status: 'pending',
        parentId: execution.parentExecutionId,
        updatedAt: at,
        nodes: nodes.length,
        queued,
        ...parent?.columns,
        depth: parent?.columns.depth ?? 0,
        continues: execution.continues ?? false,
        completed: nodes.filter(hasResult).length,
      })
      if (execution.webhook) outbox.ownAdded()
      const number = Number(lastInsertRowid)
      insertPlan({ ...execution, execution: number, definition: { ...definition, dag: undefined }, plan, dag })
      for (const [node, planned] of nodes.entries()) {
        const { reuses, keepsItems, ...facts } = planned
        const status = hasResult(planned) ? 'completed' : 'pending'
        insertNode({ ...facts, execution: number, node, status, jobId: reuses, cached: reuses !== null, at })
        if (keepsItems) reusedWork.keepItems({ execution: number, node, nodeId: planned.nodeId, at }, execution)
      }
      flow.advance(number, { type: 'created', queued, at })
      return null
    },

    /** False: the organization has no such execution. */
    cancelExecution(organizationId: string, id: string, at: number): boolean {
      const row = one.get(organizationId, id)
      if (!row || row.status === 'cancelled') return row !== undefined
      if (!unfinishedStatuses.has(row.status))
        throw new Failure('execution_already_finished', `The execution ${id} has already ended: it is ${row.status}.`)
      flow.advance(row.number, { type: 'cancelled', at })
      return true
    },

    /** Returns the executions that have ended now. */
    expireExecutions(now: number, limit: number): RowKey[] {
      const rows = late.all(now, limit)
      eachRow(
        rows,
        ({ number }) => flow.advance(number, { type: 'timed_out', at: now }),
        ({ number }) => giveUpExecution(number, now),
      )
      return rows.map(({ organizationId, id }) => ({ organizationId, id }))
    },

    ...({
      'executions.remove'(organizationId, id, at) {
        const row = one.get(organizationId, id)
        if (!row) return undefined
        if (unfinishedStatuses.has(row.status))
          throw conflict(`The execution ${id} is ${row.status}. Cancel it before you delete it.`)
        const parent = parentJob.get(row.number)
        if (parent !== undefined)
          throw conflict(
            `The execution ${id} was run by a node of another one, whose result (job ${parent}) has its files. Delete that execution first.`,
          )
        forget(row, at)
        return true
      },

      /**
       * Returns how many were removed. Stops early after large ones, because other commands wait for the writer
       * meanwhile.
       */
      'executions.removeItems'(organizationId, id, at, limit) {
        const row = one.get(organizationId, id)
        if (!row || unfinishedStatuses.has(row.status)) return 0
        reusedWork.assignLists(row)
        const jobs = someItems.all(row.number, limit)
        for (const job of jobs) reusedWork.forgetOrAssign(job, row.number, at)
        return jobs.length
      },

      'executions.sweep'(now, limit) {
        let jobs = 0
        const forgotten = new Set<number>()
        eachRow(
          over.all(now, limit),
          row => {
            if (jobs >= maxForgotten) return
            reusedWork.assignLists(row)
            const items = someJobs.all(row.number, maxForgotten)
            jobs += items.length
            for (const job of items) reusedWork.forgetOrAssign(job, row.number, now)
            // Of an execution with more items the rest is removed by the next sweep.
            if (items.length < maxForgotten) jobs += forget(row, now)
            forgotten.add(row.number)
          },
          ({ number }) => neverExpires.run(number),
        )
        return forgotten.size
      },

      'executions.reuse'(organizationId, jobId, from) {
        const own = removableJob(organizationId, jobId, from.claim)
        if (!own || completed.get(organizationId, from.jobId) === undefined) return false
        const { execution, node, item, runs } = own
        const { at } = from
        flow.load(execution)
        removeJob(own, at)
        if (item === null) {
          takeOver.run(from.jobId, execution, node)
          flow.advance(execution, { type: 'result_reused', node, ran: runs, at })
        } else {
          itemTakesOver.run(from.jobId, execution, node, item)
          flow.advance(execution, { type: 'item_ended', node, item, status: 'completed', ran: runs, at })
        }
        return true
      },

      'executions.skip'(organizationId, jobId, { at, claim }) {
        const own = removableJob(organizationId, jobId, claim)
        if (!own) return false
        removeJob(own, at)
        withoutJob.run(own.execution, own.node)
        flow.advance(own.execution, { type: 'condition_false', node: own.node, ran: own.runs, at })
        return true
      },
    } satisfies Statements),
  }
}
