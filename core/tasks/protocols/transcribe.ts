import { open } from 'node:fs/promises'
import { Readable } from 'node:stream'
import type { CallerSignal } from '../../abort-source.ts'
import { Failure } from '../../failure.ts'
import type { DecodedAudio } from '../../media/audio-decoder.ts'
import type { Lease } from '../../models/fleet.ts'
import { ask } from './ask.ts'
import { type AudioForm, audioForm } from './audio-form.ts'

/**
 * Sends a sound to an engine and resolves with its answer, whole. The sound is read from the disk as it is sent: an hour
 * of it is 115 MB, and engines have many slots. Rejects with the Failure that the engine or the caller's leaving makes.
 */
export function transcribe(
  lease: Lease,
  { path, fields }: { path: string; fields: [name: string, value: string][] },
  sound: Pick<DecodedAudio, 'path' | 'bytes' | 'seconds'>,
  maxBytes: number,
  signal: CallerSignal,
): Promise<Buffer> {
  const form = audioForm(fields, sound.bytes)
  const body = {
    bytes: form.head.length + sound.bytes + form.tail.length,
    open: () => Readable.from(pieces(form, sound), { objectMode: false, highWaterMark: 1 }),
  }
  // Most engines say nothing before they have heard all of it, which on a processor takes as long as it lasts.
  const patienceMs = Math.ceil(2_000 * sound.seconds)
  return ask(lease, path, body, maxBytes, signal, { contentType: form.contentType, patienceMs })
}

const pieceBytes = 256 << 10

/** The file is opened with the first piece that is asked for, and closed with the last or where nobody asks for more. */
async function* pieces({ head, tail }: AudioForm, { path, bytes }: Pick<DecodedAudio, 'path' | 'bytes'>) {
  yield head
  try {
    await using file = await open(path)
    for (let at = 0; at < bytes; ) {
      const most = Math.min(pieceBytes, bytes - at)
      // A new one each time: the last may still wait to be sent.
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(most), 0, most, at)
      if (bytesRead === 0) throw new Failure('internal_error', 'A decoded sound is shorter than it was.')
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  } catch (thrown) {
    throw Failure.from(thrown)
  }
  yield tail
}
