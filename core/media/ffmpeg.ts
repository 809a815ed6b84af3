import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { Failure } from '../failure.ts'
import { ffmpegVersion } from './ffmpeg-version.ts'
import { type Probe, readProbe } from './probe.ts'
import { type Program, runProgram } from './program.ts'
import { openSemaphore } from './semaphore.ts'

export interface FoundFfmpeg {
  /** Absolute paths. */
  ffmpeg: string
  ffprobe: string
  version: string
  /** Whether it writes H.264. */
  libx264: boolean
  /** Whether it makes frames between frames. */
  minterpolate: boolean
}

interface FfmpegOptions {
  /** As in the configuration; those on the PATH where absent. */
  ffmpeg?: string | undefined
  ffprobe?: string | undefined
  environment: Readonly<Record<string, string | undefined>>
}

/** Files of these kinds are looked into; the rest is not opened, playlists that name other files least of all. */
const containers = 'mov,mp4,matroska,webm,avi,mpegts,mp3,wav,flac,ogg,aac,asf,flv,caf,aiff'
const guarded = ['-protocol_whitelist', 'file,pipe', '-format_whitelist', containers]
const installation =
  'Install it (Debian, Ubuntu: sudo apt install ffmpeg), or name it in infer.yaml under media.ffmpeg.'

/**
 * ffmpeg and ffprobe, which are programs of the machine and no part of this one. They are looked for when they are
 * needed first; what was missing then is looked for again. At most two run at once.
 */
export function openFfmpeg({ environment, ...options }: FfmpegOptions) {
  const semaphore = openSemaphore({
    permits: 2,
    maxWaiting: 256,
    full: 'Too many videos are being looked into at once. Try again in a moment.',
  })
  let search: Promise<FoundFfmpeg | { missing: string }> | undefined

  /** Runs one of them to its end. `what` names the work in a message. */
  const run = (program: Program): Promise<Buffer> => semaphore.run('ffmpeg', program.signal, () => runProgram(program))

  async function look(): Promise<FoundFfmpeg | { missing: string }> {
    const ffmpeg = locate(options.ffmpeg ?? 'ffmpeg', environment.PATH)
    const ffprobe = locate(options.ffprobe ?? 'ffprobe', environment.PATH)
    const absent = [ffmpeg ? [] : [options.ffmpeg ?? 'ffmpeg'], ffprobe ? [] : [options.ffprobe ?? 'ffprobe']].flat()
    if (!ffmpeg || !ffprobe)
      return { missing: `${absent.join(' and ')} ${absent.length > 1 ? 'are' : 'is'} not installed. ${installation}` }
    try {
      const answer = await semaphore.run('ffmpeg', undefined, () => ffmpegVersion(ffmpeg))
      if ('fault' in answer) return { missing: `${ffmpeg} ${answer.fault}. ${installation}` }
      const { version } = answer
      const say = async (...args: string[]) => (await run({ file: ffmpeg, args })).toString('utf8')
      await run({ file: ffprobe, args: ['-version'] })
      const encoders = await say('-hide_banner', '-encoders')
      const filters = await say('-hide_banner', '-filters')
      const [libx264, minterpolate] = [/\slibx264\s/.test(encoders), /\sminterpolate\s/.test(filters)]
      return { ffmpeg, ffprobe, version, libx264, minterpolate }
    } catch (cause) {
      return { missing: `${ffmpeg} cannot be run: ${(cause as Error).message} ${installation}` }
    }
  }

  async function found(): Promise<FoundFfmpeg | { missing: string }> {
    search ??= look()
    const answer = await search
    if ('missing' in answer) search = undefined
    return answer
  }

  /** Throws Failure `unsupported_task` with what to install. */
  async function required(): Promise<FoundFfmpeg> {
    const answer = await found()
    if ('missing' in answer)
      throw new Failure('unsupported_task', `Videos and sound need ffmpeg on this server: ${answer.missing}`)
    return answer
  }

  return {
    /** Where they are and what they can do, or a sentence on what is missing and how to get it. Never rejects. */
    found,
    required,
    /** What a video or sound file is, by its content. Rejects with Failure `invalid_video` when it is neither. */
    async probe(path: string, signal?: AbortSignal): Promise<Probe> {
      const { ffprobe } = await required()
      const about = ['-v', 'error', ...guarded, '-print_format', 'json', '-show_format', '-show_streams']
      const ask = (...more: string[]) => run({ file: ffprobe, args: [...about, ...more, `file:${path}`], signal })
      const probe = readProbe(await ask())
      if (probe.kind === 'audio' || probe.frames !== null) return probe
      // Few containers count their frames; the others are read through without being decoded.
      const counted = readProbe(await ask('-select_streams', 'v:0', '-count_packets'))
      return { ...probe, frames: counted.frames }
    },
    /**
     * Writes the sound of a file to the new file `into`: samples of 16 bits in one channel, `rate` a second, a second more
     * than the bound at most so that it can be told. Rejects with Failure `invalid_video`, `disk_full`.
     */
    async sound(
      path: string,
      into: string,
      { seconds, bytes, rate }: { seconds: number; bytes: number; rate: number },
      signal?: AbortSignal,
    ): Promise<void> {
      const { ffmpeg } = await required()
      const most = ['-t', String(seconds + 1), '-fs', String(bytes + 2)]
      const from = [...guarded, '-i', `file:${path}`, '-map', '0:a:0', '-vn', '-sn', '-dn', ...most]
      const out = ['-ac', '1', '-ar', String(rate), '-f', 's16le', '-n', `file:${into}`]
      // A rate that nobody has would make it ask for the memory of the machine.
      const bounds = ['-timelimit', '60', '-threads', '1', '-max_alloc', String(128 << 20)]
      await run({ file: ffmpeg, args: ['-v', 'error', '-nostdin', ...bounds, ...from, ...out], signal })
    },
    /** The frame at `atMs` as a PNG, in the size of the video. Rejects with Failure `invalid_video`. */
    async frame(path: string, atMs = 0, signal?: AbortSignal): Promise<Buffer> {
      const { ffmpeg } = await required()
      const from = [...guarded, '-ss', (atMs / 1000).toFixed(3), '-i', `file:${path}`]
      const into = ['-map', '0:v:0', '-frames:v', '1', '-f', 'image2pipe', '-c:v', 'png', 'pipe:1']
      // Its own bound on the processor's time holds where this server is killed and cannot end it.
      const args = ['-v', 'error', '-nostdin', '-timelimit', '60', '-threads', '1', ...from, ...into]
      const picture = await run({ file: ffmpeg, args, signal, maxOutput: 128 << 20 })
      if (picture.length === 0) throw new Failure('invalid_video', `The video has no frame at ${atMs} ms.`)
      return picture
    },
  }
}
export type Ffmpeg = ReturnType<typeof openFfmpeg>

/** The program of that name, or at that path; undefined where there is none that may be run. */
function locate(name: string, path = ''): string | undefined {
  const places = name.includes('/') ? [name] : path.split(delimiter).map(folder => join(folder, name))
  return places.filter(isAbsolute).find(place => {
    try {
      accessSync(place, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
