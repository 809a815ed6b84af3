import { z } from 'zod'
import { optionalString, string } from '../../../core/schemas/fields.ts'
import type { ExecutionNode, ExecutionRecord } from '../../../core/store/workflows.ts'
import { beginning, follow, openChangeFlag, pageSize } from '../../http/answer/follow.ts'
import { openEventStream, resumeFrom } from '../../http/answer/sse.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { routeOf } from '../../http/request/route.ts'
import { isLastOfExecution, recordOf } from '../../views/execution-event.ts'
import { progressOfNodes, shownNode } from '../../views/execution-nodes.ts'
import { findExecution, shownExecution } from '../../views/execution-record.ts'
import { record, resumeText, snapshot } from '../../views/job-event.ts'

const route = routeOf({ tag: 'Events' })

type FollowOwners = Owners<'cpu' | 'executions' | 'files' | 'jobs'>

/** Returns the progress of nodes that run or wait. It is not stored, so it has no event id. */
async function progressOf(
  execution: ExecutionRecord,
  nodes: readonly ExecutionNode[],
  exchange: ClientExchange,
  owners: FollowOwners,
): Promise<string> {
  const progresses = await progressOfNodes(nodes, exchange, owners)
  const live = nodes.filter(({ nodeId }) => progresses.has(nodeId))
  const shown = live.map(node => {
    const { node_id, status, progress, queue_position, waiting_for } = shownNode(
      node,
      exchange,
      progresses.get(node.nodeId),
    )
    return { node_id, status, progress, queue_position, waiting_for }
  })
  return JSON.stringify({ execution_id: execution.id, progress: execution.progress, nodes: shown })
}

async function followExecution(exchange: ClientExchange, owners: FollowOwners): Promise<void> {
  const { executions, jobs } = owners
  const { organizationId } = exchange.caller
  const { id } = await findExecution(exchange.params.id!, exchange, owners)
  const resume = resumeFrom(exchange)
  const stream = await openEventStream(exchange)
  const from = await beginning(resume, owners)
  const changes = openChangeFlag()
  const stop = executions.follow(id, changes.set)
  void stream.over.then(changes.set)
  /** Jobs whose progress is followed, with the functions that end that. */
  const followed = new Map<string, () => void>()
  let lastProgress = ''

  function followJobs(nodes: readonly ExecutionNode[]): void {
    const live = new Set(nodes.flatMap(({ status, jobId }) => (status === 'running' && jobId ? [jobId] : [])))
    for (const [job, unfollow] of followed)
      if (!live.has(job)) {
        unfollow()
        followed.delete(job)
      }
    for (const job of live) if (!followed.has(job)) followed.set(job, jobs.follow(job, changes.set))
  }

  try {
    // Read after the position in the log, so that an event in between is reported twice and never missed.
    const first = await findExecution(id, exchange, owners)
    const shown = await shownExecution(first, exchange, owners, { withNodes: true })
    const tasks = new Map(Object.entries(first.definition.dag.nodes).map(([node, { task }]) => [node, task]))
    stream.send(snapshot(from, JSON.stringify({ execution: shown })))
    await follow({
      exchange,
      stream,
      from,
      page: sequence => executions.events.ofExecution(organizationId, { sequence, executionId: id, limit: pageSize }),
      wait: changes.wait,
      async take(event) {
        const eventRecord = await recordOf(event, tasks, exchange, owners)
        if (eventRecord) stream.send(eventRecord)
        return !isLastOfExecution(event.type)
      },
      async idle() {
        const execution = await executions.summary(organizationId, id)
        // The execution ended before the position from which the reader resumes, or was deleted.
        if (!execution || execution.finishedAt !== null) return false
        const nodes = await executions.nodes(organizationId, id)
        followJobs(nodes)
        const progress = await progressOf(execution, nodes, exchange, owners)
        if (progress !== lastProgress)
          stream.send(record('workflow_execution.node.progress', Date.now(), undefined, progress))
        lastProgress = progress
        return true
      },
    })
  } finally {
    stop()
    for (const unfollow of followed.values()) unfollow()
    stream.end()
  }
}

export const executionEventRoutes = (owners: FollowOwners) => [
  route('GET /api/workflow-executions/:id/events', 'user:read', {
    eventStream: true,
    summary: 'Stream events of execution',
    description:
      'The answer is a stream of server-sent events of an execution and its nodes, until its end. The first event is `snapshot`. The others have an id: send the last one as `Last-Event-ID` or `?after=` to continue after it, within 24 hours. If the token is revoked, expires or loses the scope, the stream ends within 2 s with an `error` event, whose code is `invalid_api_key` or `insufficient_scope`. Progress of nodes comes as `workflow_execution.node.progress`, without an id. Large results are left out: they are null in the snapshot, and absent in events. Read them with their node.',
    events: 'ExecutionEvent',
    errorCodes: ['not_found'],
    params: z.object({ id: string('Id of the execution: `exec_…`.') }),
    query: z.strictObject({ after: optionalString(resumeText) }),
    answer: exchange => followExecution(exchange, owners),
  }),
]
