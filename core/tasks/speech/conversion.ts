import { spawn } from 'node:child_process'
import { PassThrough, pipeline, type Readable, Transform, type TransformCallback } from 'node:stream'
import type { Cpu } from '../../cpu/cpu.ts'
import { openResampler } from '../../cpu/resample.ts'
import { Failure, invalid } from '../../failure.ts'
import type { Ffmpeg } from '../../media/ffmpeg.ts'
import { rateOf, type SpeechFormat, speechFormats } from '../../schemas/speech-format.ts'
import type { EngineAudio } from '../protocols/openai-audio.ts'
import { WavLength, WavSamples } from '../wav.ts'
import type { PreparedSpeech } from './speech.ts'

interface Converted {
  audio: Readable
  /** Samples per second, if known. Raw samples do not state it themselves. */
  rate?: number
  /** Duration of the audio that has passed so far; undefined if it is not counted. */
  seconds(): number | undefined
}

/** Output arguments of ffmpeg. One thread is enough: encoding takes a hundredth of the duration of the speech. */
const encodings = {
  opus: ['-c:a', 'libopus', '-b:a', '64k', '-f', 'ogg'],
  aac: ['-c:a', 'aac', '-b:a', '96k', '-f', 'adts'],
  flac: ['-c:a', 'flac', '-f', 'flac'],
} as const

/** ffmpeg reads the output of an engine, so it inherits none of infer's environment variables. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' }

/** Converts speech to formats that its engine does not write: to raw samples and MP3 always, to others with ffmpeg. */
export function openConversion({ cpu, ffmpeg }: { cpu: Pick<Cpu, 'mp3'>; ffmpeg: Pick<Ffmpeg, 'found'> }) {
  /** Throws Failure `unsupported_parameter` if infer cannot convert to the format. Called before an engine works. */
  async function check(from: SpeechFormat, to: SpeechFormat): Promise<void> {
    if (from === to || !(to in encodings)) return
    const found = await ffmpeg.found()
    if ('missing' in found)
      throw invalid(
        'response_format',
        `'response_format': infer converts the engine's WAV to ${to} with ffmpeg, but ${found.missing} mp3, wav and pcm work without ffmpeg.`,
        'unsupported_parameter',
      )
  }

  /** Returns the formats that callers can request from an engine that writes `written`. */
  async function offered(written: readonly SpeechFormat[]): Promise<SpeechFormat[]> {
    const hasFfmpeg = written.includes('wav') && !('missing' in (await ffmpeg.found()))
    return speechFormats.filter(
      format => written.includes(format) || (written.includes('wav') && (hasFfmpeg || !(format in encodings))),
    )
  }

  /**
   * Converts the audio of an engine from `engineFormat` to `format` while it arrives; raw samples get `sampleRate`,
   * whatever rate the engine writes. Resolves when the form of the audio is known. If it rejects, the engine's stream
   * is closed.
   */
  async function convert(
    { audio, contentType }: EngineAudio,
    { engineFormat, format, sampleRate }: Pick<PreparedSpeech, 'engineFormat' | 'format' | 'sampleRate'>,
  ): Promise<Converted> {
    try {
      if (format !== 'pcm') return await converted(audio, engineFormat, format)
      const raw: Converted =
        engineFormat === 'pcm'
          ? { audio, rate: rateOf(contentType), seconds: () => undefined }
          : await converted(audio, engineFormat, format)
      if (raw.rate === sampleRate) return raw
      return { ...raw, audio: joined(raw.audio, new PcmRate(raw.rate!, sampleRate)), rate: sampleRate }
    } catch (thrown) {
      audio.destroy()
      throw thrown
    }
  }

  async function converted(audio: Readable, from: SpeechFormat, to: SpeechFormat): Promise<Converted> {
    if (from === to && to === 'wav') {
      const counted = joined(audio, new WavLength())
      return { audio: counted, seconds: () => counted.seconds }
    }
    if (from === to) return { audio, seconds: () => undefined }
    if (to in encodings) {
      const found = await ffmpeg.found()
      if ('missing' in found)
        throw new Failure('worker_error', `ffmpeg was found before but is missing now: ${found.missing}`)
      const counted = joined(audio, new WavLength())
      const format = to as keyof typeof encodings
      return { audio: encoded(found.ffmpeg, counted, format), seconds: () => counted.seconds }
    }
    const samples = new WavSamples()
    const facts = new Promise<{ rate: number }>((resolve, reject) => {
      samples.once('facts', resolve)
      samples.once('error', reject)
    })
    joined(audio, samples)
    const { rate } = await facts
    const seconds = () => samples.seconds
    return { audio: to === 'mp3' ? joined(samples, cpu.mp3(rate)) : samples, rate, seconds }
  }

  return { check, convert, offered }
}
export type Conversion = ReturnType<typeof openConversion>

/** Pipes one stream to another and returns the second. An error on either side destroys both and reaches its reader. */
function joined<To extends NodeJS.WritableStream & Readable>(from: Readable, to: To): To {
  to.on('error', () => {})
  pipeline(from, to, () => {})
  return to
}

/** Encodes a WAV stream with ffmpeg. The program ends when either side ends. */
function encoded(program: string, audio: Readable, format: keyof typeof encodings): Readable {
  const args = ['-v', 'error', '-nostdin', '-threads', '1', '-protocol_whitelist', 'pipe', '-f', 'wav', '-i', 'pipe:0']
  const child = spawn(program, [...args, '-map_metadata', '-1', ...encodings[format], 'pipe:1'], {
    env: environment,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errorText = ''
  child.stderr.on('data', (piece: Buffer) => {
    errorText = (errorText + piece.toString('utf8')).slice(-4096)
  })
  // The end of stdout is the end of the audio only if ffmpeg exits with code 0.
  const output = new PassThrough()
  output.on('error', () => {})
  const broken = (cause: unknown) =>
    output.destroy(
      cause instanceof Failure
        ? cause
        : new Failure('worker_error', `The speech could not be converted to ${format}.`, { cause }),
    )
  child.stdout.pipe(output, { end: false })
  child.once('error', broken)
  child.once('close', code => (code === 0 ? output.end() : broken(errorText)))
  output.once('close', () => child.kill('SIGKILL'))
  pipeline(audio, child.stdin, error => {
    // EPIPE means that the program ended early: its exit code is reported instead.
    if (error && error.code !== 'EPIPE') broken(error)
  })
  return output
}

/** Resamples a stream of 16-bit little-endian mono samples. A minute of speech takes about 30 ms. */
class PcmRate extends Transform {
  #odd = Buffer.alloc(0)
  #out: number[] = []
  #resample: (piece: Float32Array) => void

  constructor(from: number, to: number) {
    super()
    this.#resample = openResampler(from, to, sample => void this.#out.push(sample))
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const all = this.#odd.length > 0 ? Buffer.concat([this.#odd, chunk]) : chunk
    const count = all.length >> 1
    this.#odd = Buffer.from(all.subarray(count * 2))
    const samples = new Float32Array(count)
    for (let at = 0; at < count; at++) samples[at] = all.readInt16LE(at * 2)
    this.#resample(samples)
    const bytes = Buffer.allocUnsafe(this.#out.length * 2)
    this.#out.forEach((sample, at) =>
      bytes.writeInt16LE(Math.max(-32_768, Math.min(32_767, Math.round(sample))), at * 2),
    )
    this.#out = []
    done(null, bytes)
  }
}
