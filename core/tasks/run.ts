import type { RunJob } from '../jobs/run.ts'
import type { Usage } from '../store/store.ts'
import { isGeneration } from './tasks.ts'

/**
 * Runs one attempt of any job: text by the one runner, pictures and videos by the other. `used` hears what each that
 * ended well has used.
 */
export function openTaskRunner({
  text,
  generation,
  used,
}: {
  text: RunJob
  generation: RunJob
  used: (modelId: string, usage: Usage) => void
}): RunJob {
  const run = async (...[job, lease, signal, report]: Parameters<RunJob>) => {
    const ran = await (isGeneration(job.task) ? generation : text)(job, lease, signal, report)
    used(job.modelId, ran.usage)
    return ran
  }
  // Only what a generation made lies on the disk; the other has nothing to undo.
  return Object.assign(run, { undo: (...given: Parameters<RunJob['undo']>) => generation.undo(...given) })
}
