import { spawn } from 'node:child_process'
import { PassThrough, pipeline, type Readable } from 'node:stream'
import type { Cpu } from '../../cpu/cpu.ts'
import { Failure } from '../../failure.ts'
import type { Ffmpeg } from '../../media/ffmpeg.ts'
import { rateOf, type SpeechFormat, speechFormats } from '../../schemas/speech-format.ts'
import type { EngineAudio } from '../protocols/synthesize.ts'
import { WavLength, WavSamples } from '../wav.ts'
import { PcmRate } from './pcm-rate.ts'
import type { PreparedSpeech } from './speech.ts'

export interface Converted {
  sound: Readable
  /** Samples a second, where that is known: of raw samples nothing else says so. */
  rate?: number
  /** How long what has passed so far lasts; undefined where it is not counted. */
  seconds(): number | undefined
}

/** What ffmpeg is told to write. One thread: speech takes a hundredth of its own length. */
const encodings = {
  opus: ['-c:a', 'libopus', '-b:a', '64k', '-f', 'ogg'],
  aac: ['-c:a', 'aac', '-b:a', '96k', '-f', 'adts'],
  flac: ['-c:a', 'flac', '-f', 'flac'],
} as const

/** Nothing of ours is in the environment of a program that reads what an engine made. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' }

/** Speech in another form than its engine writes: raw samples and MP3 always, the others with ffmpeg. */
export function openConversion({ cpu, ffmpeg }: { cpu: Pick<Cpu, 'mp3'>; ffmpeg: Pick<Ffmpeg, 'found'> }) {
  /** Throws Failure `unsupported_parameter` for what cannot be made here, before anything is asked of an engine. */
  async function check(asked: SpeechFormat, wanted: SpeechFormat): Promise<void> {
    if (asked === wanted || !(wanted in encodings)) return
    const found = await ffmpeg.found()
    if ('missing' in found)
      throw new Failure(
        'unsupported_parameter',
        `'response_format': ${wanted} is made of the engine's WAV with ffmpeg, and ${found.missing} mp3, wav and pcm work without.`,
        { param: 'response_format' },
      )
  }

  /** What callers can have of an engine that writes these. */
  async function offered(written: readonly SpeechFormat[]): Promise<SpeechFormat[]> {
    const isHere = written.includes('wav') && !('missing' in (await ffmpeg.found()))
    return speechFormats.filter(
      format => written.includes(format) || (written.includes('wav') && (isHere || !(format in encodings))),
    )
  }

  /**
   * The audio as it comes, of an engine that was asked for `asked`; raw samples in `sampleRate`, whatever rate the engine
   * writes. Resolves when it is known what it is. Where it rejects, nothing more is taken of the engine.
   */
  async function convert(
    { sound, contentType }: EngineAudio,
    { asked, format, sampleRate }: Pick<PreparedSpeech, 'asked' | 'format' | 'sampleRate'>,
  ): Promise<Converted> {
    try {
      if (format !== 'pcm') return await converted(sound, asked, format)
      const raw: Converted =
        asked === 'pcm'
          ? { sound, rate: rateOf(contentType), seconds: () => undefined }
          : await converted(sound, asked, format)
      if (raw.rate === sampleRate) return raw
      return { ...raw, sound: joined(raw.sound, new PcmRate(raw.rate!, sampleRate)), rate: sampleRate }
    } catch (thrown) {
      sound.destroy()
      throw thrown
    }
  }

  async function converted(sound: Readable, asked: SpeechFormat, wanted: SpeechFormat): Promise<Converted> {
    if (asked === wanted) return { sound, seconds: () => undefined }
    if (wanted in encodings) {
      const found = await ffmpeg.found()
      if ('missing' in found) throw new Failure('worker_error', `ffmpeg was here a moment ago: ${found.missing}`)
      const counted = joined(sound, new WavLength())
      const format = wanted as keyof typeof encodings
      return { sound: encoded(found.ffmpeg, counted, format), seconds: () => counted.seconds }
    }
    const samples = new WavSamples()
    const facts = new Promise<{ rate: number }>((resolve, reject) => {
      samples.once('facts', resolve)
      samples.once('error', reject)
    })
    joined(sound, samples)
    const { rate } = await facts
    const seconds = () => samples.seconds
    return { sound: wanted === 'mp3' ? joined(samples, cpu.mp3(rate)) : samples, rate, seconds }
  }

  return { check, convert, offered }
}
export type Conversion = ReturnType<typeof openConversion>

/** What breaks on one side breaks the other, and whoever reads the last hears of it. */
function joined<To extends NodeJS.WritableStream & Readable>(from: Readable, to: To): To {
  to.on('error', () => {})
  pipeline(from, to, () => {})
  return to
}

/** What ffmpeg makes of a WAV file that comes and goes piece by piece. The program ends with either side. */
function encoded(program: string, sound: Readable, format: keyof typeof encodings): Readable {
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
  // The end of what it writes is the end of the sound only when it has ended well.
  const output = new PassThrough()
  output.on('error', () => {})
  const broken = (cause: unknown) =>
    output.destroy(
      cause instanceof Failure
        ? cause
        : new Failure('worker_error', `The speech could not be made ${format}.`, { cause }),
    )
  child.stdout.pipe(output, { end: false })
  child.once('error', broken)
  child.once('close', code => (code === 0 ? output.end() : broken(errorText)))
  output.once('close', () => child.kill('SIGKILL'))
  pipeline(sound, child.stdin, error => {
    // That the program ended early is told by how it ended.
    if (error && error.code !== 'EPIPE') broken(error)
  })
  return output
}
