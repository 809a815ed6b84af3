import type { FinishedJob, JobRecord } from './store.ts'

/** The prompt and the answer of a synchronous call are not kept, and what it was tried is its own business. */
export const whatCallsShare = {
  kind: 'sync',
  inputs: 'null',
  result: null,
  metadata: null,
  priority: 0,
  attempt: 1,
  maxAttempts: 1,
  claims: 1,
  boot: null,
} as const

/** A synchronous call that has ended, as the job that it was. It was never queued, so its queue id is its own. */
export const callRecord = (call: FinishedJob): JobRecord => ({
  ...whatCallsShare,
  ...call,
  queueId: call.id,
  notBefore: call.createdAt,
  updatedAt: call.finishedAt,
})
