import { type ExecutionPlan, type ExecutionState, isOver, type PlannedNode } from './execution-state.ts'

/**
 * The nodes that can start once the node has ended, and those that are skipped because it was, or because of each other;
 * both in the order of the definition.
 */
export function reachedBy(
  plan: ExecutionPlan,
  state: ExecutionState,
  from: number,
  wasSkipped: boolean,
): { ready: number[]; skipped: number[] } {
  const ready: number[] = []
  const skipped: number[] = []
  /** What the nodes that end now change. */
  const missing = new Map<number, number>()
  const absent = new Map<number, ReadonlySet<number>>()
  const absentFor = (after: number) => absent.get(after) ?? state.absent.get(after)
  const ended = [from]
  for (let node = ended.pop(); node !== undefined; node = ended.pop()) {
    const isAbsent = node !== from || wasSkipped
    for (const after of plan.nodes[node]!.successors) {
      if (state.nodes[after] !== 'pending') continue
      const left = (missing.get(after) ?? state.missing[after]!) - 1
      missing.set(after, left)
      if (isAbsent) absent.set(after, new Set(absentFor(after)).add(node))
      if (left > 0) continue
      if (runsWithout(plan.nodes[after]!, absentFor(after))) ready.push(after)
      else ended.push((skipped.push(after), after))
    }
  }
  const inOrder = (a: number, b: number) => a - b
  return { ready: ready.sort(inOrder), skipped: skipped.sort(inOrder) }
}

/** Whether a node runs without these predecessors, which were skipped; the others have ended well. */
function runsWithout({ join, optional = [], predecessors }: PlannedNode, absent: ReadonlySet<number> | undefined) {
  if (absent === undefined || (join === 'any' && absent.size < predecessors)) return true
  return [...absent].every(node => optional.includes(node))
}

/** The nodes that can only run after the node: none of them has started. */
export function descendants(plan: ExecutionPlan, { nodes }: ExecutionState, from: number): number[] {
  const found = new Set<number>()
  const open = [from]
  for (let node = open.pop(); node !== undefined; node = open.pop())
    for (const after of plan.nodes[node]!.successors)
      if (!found.has(after) && !isOver(nodes[after]!)) open.push((found.add(after), after))
  return [...found].sort((a, b) => a - b)
}
