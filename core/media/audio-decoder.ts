import { open, stat } from 'node:fs/promises'
import type { Limits } from '../config.ts'
import { audioKindOf } from '../cpu/audio-kind.ts'
import type { Cpu } from '../cpu/cpu.ts'
import { Failure } from '../failure.ts'
import { checkProbe } from './check-probe.ts'
import type { Ffmpeg } from './ffmpeg.ts'

/** Samples a second of all audio that engines are sent; 16 bits, one channel. */
export const sampleRate = 16_000

/** Audio as engines are sent it: samples of 16 bits, one channel, 16,000 a second. Its file is removed when it is disposed of. */
export interface DecodedAudio extends AsyncDisposable {
  /** The file of the samples, without a head. */
  path: string
  bytes: number
  seconds: number
}

/** So many times the most that one may come to may lie decoded, waiting for an engine. */
const maxWaiting = 16
/** Far longer than the longest takes on a slow machine. */
const decodeMs = 120_000

const refused = (what: string) => new Failure('invalid_audio', `The sound ${what}.`)

/** What a file is that ffmpeg is not needed for. */
const types: Record<string, { contentType: string; ending: string }> = {
  wav: { contentType: 'audio/wav', ending: 'wav' },
  mp3: { contentType: 'audio/mpeg', ending: 'mp3' },
  flac: { contentType: 'audio/flac', ending: 'flac' },
  opus: { contentType: 'audio/ogg', ending: 'ogg' },
  vorbis: { contentType: 'audio/ogg', ending: 'ogg' },
}

/**
 * The one way in which sound is decoded, wherever it came from: by ffmpeg, or where that is not installed by decoders in
 * a thread. What it comes to is bounded in seconds and in bytes, whatever its head says.
 */
export function openAudioDecoder({
  ffmpeg,
  cpu,
  limits,
}: {
  ffmpeg: Pick<Ffmpeg, 'found' | 'sound' | 'probe'>
  cpu: Pick<Cpu, 'sound'>
  limits: Pick<Limits, 'audio_length' | 'audio_decoded'>
}) {
  const seconds = limits.audio_length / 1000
  const bounds = { seconds, bytes: limits.audio_decoded, rate: sampleRate }
  /** Bytes of those that are kept. */
  let kept = 0

  /** Writes the samples of the sound in one file to another, new one. Rejects with Failure `invalid_audio`, `disk_full`. */
  async function decode(
    from: string,
    into: string,
    signal?: AbortSignal,
  ): Promise<Omit<DecodedAudio, keyof AsyncDisposable>> {
    const program = await ffmpeg.found()
    signal?.throwIfAborted()
    if ('missing' in program) await cpu.sound(from, into, { ...bounds, ms: decodeMs }, signal)
    else await ffmpeg.sound(from, into, bounds, signal)
    const { size } = await stat(into)
    if (size < 2) throw refused('has no sound in it')
    if (size > limits.audio_decoded) throw refused('holds more than can be read of it here')
    if (size / 2 > seconds * sampleRate) throw refused(`lasts longer than ${seconds} s, the most here`)
    return { path: into, bytes: size - (size % 2), seconds: Math.floor(size / 2) / sampleRate }
  }

  return {
    decode,
    /**
     * Throws Failure `no_capacity` where as much is kept as may be. It is not waited for: what frees it are slots, and
     * who waits here may hold one.
     */
    admit(): void {
      if (kept >= maxWaiting * limits.audio_decoded)
        throw new Failure(
          'no_capacity',
          'Too many sounds are waiting for a free slot of their model. Try again in a moment.',
          { retryAfterMs: 5_000 },
        )
    },
    /** Counts the bytes of a decoded sound until what it returns is called. */
    keep(bytes: number): () => void {
      kept += bytes
      let left = bytes
      return () => {
        kept -= left
        left = 0
      }
    },
    /**
     * What a file is kept as, and how long it lasts. Without ffmpeg it is decoded for that into the file `scratch`.
     * Rejects with Failure `invalid_audio`.
     */
    async examine(path: string, scratch: string, signal?: AbortSignal) {
      if (!('missing' in (await ffmpeg.found()))) {
        const probe = await ffmpeg.probe(path, signal)
        return { ...checkProbe(probe, 'audio', limits.audio_length), durationMs: probe.durationMs }
      }
      const { seconds: lasts } = await decode(path, scratch, signal)
      const kind = audioKindOf(await headOf(path))
      return { ...types['kind' in kind ? kind.kind : 'wav']!, durationMs: Math.round(1000 * lasts) }
    },
  }
}
export type AudioDecoder = ReturnType<typeof openAudioDecoder>

async function headOf(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0)
  return buffer.subarray(0, bytesRead)
}
