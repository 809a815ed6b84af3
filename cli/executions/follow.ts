import type { Client } from '../client.ts'
import { type Following, followToEnd } from '../jobs/following.ts'
import { type Execution, ExecutionAnswer, executionPath, isOver } from './execution.ts'
import { afterEvent, momentOf, type RunMoment, unknownRun } from './moment.ts'

/** Follows an execution to its end and resolves with its record, whatever the end is. */
export async function followExecution(
  connect: () => Client,
  id: string,
  following: Following<RunMoment>,
): Promise<Execution> {
  const { now = () => performance.now(), onChange } = following
  let last = unknownRun
  const { execution } = await followToEnd<{ execution: Execution }, RunMoment>(
    connect,
    {
      path: executionPath(id),
      answer: ExecutionAnswer,
      before: unknownRun,
      afterEvent: (before, event) => afterEvent(before, event, now()),
      momentOf: answer => momentOf(last, answer.execution, now()),
      isOver: ({ status }) => isOver(status),
      givenUp: `The execution ${id} has not ended after 30 minutes of asking. It goes on. Follow it again: infer execution watch ${id}`,
    },
    {
      ...following,
      onChange(moment) {
        last = moment
        onChange(moment)
      },
    },
  )
  return execution
}
