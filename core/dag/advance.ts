/**
 * The state machine of an execution: what follows from an event, as plain data for a store to write down. Pure: the
 * time is in the event. Nodes are numbered in the order of the definition.
 *
 * A node is `pending` until all before it have ended well, `ready` while its job waits, `running` while it runs.
 */
export const nodeStatuses = [
  'pending',
  'ready',
  'running',
  'completed',
  'failed',
  'skipped',
  'cancelled',
  'timed_out',
] as const
export type NodeStatus = (typeof nodeStatuses)[number]

export const executionStatuses = ['pending', 'running', 'completed', 'failed', 'cancelled', 'timed_out'] as const
export type ExecutionStatus = (typeof executionStatuses)[number]
export type EndStatus = Exclude<ExecutionStatus, 'pending' | 'running'>

/** What of an execution never changes. */
export interface Plan {
  nodes: readonly PlannedNode[]
  /** Whether the first failure ends what has not begun, or only what comes after it. */
  onFailure: 'fail_fast' | 'continue'
  /** Milliseconds from when its first node begins. */
  timeoutMs: number
}
export interface PlannedNode {
  modelId: string
  successors: readonly number[]
  /** How many nodes must end well before it. */
  predecessors: number
  /** With `continue` its failure is taken for an end like any other. */
  onError: 'fail' | 'continue'
  /** Its job may begin at once: no result of the same work has to be looked for before. */
  direct: boolean
}

/** How an execution is doing: read by `advance`, changed by `applyWrites` alone (see execution-state.ts). */
export interface ExecutionState {
  status: ExecutionStatus
  nodes: NodeStatus[]
  /** Of each node, how many before it have not ended well yet. */
  missing: number[]
  /** How many nodes have not ended. */
  open: number
  /** The earliest failure of a node with `onError: 'fail'`. */
  firstFailure: { node: number; at: number } | null
}

/** What happens to an execution, with its time in epoch milliseconds. */
export type ExecutionInput = { at: number } & (
  | { type: 'created' | 'cancelled' | 'timed_out' }
  | { type: 'job_started' | 'job_requeued'; node: number }
  | {
      type: 'job_ended'
      node: number
      status: 'completed' | 'failed' | 'cancelled'
      /** Whether the job was running until now. */
      ran: boolean
      spent?: Spent
      /** The model of the slot that is kept for a job that follows; absent where none is kept. */
      slotOf?: string | undefined
    }
  /** The node takes over the result of another job; `ran`: its own job was running until now. */
  | { type: 'result_reused'; node: number; ran: boolean }
)
export interface Spent {
  inputTokens: number
  outputTokens: number
  cost: number
}

/** How many nodes more, or fewer, are in each group, and what was spent. Skipped ones include the cancelled, failed ones the timed out. */
export type CountChange = Partial<Record<'running' | 'completed' | 'failed' | 'skipped', number>> & Partial<Spent>

/** One thing to write down, in the order in which the writes are given. */
export type ExecutionWrite =
  /** The first node begins: the time of the execution counts from now on. */
  | { write: 'start'; timeoutAt: number }
  | { write: 'end'; status: EndStatus; failure: FailedNodes | null }
  | { write: 'node'; node: number; status: Exclude<NodeStatus, 'pending'> }
  /** The job of a ready node: it waits, or runs at once on the slot that the job of another node has kept for it. */
  | { write: 'create_job'; node: number; takesSlotOf: number | null }
  /** The job of the node is not to run any more. */
  | { write: 'withdraw_job'; node: number }
  | { write: 'count'; by: CountChange }
  | { write: 'event'; event: ExecutionEventName; node: number | null }
  /** What others are told after the commit. */
  | { write: 'announce'; ended: boolean; timeoutAt?: number | undefined }

export type ExecutionEventName = 'created' | 'started' | EndStatus | 'node.skipped' | 'node.cached'

/** What an execution has failed of: the first failure, and all nodes that have failed or were skipped. */
export interface FailedNodes {
  node: number
  failed: number[]
  skipped: number[]
}

const over: ReadonlySet<NodeStatus> = new Set(['completed', 'failed', 'skipped', 'cancelled', 'timed_out'])
/** Whether a node has ended, however. */
export const isOver = (status: NodeStatus): boolean => over.has(status)

/** What follows from an input, in the order in which it is written. The state is not changed; nothing follows twice. */
export function advance(plan: Plan, state: ExecutionState, input: ExecutionInput): ExecutionWrite[] {
  switch (input.type) {
    case 'created':
      return created(plan, state, input.at)
    case 'cancelled':
    case 'timed_out':
      return stopped(state, input.type)
    case 'job_started': {
      const start = started(plan, state, input.at)
      return [nodeWrite(input.node, 'running'), count({ running: 1 }), ...start, announce(start)]
    }
    case 'job_requeued': {
      const waits = state.nodes[input.node] === 'running' ? [nodeWrite(input.node, 'ready')] : []
      return [count({ running: -1 }), ...waits, announce()]
    }
    case 'job_ended':
      return jobEnded(plan, state, input)
    case 'result_reused': {
      const { node, at } = input
      const start = started(plan, state, at)
      return [
        count({ running: input.ran ? -1 : 0, completed: 1 }),
        ...start,
        nodeWrite(node, 'completed'),
        event('node.cached', node),
        ...following(plan, state, { node, how: 'completed', at }, start),
      ]
    }
  }
}

function created(plan: Plan, state: ExecutionState, at: number): ExecutionWrite[] {
  const jobs = [...plan.nodes.keys()].filter(node => state.nodes[node] === 'pending' && state.missing[node] === 0)
  const first = jobs.map((node): ExecutionWrite => ({ write: 'create_job', node, takesSlotOf: null }))
  if (state.open > 0) return [event('created'), ...first, announce()]
  // Every result was there already.
  const start = started(plan, state, at)
  return [event('created'), ...start, end('completed'), event('completed'), announce(start, true)]
}

