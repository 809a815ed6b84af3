import type { Failure } from '../failure.ts'
import type { Log } from '../log.ts'
import type { Model } from '../models/model.ts'
import { costOf } from '../models/price.ts'
import { type FinishedJob, jobErrorOf } from '../store/store.ts'
import { metered, meteredUsage, noUsage } from '../usage.ts'
import type { CallEnd, RunningCall } from './call.ts'

/** Returns the record of a call that has ended in this attempt, at the price of the model. */
export function finishedCall(
  call: RunningCall,
  { price }: Pick<Model, 'price'>,
  end: CallEnd,
  attempt: number,
): FinishedJob {
  const { gpuMs, energyMj } = call
  const usage = meteredUsage({ ...(end.how === 'retry' ? noUsage : end.usage), gpuMs, energyMj })
  // Nobody pays for the time in which an engine failed.
  const unbilledGpuMs = end.how === 'failed' ? gpuMs : call.unbilledGpuMs
  const billed = unbilledGpuMs > 0 ? { ...usage, gpuMs: gpuMs - unbilledGpuMs } : usage
  const failure = end.how === 'failed' ? end.failure : undefined
  const { id, task, modelId, requestedModel, fallbackReason, engineId, organizationId, tokenId, createdAt, startedAt } =
    call
  return {
    id,
    task,
    modelId,
    requestedModel,
    fallbackReason,
    createdAt,
    startedAt,
    referenceQueueMs: call.hasReference ? Math.round(call.referenceQueuedMs) : null,
    timeToFirstTokenMs: call.timeToFirstTokenMs,
    engineId,
    organizationId,
    tokenId,
    status: end.how === 'retry' ? 'failed' : end.how,
    error: failure ? jobErrorOf(failure, attempt) : null,
    usage,
    cost: metered(costOf(price, billed)),
    finishedAt: Date.now(),
  }
}

/** Logs what the engine of a failed call has said, which no caller gets. */
export function logEngineText(log: Log, call: RunningCall, { engineText }: Failure): void {
  if (!engineText) return
  const { id, modelId, engineId, traceparent } = call
  const fields = { job: id, model: modelId, engine: engineId, engine_error: engineText, traceparent }
  log.warn('An engine failed a request', fields)
}
