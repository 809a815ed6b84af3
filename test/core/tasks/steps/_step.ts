import type { StepTask } from '../../../../core/schemas/task.ts'
import { taskRecord } from '../../../../core/tasks/registry.ts'

/** Does the work of a task without a model as a node does: its inputs are checked first. */
export async function step<Result>(task: StepTask, inputs: Record<string, unknown>): Promise<Result> {
  const record = taskRecord(task)
  const filled = await record.fill(inputs, undefined as never)
  return (await record.work(JSON.parse(JSON.stringify(filled)) as never)) as Result
}
