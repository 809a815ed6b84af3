import {
  type ExecutionPlan,
  type ExecutionState,
  type ExecutionWrite,
  earlierFailure,
  isOver,
  type NodeStatus,
} from './advance.ts'

/** The initial state of an execution. `reused`: nodes that reuse the results of another execution. */
export function newState(plan: ExecutionPlan, reused: ReadonlySet<number> = new Set()): ExecutionState {
  return restoredState(plan, {
    status: 'pending',
    nodes: plan.nodes.map((_, node) => ({ status: reused.has(node) ? 'completed' : 'pending', at: 0 })),
  })
}

/** The state of an execution from stored rows: the status of each node and when it was set. */
export function restoredState(
  plan: ExecutionPlan,
  stored: { status: ExecutionState['status']; nodes: readonly { status: NodeStatus; at: number }[] },
): ExecutionState {
  const state: ExecutionState = {
    status: stored.status,
    nodes: stored.nodes.map(({ status }) => status),
    missing: plan.nodes.map(({ predecessors }) => predecessors),
    open: 0,
    firstFailure: null,
  }
  for (const [node, { status, at }] of stored.nodes.entries())
    if (isOver(status)) ended(plan, state, node, at)
    else state.open++
  return state
}

/** Applies the writes of `advance` to the state, so that it equals what the store now holds. */
export function applyWrites(
  plan: ExecutionPlan,
  state: ExecutionState,
  writes: readonly ExecutionWrite[],
  at: number,
): void {
  for (const one of writes)
    if (one.write === 'start') state.status = 'running'
    else if (one.write === 'end') state.status = one.status
    else if (one.write === 'create_job') state.nodes[one.node] = one.takesSlotOf === null ? 'ready' : 'running'
    else if (one.write === 'node') {
      state.nodes[one.node] = one.status
      if (!isOver(one.status)) continue
      state.open--
      ended(plan, state, one.node, at)
    }
}

/** Counts the end of a node for its successors. */
function ended(plan: ExecutionPlan, state: ExecutionState, node: number, at: number): void {
  const status = state.nodes[node]
  const { onError, successors } = plan.nodes[node]!
  if (status === 'completed' || (status === 'failed' && onError === 'continue'))
    for (const after of successors) state.missing[after]!--
  else if (status === 'failed') state.firstFailure = earlierFailure(state.firstFailure, { node, at })
}