function jobEnded(
  plan: Plan,
  state: ExecutionState,
  { node, status, ran, spent, slotOf, at }: Extract<ExecutionInput, { type: 'job_ended' }>,
): ExecutionWrite[] {
  if (isOver(state.nodes[node]!)) return []
  const how = status === 'completed' ? 'completed' : 'failed'
  return [
    count({ running: ran ? -1 : 0, [how]: 1, ...spent }),
    nodeWrite(node, how),
    ...following(plan, state, { node, how, at, slotOf }),
  ]
}

/** What follows from the end of a node: jobs of its successors, or what is skipped, and perhaps the end of all. */
function following(
  plan: Plan,
  state: ExecutionState,
  { node, how, at, slotOf }: { node: number; how: 'completed' | 'failed'; at: number; slotOf?: string | undefined },
  start: readonly ExecutionWrite[] = [],
): ExecutionWrite[] {
  const { onError, successors } = plan.nodes[node]!
  const writes: ExecutionWrite[] = []
  let skipped: number[] = []
  if (how === 'completed' || onError === 'continue') {
    const ready = successors.filter(after => state.missing[after] === 1 && state.nodes[after] === 'pending')
    ready.sort((a, b) => a - b)
    const next = ready.find(after => plan.nodes[after]!.direct && plan.nodes[after]!.modelId === slotOf)
    for (const after of ready)
      if (after === next) writes.push({ write: 'create_job', node: after, takesSlotOf: node }, count({ running: 1 }))
      else writes.push({ write: 'create_job', node: after, takesSlotOf: null })
  } else {
    skipped = plan.onFailure === 'fail_fast' ? unbegun(state, node) : descendants(plan, state, node)
    if (skipped.length > 0) writes.push(count({ skipped: skipped.length }))
    for (const one of skipped) {
      writes.push(nodeWrite(one, 'skipped'), event('node.skipped', one))
      if (state.nodes[one] === 'ready') writes.push({ write: 'withdraw_job', node: one })
    }
  }
  const ended = state.open === 1 + skipped.length
  if (!ended) return [...writes, announce(start)]
  const failed = how === 'failed' && onError === 'fail' ? { node, at } : null
  const first = earlierFailure(state.firstFailure, failed)
  const failure = first && failedNodes(state, first.node, how === 'failed' ? node : null, skipped)
  const status = failure ? 'failed' : 'completed'
  return [...writes, end(status, failure), event(status), announce(start, true)]
}

function stopped(state: ExecutionState, how: 'cancelled' | 'timed_out'): ExecutionWrite[] {
  if (state.open === 0) return []
  const writes: ExecutionWrite[] = []
  const by = { running: 0, failed: 0, skipped: 0 }
  for (const [node, before] of state.nodes.entries()) {
    if (isOver(before)) continue
    const after = how === 'timed_out' && before === 'running' ? 'timed_out' : 'cancelled'
    by[after === 'timed_out' ? 'failed' : 'skipped']++
    if (before === 'running') by.running--
    writes.push(nodeWrite(node, after))
    if (before !== 'pending') writes.push({ write: 'withdraw_job', node })
  }
  return [...writes, count(by), end(how), event(how), announce([], true)]
}

/** The first node begins. */
const started = ({ timeoutMs }: Plan, { status }: ExecutionState, at: number): ExecutionWrite[] =>
  status === 'pending' ? [{ write: 'start', timeoutAt: at + timeoutMs }, event('started')] : []

const count = (by: CountChange): ExecutionWrite => ({ write: 'count', by })
const nodeWrite = (node: number, status: Exclude<NodeStatus, 'pending'>): ExecutionWrite => ({
  write: 'node',
  node,
  status,
})
const event = (name: ExecutionEventName, node: number | null = null): ExecutionWrite => ({
  write: 'event',
  event: name,
  node,
})
const end = (status: EndStatus, failure: FailedNodes | null = null): ExecutionWrite => ({
  write: 'end',
  status,
  failure,
})
function announce([start]: readonly ExecutionWrite[] = [], ended = false): ExecutionWrite {
  return { write: 'announce', ended, timeoutAt: start?.write === 'start' ? start.timeoutAt : undefined }
}

/** The earlier of two failures; of two of the same time the one of the lower node. */
export function earlierFailure(
  a: ExecutionState['firstFailure'],
  b: ExecutionState['firstFailure'],
): ExecutionState['firstFailure'] {
  if (!a || !b) return a ?? b
  return b.at < a.at || (b.at === a.at && b.node < a.node) ? b : a
}

function failedNodes(state: ExecutionState, first: number, last: number | null, skipped: readonly number[]) {
  const now = new Set(skipped)
  const those = (status: NodeStatus, also: (node: number) => boolean): number[] =>
    [...state.nodes.keys()].filter(node => state.nodes[node] === status || also(node))
  return {
    node: first,
    failed: those('failed', node => node === last),
    skipped: those('skipped', node => now.has(node)),
  }
}

const unbegun = ({ nodes }: ExecutionState, except: number): number[] =>
  [...nodes.keys()].filter(node => node !== except && (nodes[node] === 'pending' || nodes[node] === 'ready'))

/** What can only run after the node: none of it has begun. */
function descendants(plan: Plan, { nodes }: ExecutionState, from: number): number[] {
  const found = new Set<number>()
  const open = [from]
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const after of plan.nodes[node]!.successors)
      if (!found.has(after) && !isOver(nodes[after]!)) open.push((found.add(after), after))
  return [...found].sort((a, b) => a - b)
}
