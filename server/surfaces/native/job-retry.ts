import { canonicalHash } from '../../../core/canonical.ts'
import { Failure } from '../../../core/failure.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { taskRecord } from '../../../core/tasks/registry.ts'
import type { Call } from '../../http/request/call.ts'
import { askForRegion } from '../../http/request/region.ts'
import { hasEnded } from '../../views/job-record.ts'
import type { JobTerms } from '../../work/submit.ts'
import { type SubmitterOwners, submitters } from '../../work/submitters.ts'

/** Returns the terms of a job: its request without the inputs. */
const termsOf = (job: JobRecord): JobTerms => ({
  priority: job.priority,
  maxAttempts: job.maxAttempts,
  startTimeoutMs: job.startBy === null ? undefined : job.startBy - job.createdAt,
  timeoutMs: job.timeoutMs ?? undefined,
  // 0 keeps the job without a limit.
  retentionMs: job.retentionMs ?? 0,
  metadata: job.metadata === null ? undefined : (JSON.parse(job.metadata) as object),
  webhook: job.webhook ?? undefined,
})

/** Submits a job again as a new job. Throws Failure `conflict` if it cannot be repeated, and as a submission does. */
export async function retryJob(job: JobRecord, call: Call, owners: SubmitterOwners): Promise<JobRecord> {
  if (job.kind === 'sync')
    throw new Failure(
      'conflict',
      `The job ${job.id} was a synchronous request, whose inputs are not stored. Send the request again.`,
    )
  if (!hasEnded(job))
    throw new Failure('conflict', `The job ${job.id} has not ended: it is ${job.status}. Wait for it, or cancel it.`)
  if (job.parent)
    throw new Failure(
      'conflict',
      `The job ${job.id} belongs to the node '${job.parent.nodeId}' of an execution. Retry the execution: POST /api/workflow-executions/${job.parent.executionId}/retry.`,
    )
  askForRegion(call, job.region ?? undefined)
  // An idempotency key stands for this body: the same key for another job is another request.
  const body = { retry: job.id }
  call.bodyHash = canonicalHash(body)
  return submitters[taskRecord(job.task).runner].repeat(call, job, { terms: termsOf(job), body }, owners)
}
