import type { Api, Client } from '../client/client.ts'
import type { SseEvent } from '../client/http.ts'
import { type JobSnapshot, unknownSnapshot } from '../jobs/follow.ts'
import { eventData, type FollowOptions, followToEnd } from '../jobs/follow-to-end.ts'
import { type Execution, type ExecutionNode, isOver } from './execution.ts'

/** Follows an execution until it ends in any state, and resolves with its record. */
export async function followExecution(
  connect: () => Client,
  id: string,
  following: FollowOptions<ExecutionSnapshot>,
): Promise<Execution> {
  const { now = () => performance.now(), onChange } = following
  let last = unknownExecution
  const { execution } = await followToEnd<Api['ExecutionAnswer'], ExecutionSnapshot>(
    connect,
    {
      path: `/api/workflow-executions/${id}`,
      read: ({ api }, signal) => api.GET('/api/workflow-executions/{id}', { params: { path: { id } }, signal }),
      before: unknownExecution,
      afterEvent: (before, event) => afterEvent(before, event, now()),
      snapshotOf: answer => executionSnapshot(last, answer.execution, now()),
      isOver: ({ status }) => isOver(status),
      timeoutMessage: `The execution ${id} has not ended after 30 minutes of polling and is still running. Follow it again: infer execution watch ${id}`,
    },
    {
      ...following,
      onChange(snapshot) {
        last = snapshot
        onChange(snapshot)
      },
    },
  )
  return execution
}

/**
 * The state of a node at one time. `since` is when it began to wait or to run, `until` when it ended, in milliseconds
 * of the caller's monotonic clock.
 */
export interface NodeSnapshot extends JobSnapshot {
  cached: boolean
  pinned: boolean
  error: string | null
  since: number | null
  until: number | null
  /** Duration as the server reports it. */
  durationMs: number | null
  /** How many items it has and how many of them have ended; null for a node without. */
  items: ExecutionNode['items']
}

/** The state of an execution and its nodes, in order, at one time. */
export interface ExecutionSnapshot {
  status: string
  nodes: ReadonlyMap<string, NodeSnapshot>
}

export const unknownExecution: ExecutionSnapshot = { status: 'pending', nodes: new Map() }

const unknownNode: NodeSnapshot = {
  ...unknownSnapshot,
  cached: false,
  pinned: false,
  error: null,
  since: null,
  until: null,
  durationMs: null,
  items: null,
}

/** Returns the snapshot of a record; keeps the times at which `before` first saw each state. */
export const executionSnapshot = (before: ExecutionSnapshot, execution: Execution, now: number): ExecutionSnapshot => ({
  status: execution.status,
  nodes: execution.nodes
    ? new Map(execution.nodes.map(node => [node.node_id, ofNode(before.nodes.get(node.node_id), node, now)]))
    : before.nodes,
})

/** What a record and an event about progress both tell of a node. */
type NodeProgress = Pick<ExecutionNode, 'progress' | 'waiting_for'> &
  Partial<Pick<ExecutionNode, 'queue_position' | 'items'>> & { status: string }

const progressOf = ({ status, progress, queue_position, waiting_for, items }: NodeProgress) => ({
  status,
  items: items ?? null,
  progress: progress ?? null,
  queuePosition: queue_position ?? null,
  etaSeconds: waiting_for?.eta_seconds ?? null,
  waitingFor: waiting_for ?? null,
})

const ofNode = (before: NodeSnapshot | undefined, node: ExecutionNode, now: number): NodeSnapshot =>
  changed(before, now, {
    ...progressOf(node),
    cached: node.cached ?? false,
    pinned: node.pinned ?? false,
    error: node.error?.message ?? null,
    durationMs: node.duration_ms ?? null,
  })

function changed(before: NodeSnapshot | undefined, now: number, facts: Partial<NodeSnapshot>): NodeSnapshot {
  const next = { ...(before ?? unknownNode), ...facts }
  // Progress, position and reason belong to the previous state.
  if (before && next.status !== before.status)
    for (const name of ['progress', 'queuePosition', 'etaSeconds', 'waitingFor'] as const)
      if (facts[name] === undefined) Object.assign(next, { [name]: null })
  if (!isOver(next.status) && next.status !== before?.status) next.since = next.status === 'pending' ? null : now
  next.until = isOver(next.status) ? (next.until ?? now) : null
  return next
}

/** What events tell, each a part of it. */
interface EventFacts {
  execution?: Partial<Execution>
  node_id?: string
  /** The item of the node that it is about; absent if it is about the node. */
  item?: number
  error?: { message: string } | null
  nodes?: (NodeProgress & { node_id: string })[]
}

/** The state of a node after each event. */
const nodeAfter: Record<string, string> = {
  started: 'running',
  retrying: 'ready',
  waiting: 'waiting',
  completed: 'completed',
  cached: 'completed',
  pinned: 'completed',
  failed: 'failed',
  skipped: 'skipped',
  cancelled: 'cancelled',
}

/** Returns the snapshot after an event; undefined for an unknown event, which a newer server may send. */
export function afterEvent(before: ExecutionSnapshot, event: SseEvent, now: number): ExecutionSnapshot | undefined {
  const told: EventFacts | undefined = eventData(event)
  if (!told) return undefined
  const { execution, node_id: id, item, error, nodes } = told
  if (event.event === 'snapshot') return execution && executionSnapshot(before, execution as Execution, now)
  const all = new Map(before.nodes)
  for (const node of nodes ?? []) {
    const known = all.get(node.node_id)
    // Progress events are not ordered with the others: this one may be older than the end of the node.
    if (!known || !isOver(known.status)) all.set(node.node_id, changed(known, now, progressOf(node)))
  }
  const [, nodeEvent = ''] = /^workflow_execution\.node\.(\w+)$/.exec(event.event) ?? []
  const status = item === undefined ? nodeAfter[nodeEvent] : undefined
  if (id !== undefined && status !== undefined)
    all.set(
      id,
      changed(all.get(id), now, {
        status,
        error: error?.message ?? null,
        ...(nodeEvent === 'cached' || nodeEvent === 'pinned' ? { [nodeEvent]: true } : {}),
      }),
    )
  if (!nodes && status === undefined && execution?.status === undefined) return undefined
  return { status: execution?.status ?? before.status, nodes: all }
}
