import type { Task } from '../schemas/task.ts'
import type { Usage } from '../store/store.ts'
import { taskRecord } from './registry.ts'
import type { RunJob } from './run-job.ts'
import type { RunnerName } from './task.ts'

/** Runs one attempt of any job with the runner of its task. `used` is called with the usage of each successful attempt. */
export function openTaskRunner(
  runners: Record<RunnerName, RunJob>,
  used: (modelId: string, usage: Usage) => void,
): RunJob {
  const runnerOf = (task: Task) => runners[taskRecord(task).runner]
  const run = async (...[job, lease, signal, report]: Parameters<RunJob>) => {
    const ran = await runnerOf(job.task)(job, lease, signal, report)
    used(job.modelId, ran.usage)
    return ran
  }
  return Object.assign(run, {
    undo: (...[ran, job]: Parameters<RunJob['undo']>) => runnerOf(job.task).undo(ran, job),
  })
}
