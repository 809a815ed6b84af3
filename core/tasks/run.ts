import { isPainted, type Task } from '../schemas/task.ts'
import type { Usage } from '../store/store.ts'
import type { RunJob } from './run-job.ts'

/**
 * Runs one attempt of any job: by the runner of its task where it has one of its own, otherwise text by the one,
 * generations by the other. `used` hears what each that ended well has used.
 */
export function openTaskRunner({
  text,
  generation,
  own = {},
  used,
}: {
  text: RunJob
  generation: RunJob
  own?: Partial<Record<Task, RunJob>>
  used: (modelId: string, usage: Usage) => void
}): RunJob {
  const run = async (...[job, lease, signal, report]: Parameters<RunJob>) => {
    const ran = await (own[job.task] ?? (isPainted(job.task) ? generation : text))(job, lease, signal, report)
    used(job.modelId, ran.usage)
    return ran
  }
  // What was made of text has nothing to undo.
  return Object.assign(run, {
    undo: (...[ran, job]: Parameters<RunJob['undo']>) => (own[job.task] ?? generation).undo(ran, job),
  })
}
