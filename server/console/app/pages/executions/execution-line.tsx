import { BaseEdge, type EdgeProps, getBezierPath } from '@xyflow/react'
import { useNodeState } from './node-states.ts'

/** A line between two nodes, which moves while the second one works with what the first one gave. */
export function ExecutionLine({ id, target, ...ends }: EdgeProps) {
  const isRunning = useNodeState(target)?.status === 'running'
  return <BaseEdge id={id} path={getBezierPath(ends)[0]} className={isRunning ? 'running-line' : ''} />
}
