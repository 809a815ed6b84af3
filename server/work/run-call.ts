import type { Admitted } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import type { CallAttempt, CallEnd, CallFallbacks, RunningCall } from '../../core/jobs/call.ts'
import type { Lease } from '../../core/models/fleet.ts'
import type { JobRecord } from '../../core/store/store.ts'
import { noUsage } from '../../core/usage.ts'
import { engineEndBefore } from '../http/request/engine-end.ts'
import type { ClientExchange } from '../http/request/exchange.ts'
import { keepFailure, keepStream } from '../http/request/idempotency.ts'
import type { Owners } from '../http/request/owners.ts'
import type { StreamOutput } from '../http/streams/kept-stream.ts'
import { WaitingStream } from './waiting-stream.ts'

export interface CallWork {
  admitted: Admitted
  createdAt: number
  /** The limit of the caller; the model has its own. */
  waitMs: number
  /** Whether the answer is a stream, which cannot be repeated. */
  stream: boolean
  /** Where the stream is kept, if it outlives the connection. */
  kept?: StreamOutput | undefined
  /** Returns how an event stream ends that fails before its answer began; undefined if the answer is none. */
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
  { admitted, createdAt, waitMs, stream, kept, withoutEngine, prompt, named, endingOf, fallbacks }: CallWork,
  attempt: CallAttempt,
  { jobs, timings }: Owners<'jobs' | 'timings'>,
): Promise<void> {
  const waits = (call: RunningCall) => {
    named?.(call.id)
    exchange.keyLock?.named(call.id)
    if (!endingOf?.()) return undefined
    const reason = () => jobs.calls.reasonOf(call.modelId)
    const waiting = new WaitingStream({ exchange, kept, call, reason })
    return () => waiting.end()
  }
  /** Ends an event stream that has its head but no answer. A kept one also without its client: another may resume it. */
  const failed = (failure: Failure) => {
    const { res } = exchange
    const isThere = !exchange.disconnected && res.headersSent && !res.writableEnded
    if (isThere || (kept && exchange.disconnected)) {
      const lastWords = endingOf?.()
      if (lastWords) (kept ?? res).end(lastWords(failure))
    }
  }
  let jobId: string | null = null
  let isCancelled = false
  const began = (running: RunningCall, lease: Lease) => {
    jobId = running.id
    named?.(running.id)
    exchange.keyLock?.named(running.id)
    const { modelId } = running
    timings.record('queue', modelId, running.queuedMs)
    exchange
      .setHeader('x-job-id', running.id)
      .setHeader('x-model-status', lease.loadedMs > 0 ? 'cold' : 'warm')
      .setHeader('x-queue-ms', String(Math.round(running.queuedMs)))
    nameModel(exchange, running)
    if (running.queuedMs > 0) {
      timings.waited(modelId, running.queuedMs, running.referenceQueuedMs)
      exchange.setHeader('x-reference-queue-ms', String(Math.round(running.referenceQueuedMs)))
    }
  }
  try {
    const { abortSource: caller, traceparent } = exchange
    const engineEnd = engineEndBefore(exchange.req)
    const call = {
      admitted,
      createdAt,
      waitMs,
      withoutEngine,
      prompt,
      traceparent,
      engineEnd,
      caller,
      fallbacks,
      waits,
      began,
    }
    const ended = await jobs.calls.run(call, attempt)
    if (stream && exchange.keyLock && ended.end.how === 'completed') await keepStream(exchange, ended.call.id)
    isCancelled = ended.end.how === 'cancelled'
  } catch (thrown) {
    const failure = Failure.from(thrown)
    failed(failure)
    await keepFailure(exchange, failure, jobId)
    throw failure
  }
  if (!isCancelled) return
  const { reason } = exchange.abortSource
  const failure = reason instanceof Failure ? reason : new Failure('cancelled', 'The request was cancelled.')
  failed(failure)
  // Not kept for its key: it may be sent again.
  if (!exchange.disconnected && !exchange.res.headersSent) throw failure
}

/** Sets the headers that name the model that answers, where it is not the requested one. */
export function nameModel(
  exchange: ClientExchange,
  { modelId, requestedModel, fallbackReason }: Pick<JobRecord, 'modelId' | 'requestedModel' | 'fallbackReason'>,
): void {
  if (requestedModel !== null) exchange.setHeader('x-infer-model', modelId)
  if (fallbackReason !== null) exchange.setHeader('x-infer-fallback', `${requestedModel}; ${fallbackReason}`)
}

/** Returns how an attempt ends whose engine has answered nothing. Only a failed engine is replaced by another one. */
export function endOfFailure(thrown: unknown): CallEnd {
  const failure = Failure.from(thrown)
  if (failure.code === 'cancelled') return { how: 'cancelled', usage: noUsage }
  return failure.code === 'worker_error' ? { how: 'retry', failure } : { how: 'failed', failure, usage: noUsage }
}
