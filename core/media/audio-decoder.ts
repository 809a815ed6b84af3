import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Limits } from '../config.ts'
import { audioKindOf } from '../cpu/audio-kind.ts'
import type { Cpu } from '../cpu/cpu.ts'
import { isPadded, readWavHead, wavHeadBytes } from '../cpu/wav.ts'
import { Failure } from '../failure.ts'
import type { Ffmpeg } from './ffmpeg.ts'
import { checkProbe } from './probe.ts'
import { isSilent } from './silence.ts'

/** Samples a second of the audio that engines get; 16 bits, one channel. */
export const sampleRate = 16_000

/** Audio in the form that engines get: 16-bit samples, one channel, 16,000 a second. Disposing of it removes its file. */
export interface DecodedAudio extends AsyncDisposable {
  /** The file of the samples, without a header. */
  path: string
  bytes: number
  seconds: number
  /** Whether nothing in it is loud enough for a voice. */
  silent: boolean
}

/** All decoded audio that waits for an engine has at most this many times `limits.audio_decoded`. */
const maxWaiting = 16
/** Far longer than the longest audio takes on a slow machine. */
const decodeMs = 120_000

const refused = (what: string) => new Failure('invalid_audio', `The audio ${what}.`)

/** Content type and extension of the formats that are decoded without ffmpeg. */
const types: Record<string, { contentType: string; ending: string }> = {
  wav: { contentType: 'audio/wav', ending: 'wav' },
  mp3: { contentType: 'audio/mpeg', ending: 'mp3' },
  flac: { contentType: 'audio/flac', ending: 'flac' },
  opus: { contentType: 'audio/ogg', ending: 'ogg' },
  vorbis: { contentType: 'audio/ogg', ending: 'ogg' },
}

/**
 * Opens the decoder of all audio: ffmpeg, or decoders in a thread where ffmpeg is not installed. The output is limited in
 * seconds and in bytes, whatever the header of the file says.
 */
export function openAudioDecoder({
  ffmpeg,
  cpu,
  limits,
}: {
  ffmpeg: Pick<Ffmpeg, 'found' | 'decodeAudio' | 'probe'>
  cpu: Pick<Cpu, 'decodeAudio'>
  limits: Pick<Limits, 'audio_length' | 'audio_decoded'>
}) {
  const seconds = limits.audio_length / 1000
  const bounds = { seconds, bytes: limits.audio_decoded, rate: sampleRate }
  /** Bytes of all decoded audio on the disk. */
  let kept = 0

  /** Whether an audio file is decoded in a thread: ffmpeg is missing, or decodes a file of this kind to noise. */
  async function decodedHere(path: string): Promise<boolean> {
    if ('missing' in (await ffmpeg.found())) return true
    const head = await headOf(path)
    const kind = audioKindOf(head)
    const wav = 'kind' in kind && kind.kind === 'wav' ? readWavHead(head, head.length) : ''
    return typeof wav !== 'string' && isPadded(wav)
  }

  /** Decodes an audio file and writes its samples to a new file. Rejects with Failure `invalid_audio`, `disk_full`. */
  async function decode(
    from: string,
    into: string,
    signal?: AbortSignal,
  ): Promise<Omit<DecodedAudio, keyof AsyncDisposable>> {
    const own = await decodedHere(from)
    signal?.throwIfAborted()
    if (own) await cpu.decodeAudio(from, into, { ...bounds, ms: decodeMs }, signal)
    else await ffmpeg.decodeAudio(from, into, bounds, signal)
    const { size } = await stat(into)
    if (size < 2) throw refused('has no samples')
    if (size > limits.audio_decoded) throw refused('decodes to more data than is allowed')
    if (size / 2 > seconds * sampleRate) throw refused(`lasts longer than ${seconds} s, the maximum`)
    const silent = await isSilent(into)
    return { path: into, bytes: size - (size % 2), seconds: Math.floor(size / 2) / sampleRate, silent }
  }

  return {
    decode,
    /**
     * Whether an audio file is silent. `folder` gets the decoded audio: of most files that ffmpeg decodes, the first two
     * seconds. Rejects with Failure `invalid_audio`, `disk_full`.
     */
    async isSilent(path: string, folder: string, signal?: AbortSignal): Promise<boolean> {
      if (!(await decodedHere(path))) {
        const start = join(folder, 'start')
        await ffmpeg.decodeAudio(path, start, { ...bounds, seconds: 1 }, signal)
        if (!(await isSilent(start))) return false
      }
      return (await decode(path, join(folder, 'decoded'), signal)).silent
    },
    /**
     * Throws Failure `no_capacity` if the limit of decoded audio is reached. Waiting could deadlock: only requests with a
     * slot free decoded audio, and the request that waits might have that slot.
     */
    admit(): void {
      if (kept >= maxWaiting * limits.audio_decoded)
        throw new Failure(
          'no_capacity',
          'Too many audio files are waiting for a free slot of their model. Try again in a few seconds.',
          { retryAfterMs: 5_000 },
        )
    },
    /** Counts the bytes of decoded audio until the returned function is called. */
    keep(bytes: number): () => void {
      kept += bytes
      let counted = bytes
      return () => {
        kept -= counted
        counted = 0
      }
    },
    /**
     * Resolves with the content type, extension and duration of an audio file. A file that ffmpeg does not decode is
     * decoded into the file `scratch` for this. Rejects with Failure `invalid_audio`.
     */
    async examine(path: string, scratch: string, signal?: AbortSignal) {
      if (!(await decodedHere(path))) {
        const probe = await ffmpeg.probe(path, signal)
        return { ...checkProbe(probe, 'audio', limits.audio_length), durationMs: probe.durationMs }
      }
      const { seconds: duration } = await decode(path, scratch, signal)
      const kind = audioKindOf(await headOf(path))
      return { ...types['kind' in kind ? kind.kind : 'wav']!, durationMs: Math.round(1000 * duration) }
    },
  }
}
export type AudioDecoder = ReturnType<typeof openAudioDecoder>

async function headOf(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(wavHeadBytes), 0, wavHeadBytes, 0)
  return buffer.subarray(0, bytesRead)
}
