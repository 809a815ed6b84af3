import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import type { DecodedAudio } from '../../media/audio-decoder.ts'
import type { Lease } from '../../models/fleet.ts'
import { engineFault } from './answer.ts'
import { ask } from './ask.ts'
import { type AudioForm, audioForm } from './audio-form.ts'
import { type EngineStream, openEngineStream } from './engine-stream.ts'

/** A transcription request for an engine: the fields of its form, without the audio. */
export interface TranscriptionCall {
  path: string
  fields: [name: string, value: string][]
}
type Sound = Pick<DecodedAudio, 'path' | 'bytes' | 'seconds'>

/**
 * Sends audio to an engine and resolves with its whole answer. The audio is read from the disk while it is sent: an hour
 * is 115 MB, and engines have many slots. Rejects with the Failure of the engine or the reason of the signal.
 */
export function transcribe(
  lease: Lease,
  request: TranscriptionCall,
  sound: Sound,
  maxBytes: number,
  signal: CallerSignal,
): Promise<Buffer> {
  const { path, body, ...more } = engineCall(request, sound)
  return ask(lease, path, body, maxBytes, signal, more)
}

/** The same for an engine that is asked for a stream. Resolves when its answer begins. */
export function transcribeStream(
  lease: Lease,
  request: TranscriptionCall,
  sound: Sound,
  maxBytes: number,
  signal: CallerSignal,
): Promise<EngineStream> {
  const faults = {
    maxBytes,
    tooLong: () => engineFault(`with more than ${Math.floor(maxBytes / 2 ** 20)} MiB`),
    empty: () => engineFault('nothing'),
  }
  return openEngineStream(lease, engineCall(request, sound), faults, signal)
}

function engineCall({ path, fields }: TranscriptionCall, sound: Sound) {
  const form = audioForm(fields, sound.bytes)
  return {
    path,
    body: {
      bytes: form.head.length + sound.bytes + form.tail.length,
      open: () => Readable.from(pieces(form, sound), { objectMode: false, highWaterMark: 1 }),
    },
    contentType: form.contentType,
    // Most engines send nothing before they are done, which on a CPU can take as long as the audio.
    patienceMs: Math.ceil(2_000 * sound.seconds),
  }
}

const pieceBytes = 256 << 10

/** Yields the body in pieces. The file is opened with the first piece and closed with the last or when reading stops. */
async function* pieces({ head, tail }: AudioForm, { path, bytes }: Pick<DecodedAudio, 'path' | 'bytes'>) {
  yield head
  try {
    await using file = await open(path)
    for (let at = 0; at < bytes; ) {
      const most = Math.min(pieceBytes, bytes - at)
      // A new one each time: the last may still wait to be sent.
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(most), 0, most, at)
      if (bytesRead === 0) throw new Failure('internal_error', 'A file of decoded audio was truncated.')
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } catch (thrown) {
    throw Failure.from(thrown)
  }
  yield tail
}
