import { canonicalHash } from '../../core/canonical.ts'
import { Failure } from '../../core/failure.ts'
import { isImageTask, isPainted, isTextTask, isTranscription, speechTask } from '../../core/schemas/task.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { imageRequestOf } from '../../core/tasks/image/prepare-image.ts'
import type { GenerationInputs } from '../../core/tasks/protocols/generation-call.ts'
import type { Call } from '../call.ts'
import { submitGeneration } from '../slug/submit.ts'
import { submitSpeech } from '../std/speech-job.ts'
import { submitTranscription } from '../std/transcription-job.ts'
import type { JobTerms } from '../submit.ts'
import { submitText } from './job-create.ts'
import { hasEnded } from './job-record.ts'

/** Of a job, what it was asked for besides its inputs. */
const termsOf = (job: JobRecord): JobTerms => ({
  priority: job.priority,
  maxAttempts: job.maxAttempts,
  startTimeoutMs: job.startBy === null ? undefined : job.startBy - job.createdAt,
  timeoutMs: job.timeoutMs ?? undefined,
  // 0 is what keeps it.
  retentionMs: job.retentionMs ?? 0,
  metadata: job.metadata === null ? undefined : (JSON.parse(job.metadata) as object),
})

/** The stored inputs of a generation as its endpoint takes them: files by their ids, and nothing that was left empty. */
function sentAgain({ task, inputs }: JobRecord): object {
  const stored = JSON.parse(inputs) as GenerationInputs
  if (isImageTask(task)) return imageRequestOf(stored)
  const { extra, ...rest } = stored
  const sent = Object.entries(rest).filter(([, value]) => value !== null && value !== '')
  return { ...Object.fromEntries(sent), ...extra }
}

/** The same work as a new job. Throws Failure `conflict` where there is nothing to repeat, and all that a submit throws. */
export async function submitAgain(job: JobRecord, call: Call): Promise<JobRecord> {
  if (job.kind === 'sync')
    throw new Failure('conflict', `The job ${job.id} was a synchronous call, whose inputs are not kept. Send it again.`)
  if (!hasEnded(job))
    throw new Failure('conflict', `The job ${job.id} has not ended: it is ${job.status}. Wait for it, or cancel it.`)
  if (job.parent)
    throw new Failure(
      'conflict',
      `The job ${job.id} is that of the node '${job.parent.nodeId}' of an execution, and is run again with it: POST /api/workflow-executions/${job.parent.executionId}/retry.`,
    )
  const { task, modelId } = job
  const terms = termsOf(job)
  // What an idempotency key stands for: the same key for another job is another request.
  const body = { retry: job.id }
  call.bodyHash = canonicalHash(body)
  if (isPainted(task)) {
    const found = job.slug === null ? undefined : call.owners.registry.bySlug(job.slug)
    const target =
      found?.model.id === modelId && found.task === task ? { slug: job.slug! } : ({ modelId, task } as const)
    const again = await submitGeneration(call, { target, body: sentAgain(job), terms })
    return again.job
  }
  if (task === speechTask) return submitSpeech(call, { inputs: JSON.parse(job.inputs), terms, body })
  if (isTranscription(task))
    return submitTranscription(call, { task, inputs: JSON.parse(job.inputs) as object, terms, body })
  if (!isTextTask(task)) throw new Failure('conflict', `The job ${job.id} cannot be repeated.`)
  return submitText(call, { task, text: job.inputs, terms, body })
}
