import type { NodeStatus } from '../../dag/advance.ts'
import type { JobError } from '../store.ts'
import type { ExecutionError } from '../workflows.ts'
import type { Connection } from './database.ts'
import { cancelledError } from './job-end.ts'

/** What an execution has failed of, once all its nodes have ended: the first failure that nobody bears, and all others. */
export function openFailureOf(connection: Connection) {
  const firstFailure = connection.prepare<[number], { node_id: string; task: string; error: string | null }>(
    `SELECT node_id, execution_nodes.task, jobs.error FROM execution_nodes
     LEFT JOIN jobs ON jobs.execution = execution_nodes.execution AND jobs.node = execution_nodes.node
     WHERE execution_nodes.execution = ? AND execution_nodes.status = 'failed' AND on_error = 'fail'
     ORDER BY execution_nodes.at, execution_nodes.node LIMIT 1`,
  )

  return (number: number, nodes: readonly { nodeId: string }[], statuses: readonly NodeStatus[]): ExecutionError => {
    const first = firstFailure.get(number)
    const those = (status: NodeStatus) => statuses.flatMap((one, node) => (one === status ? [nodes[node]!.nodeId] : []))
    return {
      code: 'node_failed',
      nodeId: first?.node_id ?? null,
      task: first?.task ?? null,
      failedNodes: those('failed'),
      skippedNodes: those('skipped'),
      cause: first?.error ? (JSON.parse(first.error) as JobError) : cancelledError,
    }
  }
}
