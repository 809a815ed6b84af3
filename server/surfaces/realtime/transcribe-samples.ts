import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AbortSource } from '../../../core/abort-source.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { newId } from '../../../core/ids.ts'
import type { CallAttempt } from '../../../core/jobs/call.ts'
import { callFallbacks } from '../../../core/jobs/call-fallbacks.ts'
import { sampleRate } from '../../../core/media/audio-decoder.ts'
import { isSilent } from '../../../core/media/silence.ts'
import { catalogOfWork, type NamedWork } from '../../../core/models/model-names.ts'
import { expectedGpuMs } from '../../../core/tasks/metering.ts'
import { audioProtocol } from '../../../core/tasks/protocols/protocols.ts'
import { prepareTranscription } from '../../../core/tasks/transcription/transcription.ts'
import { noUsage } from '../../../core/usage.ts'
import type { ClientExchange } from '../../http/request/exchange.ts'
import type { Owners } from '../../http/request/owners.ts'
import { endOfFailure } from '../../work/run-call.ts'
import type { SessionConfig } from './session-config.ts'

export type RealtimeOwners = Owners<
  'accounts' | 'admission' | 'config' | 'cpu' | 'files' | 'jobs' | 'limiter' | 'log' | 'registry' | 'throughput'
>

const task = 'std/audio-transcription'

/**
 * Checks the model, language and prompt of a session; `work`: another model does it. Throws Failure, of a model that does
 * not transcribe by name.
 */
export function preparedFor(
  { model, language, prompt }: SessionConfig,
  { registry }: Owners<'registry'>,
  work?: NamedWork,
) {
  if (model === undefined)
    throw invalid(
      'session.audio.input.transcription.model',
      "The session has no model. Send session.update with 'audio.input.transcription.model'.",
      'missing_required_parameter',
    )
  const catalog = work ? catalogOfWork(registry.catalog(), work) : registry.catalog()
  return prepareTranscription(task, { model, language, prompt, file: 'realtime' }, catalog)
}

export interface Samples {
  samples: Int16Array
  /**
   * Whether more of the audio follows: it is transcribed only if a slot is free now, by no fallback, and not charged by its
   * length.
   */
  partial: boolean
  /** Aborted when the text is no longer needed. */
  caller: AbortSource
}

/**
 * Transcribes samples as a call of the session's caller. Resolves with the text and the seconds of audio. Rejects with
 * the Failure of the request, as for `POST /std/v1/audio/transcriptions`.
 */
export async function transcribeSamples(
  exchange: ClientExchange,
  session: SessionConfig,
  { samples, partial, caller }: Samples,
  owners: RealtimeOwners,
): Promise<{ text: string; seconds: number }> {
  const { accounts, admission, config, cpu, files, jobs, limiter, throughput } = owners
  // The limits and models of the token may have changed since the connection was opened.
  const requester = accounts.authenticate(exchange.credential)
  const createdAt = Date.now()
  const seconds = samples.length / sampleRate
  const prepared = preparedFor(session, owners)
  const audioMs = partial ? 0 : Math.ceil(seconds * 1000)
  const estimate = () => ({ usage: { ...noUsage, audioMs, gpuMs: expectedGpuMs } })
  const admitted = admission.admit(requester, { kind: 'call', task, modelId: prepared.modelId, estimate })
  // Each utterance counts as a submission; a partial transcription is a part of one.
  const entry = partial ? undefined : await limiter.enter(requester, 'jobs')
  try {
    if (entry?.refused) throw entry.refused
    if (!partial) admission.requireQueueRoom(requester, admitted)
    await using workspace = await files.workspace(newId('job'))
    const path = join(workspace.folder, 'samples')
    await writeFile(path, new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength))
    const sound = { path, bytes: samples.byteLength, seconds, silent: await isSilent(path) }
    let text = ''

    const attemptWith =
      (one: typeof prepared): CallAttempt =>
      async lease => {
        let answer: Buffer
        try {
          const request = { path: one.route.path, fields: one.fields }
          const protocol = audioProtocol(one.route)
          answer = await protocol.transcribe(lease, request, sound, config.limits.engine_answer, caller)
        } catch (thrown) {
          return endOfFailure(thrown)
        }
        const shaped = await cpu.shape([answer], { ...one.answerFormat, format: 'json', seconds })
        const usage = partial ? { ...shaped.usage, audioMs: 0 } : shaped.usage
        throughput.used(lease.modelId, usage)
        caller.throwIfAborted()
        text = (JSON.parse(Buffer.from(shaped.body as string).toString('utf8')) as { text: string }).text
        return { how: 'completed', usage }
      }

    const fallbacks = partial
      ? undefined
      : callFallbacks(
          requester,
          admitted,
          async work => {
            const other = preparedFor(session, owners, work)
            const taken = admission.admit(requester, { kind: 'call', task, modelId: work.modelId, estimate })
            return { admitted: taken, attempt: attemptWith(other) }
          },
          owners,
        )
    const waitMs = partial ? 0 : Number.POSITIVE_INFINITY
    const { traceparent } = exchange
    const call = { admitted, createdAt, waitMs, withoutEngine: sound.silent, traceparent, caller, fallbacks }
    const { end } = await jobs.calls.run(call, attemptWith(prepared))
    if (end.how === 'cancelled') throw new Failure('cancelled', 'The transcription was cancelled.')
    return { text, seconds }
  } finally {
    entry?.leave()
  }
}
