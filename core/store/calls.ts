import type { FinishedJob, JobRecord } from './store.ts'

/** The prompt and the answer of a synchronous call are not kept, and what it was tried is its own business. */
export const callRecordDefaults = {
  kind: 'sync',
  class: 'interactive',
  inputs: 'null',
  result: null,
  metadata: null,
  slug: null,
  priority: 0,
  rank: 0,
  startBy: null,
  timeoutMs: null,
  retentionMs: null,
  parent: null,
  attempt: 1,
  maxAttempts: 1,
  claims: 1,
  boot: null,
} as const

/** A synchronous call that has ended, as the job that it was. */
export const callRecord = (call: FinishedJob): JobRecord => ({
  ...callRecordDefaults,
  ...call,
  notBefore: call.createdAt,
  updatedAt: call.finishedAt,
  expiresAt: null,
})
