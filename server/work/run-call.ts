import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import type { CallAttempt, CallEnd, CallFallbacks, RunningCall } from '../../core/jobs/call.ts'
import type { Lease } from '../../core/models/fleet.ts'
import { noUsage } from '../../core/usage.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { keepFailure, keepStream } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import { WaitingStream } from './waiting-stream.ts'

export interface CallWork {
  admitted: Admitted
  createdAt: number
  /** The limit of the caller; the model has its own. */
  waitMs: number
  /** Whether the answer is a stream, which cannot be repeated. */
  stream: boolean
  /** Returns how an event stream ends that fails while it waits; undefined if the answer is none. */
  endingOf?: (() => ((failure: Failure) => string) | undefined) | undefined
  /** The models that may answer in place of the admitted one. */
  fallbacks?: CallFallbacks | undefined
  /** Whether the answer needs no engine. */
  withoutEngine?: boolean
  /** Called with the id of its job once it has one. */
  named?: ((jobId: string) => void) | undefined
  /** The body that the engine gets, of a text. */
  prompt?: string | Uint8Array | undefined
}

/**
 * Runs a synchronous request as a call, sets the headers that describe how it was served, and stores the answer to a
 * repeated idempotency key. Rejects with the Failure of the request.
 */
export async function runCall(
  exchange: ClientExchange,
  { admitted, createdAt, waitMs, stream, withoutEngine, prompt, named, endingOf, fallbacks }: CallWork,
  attempt: CallAttempt,
  { jobs, timings }: Owners<'jobs' | 'timings'>,
): Promise<void> {
  let waiting: WaitingStream | undefined
  const waits = (call: RunningCall) => {
    named?.(call.id)
    const reason = () => jobs.calls.reasonOf(call.modelId)
    const lastWords = endingOf?.()
    if (lastWords) waiting ??= new WaitingStream({ exchange, call, reason, lastWords })
  }
  let jobId: string | null = null
  const began = (running: RunningCall, lease: Lease) => {
    jobId = running.id
    named?.(running.id)
    waiting?.end()
    const { modelId, requestedModel, fallbackReason } = running
    timings.record('queue', modelId, running.queuedMs)
    exchange
      .setHeader('x-job-id', running.id)
      .setHeader('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
      .setHeader('x-queue-ms', String(Math.round(running.queuedMs)))
    if (requestedModel !== null) exchange.setHeader('x-infer-model', modelId)
    if (fallbackReason !== null) exchange.setHeader('x-infer-fallback', `${requestedModel}; ${fallbackReason}`)
    if (running.queuedMs > 0) {
      timings.waited(modelId, running.queuedMs, running.referenceQueuedMs)
      exchange.setHeader('x-reference-queue-ms', String(Math.round(running.referenceQueuedMs)))
    }
  }
  try {
    const caller = exchange.abortSource
    const call = { admitted, createdAt, waitMs, withoutEngine, prompt, caller, fallbacks, waits, began }
    const ended = await jobs.calls.run(call, attempt)
    if (stream && exchange.keyLock && ended.end.how === 'completed') await keepStream(exchange, ended.call.id)
    if (ended.end.how === 'cancelled') waiting?.failed(new Failure('cancelled', 'The request was cancelled.'))
  } catch (thrown) {
    const failure = Failure.from(thrown)
    waiting?.failed(failure)
    await keepFailure(exchange, failure, jobId)
    throw failure
  }
}

/** Returns how an attempt ends whose engine has answered nothing. Only a failed engine is replaced by another one. */
export function endOfFailure(thrown: unknown): CallEnd {
  const failure = Failure.from(thrown)
  if (failure.code === 'cancelled') return { how: 'cancelled', usage: noUsage }
  return failure.code === 'worker_error' ? { how: 'retry', failure } : { how: 'failed', failure, usage: noUsage }
}
