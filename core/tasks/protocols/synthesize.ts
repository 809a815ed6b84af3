import type { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import { diskFailure } from '../../files/write.ts'
import type { Lease } from '../../models/fleet.ts'
import { engineFault } from './answer.ts'
import { openEngineStream, type StreamFaults } from './engine-stream.ts'

export interface EngineAudio {
  /** Content type of the engine; may be empty. */
  contentType: string
  /** Destroying it ends the engine's request. Fails with the Failure of the engine or the reason of the signal. */
  audio: Readable
}

/** Content types that are not audio. */
const notAudio = /^(application\/(problem\+)?json|text\/)/i

/**
 * Requests audio and resolves when its first bytes have arrived, so that earlier errors can still be reported or retried.
 * The engine's answer is read only as fast as the stream is. `alwaysType` is the content type of the audio of an engine that
 * labels it wrongly.
 */
export async function synthesize(
  lease: Lease,
  { path, body, maxBytes }: { path: string; body: string; maxBytes: number },
  signal: CallerSignal,
  { alwaysType }: { alwaysType?: string } = {},
): Promise<EngineAudio> {
  const faults: StreamFaults = {
    maxBytes,
    tooLong: () => engineFault(`with more audio than ${Math.floor(maxBytes / 2 ** 20)} MiB`),
    empty: () => engineFault('without any audio'),
    unexpected: type =>
      alwaysType === undefined && notAudio.test(type)
        ? engineFault(`'${type.slice(0, 60)}' instead of audio`)
        : undefined,
  }
  const { contentType, bytes } = await openEngineStream(lease, { path, body }, faults, signal)
  return { contentType: alwaysType ?? contentType, audio: bytes }
}

/**
 * Returns the Failure of an audio stream. A stream fails with whatever error came first, which can be that of the disk to
 * which it is written.
 */
export const audioFailure = (thrown: unknown, signal: CallerSignal): Failure =>
  Failure.from(signal.aborted ? signal.reason : diskFailure(thrown))
