import { z } from 'zod'
import type { SseEvent } from '../client/sse.ts'
import type { JobSnapshot } from '../jobs/job-snapshot.ts'
import { Execution, type ExecutionNode, isOver } from './execution.ts'

/**
 * The state of a node at one time. `since` is when it began to wait or to run, `until` when it ended, in milliseconds
 * of the caller's monotonic clock.
 */
export interface NodeSnapshot extends JobSnapshot {
  cached: boolean
  error: string | null
  since: number | null
  until: number | null
  /** Duration as the server reports it. */
  durationMs: number | null
}

/** The state of an execution and its nodes, in order, at one time. */
export interface ExecutionSnapshot {
  status: string
  nodes: ReadonlyMap<string, NodeSnapshot>
}

export const unknownExecution: ExecutionSnapshot = { status: 'pending', nodes: new Map() }

const unknownNode: NodeSnapshot = {
  status: 'pending',
  progress: null,
  queuePosition: null,
  etaSeconds: null,
  waitingFor: null,
  cached: false,
  error: null,
  since: null,
  until: null,
  durationMs: null,
}

/** Returns the snapshot of a record; keeps the times at which `before` first saw each state. */
export const executionSnapshot = (before: ExecutionSnapshot, execution: Execution, now: number): ExecutionSnapshot => ({
  status: execution.status,
  nodes: execution.nodes
    ? new Map(execution.nodes.map(node => [node.node_id, ofNode(before.nodes.get(node.node_id), node, now)]))
    : before.nodes,
})

const ofNode = (before: NodeSnapshot | undefined, node: ExecutionNode, now: number): NodeSnapshot =>
  changed(before, now, {
    status: node.status,
    progress: node.progress ?? null,
    queuePosition: node.queue_position ?? null,
    etaSeconds: node.waiting_for?.eta_seconds ?? null,
    waitingFor: node.waiting_for ? { reason: node.waiting_for.reason, detail: node.waiting_for.detail ?? '' } : null,
    cached: node.cached,
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

const NodeProgress = z.looseObject({
  node_id: z.string(),
  status: z.string(),
  progress: z.number().nullish(),
  queue_position: z.number().nullish(),
  waiting_for: z
    .looseObject({ reason: z.string(), detail: z.string().nullish(), eta_seconds: z.number().nullish() })
    .nullish(),
})
const Envelope = z.looseObject({
  data: z.looseObject({
    execution: Execution.partial().optional(),
    node_id: z.string().optional(),
    error: z.looseObject({ message: z.string() }).nullish(),
    nodes: z.array(NodeProgress).optional(),
  }),
})
const Snapshot = z.looseObject({ data: z.looseObject({ execution: Execution }) })

/** The state of a node after each event. */
const nodeAfter: Record<string, string> = {
  started: 'running',
  retrying: 'ready',
  completed: 'completed',
  cached: 'completed',
  failed: 'failed',
  skipped: 'skipped',
  cancelled: 'cancelled',
}

/** Returns the snapshot after an event; undefined for an unknown event, which a newer server may send. */
export function afterEvent(
  before: ExecutionSnapshot,
  { event, data }: SseEvent,
  now: number,
): ExecutionSnapshot | undefined {
  const body = parsed(data)
  if (event === 'snapshot') {
    const read = Snapshot.safeParse(body)
    return read.success ? executionSnapshot(before, read.data.data.execution, now) : undefined
  }
  const read = Envelope.safeParse(body)
  if (!read.success) return undefined
  const { execution, node_id: id, error, nodes } = read.data.data
  const all = new Map(before.nodes)
  if (nodes)
    for (const node of nodes) {
      const { status, progress, queue_position, waiting_for } = node
      const known = all.get(node.node_id)
      // Progress events are not ordered with the others: this one may be older than the end of the node.
      if (known && isOver(known.status)) continue
      const { cached = false, error: fault = null, durationMs = null } = known ?? {}
      const record = { ...node, task: '', model_id: '', cached, duration_ms: durationMs }
      const current = { ...record, status, progress, queue_position, waiting_for }
      all.set(node.node_id, { ...ofNode(known, current, now), error: fault })
    }
  const [, nodeEvent] = /^workflow_execution\.node\.(\w+)$/.exec(event) ?? []
  const status = nodeAfter[nodeEvent ?? '']
  if (id !== undefined && status !== undefined)
    all.set(
      id,
      changed(all.get(id), now, {
        status,
        error: error?.message ?? null,
        ...(nodeEvent === 'cached' ? { cached: true } : {}),
      }),
    )
  if (!nodes && status === undefined && execution?.status === undefined) return undefined
  return { status: execution?.status ?? before.status, nodes: all }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
