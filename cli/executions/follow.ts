import type { Client } from '../client/client.ts'
import { type FollowOptions, followToEnd } from '../jobs/follow-to-end.ts'
import { type Execution, ExecutionAnswer, executionPath, isOver } from './execution.ts'
import { afterEvent, type ExecutionSnapshot, executionSnapshot, unknownExecution } from './execution-snapshot.ts'

/** Follows an execution until it ends in any state, and resolves with its record. */
export async function followExecution(
  connect: () => Client,
  id: string,
  following: FollowOptions<ExecutionSnapshot>,
): Promise<Execution> {
  const { now = () => performance.now(), onChange } = following
  let last = unknownExecution
  const { execution } = await followToEnd<{ execution: Execution }, ExecutionSnapshot>(
    connect,
    {
      path: executionPath(id),
      answer: ExecutionAnswer,
      before: unknownExecution,
      afterEvent: (before, event) => afterEvent(before, event, now()),
      snapshotOf: answer => executionSnapshot(last, answer.execution, now()),
      isOver: ({ status }) => isOver(status),
      timeoutMessage: `The execution ${id} has not ended after 30 minutes of polling and is still running. Follow it again: infer execution watch ${id}`,
    },
    {
      ...following,
      onChange(snapshot) {
        last = snapshot
        onChange(snapshot)
      },
    },
  )
  return execution
}
