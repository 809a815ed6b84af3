import { costOf } from '../models/price.ts'
import type { Task } from '../schemas/task.ts'
import type { Usage } from '../store/store.ts'
import { meteredUsage } from '../usage.ts'
import { taskRecord } from './registry.ts'
import type { RunJob, RunResult, RunTask } from './run-job.ts'
import type { RunnerName } from './task.ts'

/**
 * Runs one attempt of any job with the runner of its task, and adds its time on the slot and its cost. `used` is called
 * with the usage of each successful attempt. Lines of batches cost `batchPriceFactor` times the price.
 */
export function openTaskRunner(
  runners: Record<RunnerName, RunTask>,
  used: (modelId: string, usage: Usage) => void,
  batchPriceFactor = 1,
): RunJob {
  const runnerOf = (task: Task) => runners[taskRecord(task).runner]
  const run = async (...[job, lease, signal, report]: Parameters<RunJob>): Promise<RunResult> => {
    const { price, image, ...ran } = await runnerOf(job.task)(job, lease, signal, report)
    const usage = meteredUsage({ ...ran.usage, ...lease.used() })
    used(job.modelId, usage)
    const cost = costOf(price, usage, image)
    return { ...ran, usage, cost: job.class === 'batch' ? Math.ceil(cost * batchPriceFactor) : cost }
  }
  return Object.assign(run, {
    undo: (...[ran, job]: Parameters<RunJob['undo']>) => runnerOf(job.task).undo(ran, job),
  })
}
