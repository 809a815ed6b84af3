import type { CountChange, ExecutionWrite } from './advance.ts'
import {
  type ExecutionPlan,
  type ExecutionState,
  earlierFailure,
  type NodeStatus,
  type SkipReason,
} from './execution-state.ts'
import { isWithoutRunningItems, withdrawItems } from './items.ts'
import { descendants, reachedBy } from './successors.ts'
import { announce, count, end, event, skip } from './writes.ts'

/**
 * What follows from the end of a node: jobs of its successors, or skipped nodes, and perhaps the end of the execution.
 */
export function following(
  plan: ExecutionPlan,
  state: ExecutionState,
  {
    node,
    how,
    at,
    slotOf,
  }: { node: number; how: 'completed' | 'failed' | 'skipped'; at: number; slotOf?: string | undefined },
  start: readonly ExecutionWrite[] = [],
): ExecutionWrite[] {
  const { onError } = plan.nodes[node]!
  const writes: ExecutionWrite[] = []
  let skipped: readonly number[]
  if (how !== 'failed' || onError === 'continue') {
    const reached = reachedBy(plan, state, node, how === 'skipped')
    const { ready } = reached
    ;({ skipped } = reached)
    writes.push(...skips(skipped, 'skipped_node'))
    const next = ready.find(after => plan.nodes[after]!.direct && plan.nodes[after]!.modelId === slotOf)
    for (const after of ready)
      if (after === next) writes.push({ write: 'create_job', node: after, takesSlotOf: node }, count({ running: 1 }))
      else writes.push({ write: 'create_job', node: after, takesSlotOf: null })
  } else {
    skipped = plan.onFailure === 'fail_fast' ? notRunning(state, node) : descendants(plan, state, node)
    writes.push(...skips(skipped, 'failure', state))
    if (plan.onFailure === 'fail_fast')
      for (const list of state.items.keys())
        if (list !== node && !skipped.includes(list)) writes.push(...withdrawItems(state, list, { onlyIdle: true }))
  }
  const ended = state.open === 1 + skipped.length
  if (!ended) return [...writes, announce(start)]
  const failed = how === 'failed' && onError === 'fail' ? { node, at } : null
  const first = earlierFailure(state.firstFailure, failed)
  const now = how === 'skipped' ? [node, ...skipped] : skipped
  const failure = first && failedNodes(state, first.node, how === 'failed' ? node : null, now)
  const status = failure ? 'failed' : 'completed'
  return [...writes, end(status, failure), event(status), announce(start, true)]
}

/** A failure has stopped the execution, and this node would only wait: it is skipped. */
export const stoppedNode = (plan: ExecutionPlan, state: ExecutionState, node: number, at: number): ExecutionWrite[] => [
  ...skips([node], 'failure', state),
  ...following(plan, state, { node, how: 'skipped', at }),
]

/** The writes that skip nodes of which nothing runs; those that are pending have no job. */
export function skips(nodes: readonly number[], reason: SkipReason, state?: ExecutionState): ExecutionWrite[] {
  if (nodes.length === 0) return []
  const running = nodes.filter(node => state?.nodes[node] === 'running').length
  const fewer = { ...(running > 0 ? { running: -running } : {}), ...(state && noLongerWaiting(state, nodes)) }
  const writes: ExecutionWrite[] = [count({ skipped: nodes.length, ...fewer })]
  for (const node of nodes) {
    if (state) writes.push(...withdrawItems(state, node))
    writes.push(skip(node, reason), event('node.skipped', node))
    if (state && state.nodes[node] !== 'pending') writes.push({ write: 'withdraw_job', node })
  }
  return writes
}

function failedNodes(state: ExecutionState, first: number, last: number | null, skipped: readonly number[]) {
  const now = new Set(skipped)
  const select = (status: NodeStatus, also: (node: number) => boolean): number[] =>
    [...state.nodes.keys()].filter(node => state.nodes[node] === status || also(node))
  return {
    node: first,
    failed: select('failed', node => node === last),
    skipped: select('skipped', node => now.has(node)),
  }
}

/** What the end of these nodes changes in the count of waiting ones. */
export function noLongerWaiting({ nodes }: ExecutionState, ended: readonly number[]): CountChange {
  const waiting = ended.filter(node => nodes[node] === 'waiting').length
  return waiting === 0 ? {} : { waiting: -waiting }
}

/** Whether a node has a job that does not run. */
const hasIdleJob = (status: NodeStatus): boolean => status === 'ready' || status === 'waiting'

/** The nodes of which nothing runs: also lists that wait for items, none of which runs. */
function notRunning({ nodes, items }: ExecutionState, except: number): number[] {
  const isIdle = (node: number): boolean => {
    if (nodes[node] === 'pending' || hasIdleJob(nodes[node]!)) return true
    const those = nodes[node] === 'running' ? items.get(node) : undefined
    return those !== undefined && isWithoutRunningItems(those)
  }
  return [...nodes.keys()].filter(node => node !== except && isIdle(node))
}
