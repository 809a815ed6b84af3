import { open } from 'node:fs/promises'
import { Failure } from '../../failure.ts'
import type { Lease } from '../../fleet.ts'
import type { Leaving } from '../../leaving.ts'
import type { Sound } from '../../media/sound.ts'
import { ask } from '../ask.ts'
import { soundForm } from './sound-form.ts'
import type { PreparedTranscription } from './transcription.ts'

/**
 * Sends a sound to an engine and resolves with its answer, whole. The form is put together when there is a slot: an hour
 * of sound is 115 MB, and those who wait for a slot are many. Rejects with the Failure that the engine or the caller's
 * leaving makes.
 */
export async function hear(
  lease: Lease,
  { path, fields }: Pick<PreparedTranscription, 'path' | 'fields'>,
  sound: Pick<Sound, 'path' | 'bytes' | 'seconds'>,
  maxBytes: number,
  signal: Leaving,
): Promise<Buffer> {
  const { contentType, head, tail } = soundForm(fields, sound.bytes)
  const body = Buffer.allocUnsafeSlow(head.length + sound.bytes + tail.length)
  head.copy(body)
  await readInto(body.subarray(head.length, head.length + sound.bytes), sound.path)
  tail.copy(body, head.length + sound.bytes)
  signal.throwIfAborted()
  // Most engines say nothing before they have heard all of it, which on a processor takes as long as it lasts.
  const patienceMs = Math.ceil(2_000 * sound.seconds)
  return ask(lease, path, body, maxBytes, signal, { contentType, patienceMs })
}

async function readInto(place: Buffer, path: string): Promise<void> {
  await using file = await open(path)
  for (let at = 0; at < place.length; ) {
    const { bytesRead } = await file.read(place, at, place.length - at, at)
    if (bytesRead === 0) throw new Failure('internal_error', 'A decoded sound is shorter than it was.')
    at += bytesRead
  }
}
