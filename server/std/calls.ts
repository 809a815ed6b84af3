import { callRecord as finishedRecord, whatCallsShare } from '../../core/store/calls.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { Call } from '../call.ts'

/** The call of the asking organization that runs under this job id. */
export function runningCall(id: string, asker: Call): Call | undefined {
  for (const call of asker.owners.calls)
    if (call.job?.id === id && call.organizationId === asker.organizationId) return call
  return undefined
}

/**
 * The job record of a synchronous call that the store does not hold: it runs, or it has ended and its record is on the
 * way. What is here no more is in the store; so look here first, or look there in the same turn.
 */
export function callRecord(id: string, asker: Call): JobRecord | undefined {
  const ended = asker.owners.recorder.find(asker.caller.organizationId, id)
  if (ended) return finishedRecord(ended)
  const call = runningCall(id, asker)
  const job = call?.job
  if (!job) return undefined
  return {
    ...whatCallsShare,
    ...job,
    organizationId: call.caller.organizationId,
    tokenId: call.caller.tokenId,
    status: job.startedAt === null ? 'pending' : 'processing',
    error: null,
    usage: null,
    cost: null,
    expiresAt: null,
    notBefore: job.createdAt,
    updatedAt: job.startedAt ?? job.createdAt,
    finishedAt: null,
  }
}
