import type { FinishedJob, JobRecord } from './job-records.ts'

/** The fields of a synchronous call's record that are the same for every call: its prompt and answer are not kept. */
export const callRecordDefaults = {
  kind: 'sync',
  class: 'interactive',
  inputs: 'null',
  result: null,
  metadata: null,
  webhook: null,
  slug: null,
  priority: 0,
  rank: 0,
  startBy: null,
  timeoutMs: null,
  retentionMs: null,
  awaits: null,
  parent: null,
  batch: null,
  region: null,
  relayed: false,
  attempt: 1,
  maxAttempts: 1,
  claims: 1,
  boot: null,
} as const

/** A finished synchronous call as a job record. */
export const callRecord = (call: FinishedJob): JobRecord => ({
  ...callRecordDefaults,
  requestedModel: null,
  fallbackReason: null,
  ...call,
  notBefore: call.createdAt,
  updatedAt: call.finishedAt,
  expiresAt: null,
})
