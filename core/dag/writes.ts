import type { CountChange, ExecutionEventName, ExecutionWrite, FailedNodes } from './advance.ts'
import type { EndStatus, ExecutionPlan, ExecutionState, NodeStatus, SkipReason } from './execution-state.ts'

/** Writes that several events of an execution lead to. */

/** The start of the execution, if this is its first node. */
export const started = ({ timeoutMs }: ExecutionPlan, { status }: ExecutionState, at: number): ExecutionWrite[] =>
  status === 'pending' ? [{ write: 'start', timeoutAt: at + timeoutMs }, event('started')] : []

export const count = (by: CountChange): ExecutionWrite => ({ write: 'count', by })
export const skip = (node: number, reason: SkipReason): ExecutionWrite => ({
  write: 'node',
  node,
  status: 'skipped',
  reason,
})
export const nodeWrite = (node: number, status: Exclude<NodeStatus, 'pending' | 'skipped'>): ExecutionWrite => ({
  write: 'node',
  node,
  status,
})
export const event = (name: ExecutionEventName, node: number | null = null): ExecutionWrite => ({
  write: 'event',
  event: name,
  node,
})
export const end = (status: EndStatus, failure: FailedNodes | null = null): ExecutionWrite => ({
  write: 'end',
  status,
  failure,
})
export function announce([start]: readonly ExecutionWrite[] = [], ended = false): ExecutionWrite {
  return { write: 'announce', ended, timeoutAt: start?.write === 'start' ? start.timeoutAt : undefined }
}
