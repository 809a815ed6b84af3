/**
 * How an execution goes on: pure, and the same wherever it runs. Nodes are numbered in the order of the definition.
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

/** What of an execution never changes. */
export interface Plan {
  nodes: readonly PlannedNode[]
  /** Whether the first failure ends what has not begun, or only what comes after it. */
  onFailure: 'fail_fast' | 'continue'
}
export interface PlannedNode {
  successors: readonly number[]
  /** How many nodes must end well before it. */
  predecessors: number
  /** With `continue` its failure is taken for an end like any other. */
  onError: 'fail' | 'continue'
}

/** Where an execution stands; changed by the functions below and by nobody else. */
export interface Standing {
  status: NodeStatus[]
  /** Of each node, how many before it have not ended well yet. */
  missing: number[]
  /** Nodes that have not ended. */
  open: number
}

/** What follows from an event, in the order of the nodes. */
export interface Consequences {
  /** Their jobs are to be made. */
  release: number[]
  /** They will not run. Those that were ready have a job that must be withdrawn. */
  skip: number[]
  /** How the execution has ended; null while it goes on. */
  ended: 'completed' | 'failed' | null
}

const over: ReadonlySet<NodeStatus> = new Set(['completed', 'failed', 'skipped', 'cancelled', 'timed_out'])
export const isOver = (status: NodeStatus): boolean => over.has(status)

/** The beginning: what needs nothing is ready. `done` are nodes whose results another execution has already. */
export function begin(plan: Plan, done: ReadonlySet<number> = new Set()): Standing & Consequences {
  const standing: Standing = {
    status: plan.nodes.map((_, node) => (done.has(node) ? 'completed' : 'pending')),
    missing: plan.nodes.map(({ predecessors }) => predecessors),
    open: plan.nodes.length - done.size,
  }
  for (const node of done) for (const after of plan.nodes[node]!.successors) standing.missing[after]!--
  const release: number[] = []
  for (const [node, status] of standing.status.entries())
    if (status === 'pending' && standing.missing[node] === 0) {
      standing.status[node] = 'ready'
      release.push(node)
    }
  return { ...standing, release, skip: [], ended: standing.open === 0 ? 'completed' : null }
}

/** A node has ended, well or not. One that has ended before changes nothing. */
export function advance(plan: Plan, standing: Standing, node: number, how: 'completed' | 'failed'): Consequences {
  const { status, missing } = standing
  const none: Consequences = { release: [], skip: [], ended: null }
  if (isOver(status[node]!)) return none
  status[node] = how
  standing.open--
  const { onError, successors } = plan.nodes[node]!
  const release: number[] = []
  let skip: number[] = []
  if (how === 'completed' || onError === 'continue') {
    for (const after of successors)
      if (--missing[after]! === 0 && status[after] === 'pending') {
        status[after] = 'ready'
        release.push(after)
      }
  } else {
    skip = plan.onFailure === 'fail_fast' ? unbegun(status) : descendants(plan, status, node)
    for (const one of skip) status[one] = 'skipped'
    standing.open -= skip.length
  }
  release.sort((a, b) => a - b)
  return { release, skip, ended: standing.open === 0 ? endOf(plan, standing) : null }
}

const unbegun = (status: readonly NodeStatus[]): number[] =>
  [...status.keys()].filter(node => status[node] === 'pending' || status[node] === 'ready')

/** What can only run after the node: none of it has begun. */
function descendants(plan: Plan, status: readonly NodeStatus[], from: number): number[] {
  const found = new Set<number>()
  const open = [from]
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const after of plan.nodes[node]!.successors)
      if (!found.has(after) && !isOver(status[after]!)) open.push((found.add(after), after))
  return [...found].sort((a, b) => a - b)
}

const endOf = ({ nodes }: Plan, { status }: Standing): 'completed' | 'failed' =>
  status.some((one, node) => one === 'failed' && nodes[node]!.onError === 'fail') ? 'failed' : 'completed'
