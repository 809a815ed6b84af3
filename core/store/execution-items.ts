import type { ItemStatus } from '../dag/execution-state.ts'
import type { RowKey } from './store.ts'
import type { ExecutionNode } from './workflows.ts'

/** Numbers of items; those that were cancelled or have no job yet are in the total only. */
export interface ItemCounts {
  total: number
  completed: number
  failed: number
  running: number
  /** Those that wait for a person, an event, a time or another execution. */
  waiting: number
}

/** An item of a node with `for_each` that has a job, or had one. */
export interface ExecutionItem
  extends Omit<ExecutionNode, 'nodeId' | 'task' | 'modelId' | 'status' | 'pinned' | 'skipReason' | 'items'> {
  /** Its position in the list, from 0. */
  index: number
  status: ItemStatus
}

/** The job of a node. */
export interface NodeJob extends RowKey {
  executionId: string
  nodeId: string
}
