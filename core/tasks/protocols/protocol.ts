import type { CallerSignal } from '../../abort-source.ts'
import type { DecodedAudio } from '../../media/audio-decoder.ts'
import type { EngineProtocolName, EngineRoute, Lease } from '../../models/fleet.ts'
import type { Task } from '../../schemas/task.ts'
import type { RunReport } from '../run-job.ts'
import type { GenerationCall } from './generation-call.ts'
import type { Completed } from './infer-generation.ts'
import type { EngineAudio } from './synthesize.ts'
import type { Voice } from './voices.ts'

/** How requests of some tasks become HTTP to an engine, and its answers what the tasks work with. Chosen by the preset. */
export interface EngineProtocol {
  name: EngineProtocolName
  /** Where engines of the protocol usually answer each task that it is for. */
  paths: Partial<Record<Task, string>>
}

/** A protocol for tasks that turn text into audio or audio into text. */
export interface AudioProtocol extends EngineProtocol {
  /** Sends JSON and resolves with the audio once its first bytes are there. Rejects with Failure. */
  synthesize(
    lease: Lease,
    request: { path: string; body: string; maxBytes: number },
    signal: CallerSignal,
  ): Promise<EngineAudio>
  /** Asks a running engine for its voices; `path` is where it synthesizes. None where the answer is not understood. */
  voices(lease: Lease, path: string, signal: CallerSignal): Promise<Voice[]>
  /** Sends audio with the fields of a form and resolves with the whole answer. Rejects with Failure. */
  transcribe(
    lease: Lease,
    request: { path: string; fields: [name: string, value: string][] },
    sound: Pick<DecodedAudio, 'path' | 'bytes' | 'seconds'>,
    maxBytes: number,
    signal: CallerSignal,
  ): Promise<Buffer>
}

/** A protocol for tasks that write image or video files. */
export interface GenerationProtocol extends EngineProtocol {
  /** Runs one generation: the files lie in the folder of the call when it resolves. Rejects with Failure. */
  generate(
    lease: Lease,
    route: EngineRoute,
    call: GenerationCall,
    signal: AbortSignal,
    report: RunReport,
  ): Promise<Completed>
}
