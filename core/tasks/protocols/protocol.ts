import type { CallerSignal } from '../../abort-source.ts'
import type { DecodedAudio } from '../../media/audio-decoder.ts'
import type { EngineProtocolName, EngineRoute } from '../../models/engine-traits.ts'
import type { Lease } from '../../models/fleet.ts'
import type { Operation } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import type { EngineStream } from './engine-stream.ts'
import type { GenerationCall } from './generation-call.ts'
import type { Completed } from './infer-generation.ts'
import type { EngineAudio, TranscriptionCall, Voice } from './openai-audio.ts'

/** Translates requests of some tasks to HTTP requests to an engine, and its answers back. The preset chooses it. */
export interface EngineProtocol {
  name: EngineProtocolName
  /** The usual path of each operation in engines with this protocol. */
  paths: Partial<Record<Operation, string>>
}

/** A protocol for tasks that turn text into audio or audio into text. */
export interface AudioProtocol extends EngineProtocol {
  /** Sends JSON and resolves with the audio once its first bytes have arrived. Rejects with Failure. */
  synthesize(
    lease: Lease,
    request: { path: string; body: string; maxBytes: number },
    signal: CallerSignal,
  ): Promise<EngineAudio>
  /** Requests the voices of a running engine; `path` is its synthesis route. Empty if the answer cannot be parsed. */
  voices(lease: Lease, path: string, signal: CallerSignal): Promise<Voice[]>
  /** Sends audio with the fields of a form and resolves with the whole answer. Rejects with Failure. */
  transcribe(
    lease: Lease,
    request: TranscriptionCall,
    sound: Pick<DecodedAudio, 'path' | 'bytes' | 'seconds'>,
    maxBytes: number,
    signal: CallerSignal,
  ): Promise<Buffer>
  /** The same for a request for a stream: resolves when the answer begins, which may still be no stream. */
  transcribeStream(...call: Parameters<AudioProtocol['transcribe']>): Promise<EngineStream>
}

/**
 * Stores the file at a URL that an engine answered, under the rules for URLs of callers. Rejects with Failure
 * `url_fetch_failed`, or with the reason of the signal.
 */
export type Download = (file: { url: string; path: string; maxBytes: number; signal: AbortSignal }) => Promise<void>

/** A protocol for tasks that write image or video files. */
export interface GenerationProtocol extends EngineProtocol {
  /** Set if engines choose the format of their images; infer then converts them to the requested one. */
  anyImageFormat?: true
  /** Set if masks mark areas by transparency; infer then converts its own, which mark them by white. */
  alphaMasks?: true
  /** Runs one generation: the files are in the folder of the call when it resolves. Rejects with Failure. */
  generate(
    lease: Lease,
    route: EngineRoute,
    call: GenerationCall,
    signal: AbortSignal,
    report: RunReport,
    download: Download,
  ): Promise<Completed>
}
