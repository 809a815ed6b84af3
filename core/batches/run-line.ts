import { jobSeed } from '../ids.ts'
import type { Media } from '../media/media.ts'
import { modelOfWork } from '../models/model-names.ts'
import type { Registry } from '../models/registry.ts'
import type { Store } from '../store/store.ts'
import { taskRecord } from '../tasks/registry.ts'
import type { RunJob, RunResult } from '../tasks/run-job.ts'

/**
 * Runs lines of batches, and all other jobs unchanged. A line is stored as it was sent: its media are fetched and its
 * defaults filled in when it runs, as for a node of a workflow.
 */
export function openLineRunner(dependencies: {
  run: RunJob
  store: Pick<Store, 'batches'>
  registry: Pick<Registry, 'find'>
  media: Pick<Media, 'take'>
}): RunJob {
  const { run, store, registry, media } = dependencies
  const runLine = async (...[job, lease, signal, report]: Parameters<RunJob>): Promise<RunResult> => {
    const model = job.batch && modelOfWork(registry.find, job)
    // Without a model the job fails as any other.
    if (!job.batch || !model) return run(job, lease, signal, report)
    const batch = await store.batches.find(job.organizationId, job.batch.id)
    const sender = { organizationId: job.organizationId, origin: batch?.origin ?? '', jobId: job.id, signal }
    const filled = await taskRecord(job.task).fill(JSON.parse(job.inputs) as Record<string, unknown>, {
      model: { ...model, id: job.requestedModel ?? model.id },
      drawSeed: () => jobSeed(job.id),
      take: (field, value, kind, options) => media.take(sender, field, value, kind, options),
    })
    return run({ ...job, origin: sender.origin, inputs: JSON.stringify(filled) }, lease, signal, report)
  }
  return Object.assign(runLine, {
    undo: (...ran: Parameters<RunJob['undo']>) => run.undo(...ran),
  })
}
