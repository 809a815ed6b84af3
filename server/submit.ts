import { newId } from '../core/ids.ts'
import type { JobStatus } from '../core/store/store.ts'
import type { Task } from '../core/tasks/tasks.ts'
import type { Call } from './call.ts'
import { idempotencyOf } from './idempotency.ts'

export interface JobWish {
  task: Task
  modelId: string
  /** As the endpoint of the task would take them, checked. */
  inputs: object
  priority?: number
  maxAttempts?: number
  /** Epoch milliseconds. */
  notBefore?: number
  metadata?: object | undefined
}

/**
 * Stores a job of the caller and resolves with its ids once it survives a crash. `body` is what an `Idempotency-Key`
 * stands for. Throws Failure `idempotency_key_reused`, `invalid_value` for a key that is none, `disk_full`.
 */
export async function submitJob(
  call: Call,
  body: unknown,
  { task, modelId, inputs, priority = 0, maxAttempts = 3, notBefore = 0, metadata }: JobWish,
): Promise<{ id: string; queue_id: string; status: JobStatus }> {
  const now = Date.now()
  const { job, replayed } = await call.owners.jobs.submit({
    id: newId('job'),
    queueId: newId('q'),
    organizationId: call.caller.organizationId,
    tokenId: call.caller.tokenId,
    task,
    modelId,
    inputs: JSON.stringify(inputs),
    priority,
    maxAttempts,
    notBefore: Math.max(now, notBefore),
    createdAt: now,
    metadata: metadata ? JSON.stringify(metadata) : null,
    idempotency: idempotencyOf(call, body),
  })
  call.header('x-job-id', job.id)
  if (replayed) call.header('idempotent-replayed', 'true')
  return { id: job.id, queue_id: job.queueId, status: job.status }
}
