import { accessSync, constants } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'
import { Failure } from '../failure.ts'
import { type MediaProbe, measuredMs, readProbe } from './probe.ts'
import { type Program, runProgram } from './program.ts'
import { openSemaphore } from './semaphore.ts'

export interface FoundFfmpeg {
  /** Absolute paths. */
  ffmpeg: string
  ffprobe: string
  version: string
  /** Whether it has the H.264 encoder. */
  libx264: boolean
  /** Whether it has the filter that interpolates frames. */
  minterpolate: boolean
}

interface FfmpegOptions {
  /** Names or paths from the configuration. Default: the programs on the PATH. */
  ffmpeg?: string | undefined
  ffprobe?: string | undefined
  environment: Readonly<Record<string, string | undefined>>
}

/** The containers that ffmpeg may open. Playlists are not among them, because they name other files. */
const containers = 'mov,mp4,matroska,webm,avi,mpegts,mp3,wav,flac,ogg,aac,asf,flv,caf,aiff'
const guarded = ['-protocol_whitelist', 'file,pipe', '-format_whitelist', containers]
/** A header with an absurd sample rate would make ffmpeg allocate all memory of the machine. */
const audioLimits = ['-timelimit', '60', '-threads', '1', '-max_alloc', String(128 << 20)]
/** A minute of video in 1080p takes about this long on two cores. */
const conversionMs = 600_000
const installation =
  'Install it (Debian, Ubuntu: sudo apt install ffmpeg), or name it in infer.yaml under media.ffmpeg.'

/**
 * Opens ffmpeg and ffprobe, which must be installed on the machine. They are located when they are first needed, and again
 * as long as they are missing. At most two processes run at once.
 */
export function openFfmpeg({ environment, ...options }: FfmpegOptions) {
  const semaphore = openSemaphore({
    permits: 2,
    maxWaiting: 256,
    full: 'Too many videos are being examined at once. Try again in a few seconds.',
  })
  let search: Promise<FoundFfmpeg | { missing: string }> | undefined

  const run = (program: Program): Promise<Buffer> => semaphore.run('ffmpeg', program.signal, () => runProgram(program))

  async function locateBoth(): Promise<FoundFfmpeg | { missing: string }> {
    const ffmpeg = locate(options.ffmpeg ?? 'ffmpeg', environment.PATH)
    const ffprobe = locate(options.ffprobe ?? 'ffprobe', environment.PATH)
    const missing = [ffmpeg ? [] : [options.ffmpeg ?? 'ffmpeg'], ffprobe ? [] : [options.ffprobe ?? 'ffprobe']].flat()
    if (!ffmpeg || !ffprobe)
      return { missing: `${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not installed. ${installation}` }
    try {
      const answer = await semaphore.run('ffmpeg', undefined, () => ffmpegVersion(ffmpeg))
      if ('fault' in answer) return { missing: `${ffmpeg} ${answer.fault}. ${installation}` }
      const { version } = answer
      const outputOf = async (...args: string[]) => (await run({ file: ffmpeg, args })).toString('utf8')
      await run({ file: ffprobe, args: ['-version'] })
      const encoders = await outputOf('-hide_banner', '-encoders')
      const filters = await outputOf('-hide_banner', '-filters')
      const [libx264, minterpolate] = [/\slibx264\s/.test(encoders), /\sminterpolate\s/.test(filters)]
      return { ffmpeg, ffprobe, version, libx264, minterpolate }
    } catch (cause) {
      return { missing: `${ffmpeg} cannot be run: ${(cause as Error).message} ${installation}` }
    }
  }

  async function found(): Promise<FoundFfmpeg | { missing: string }> {
    search ??= locateBoth()
    const answer = await search
    if ('missing' in answer) search = undefined
    return answer
  }

  /** Rejects with Failure `unsupported_task`, whose message says what to install. */
  async function required(): Promise<FoundFfmpeg> {
    const answer = await found()
    if ('missing' in answer)
      throw new Failure('unsupported_task', `Video and audio need ffmpeg on this server: ${answer.missing}`)
    return answer
  }

  /**
   * Measures the duration of a file whose header has none, as recorders of browsers and programs that write to a pipe
   * leave it: by the times of its packets, without decoding them.
   */
  async function withDuration(probe: MediaProbe, path: string, signal?: AbortSignal): Promise<MediaProbe> {
    if (probe.durationMs > 0) return probe
    const { ffmpeg } = await required()
    const from = [...guarded, '-i', `file:${path}`, '-map', '0:V:0?', '-map', '0:a?', '-c', 'copy']
    const out = ['-f', 'null', '-progress', 'pipe:1', '/dev/null']
    const args = ['-v', 'error', '-nostdin', ...audioLimits, ...from, ...out]
    const progress = await run({ file: ffmpeg, args, signal })
    return { ...probe, durationMs: measuredMs(progress.toString('utf8'), probe) }
  }

  return {
    /** Resolves with paths and features, or with a sentence on what is missing and how to install it. Never rejects. */
    found,
    required,
    /**
     * Examines the content of a video or audio file, also one whose header has no duration. Rejects with Failure
     * `invalid_video` when it is neither.
     */
    async probe(path: string, signal?: AbortSignal): Promise<MediaProbe> {
      const { ffprobe } = await required()
      const about = ['-v', 'error', ...guarded, '-print_format', 'json', '-show_format', '-show_streams']
      const probeWith = (...more: string[]) => run({ file: ffprobe, args: [...about, ...more, `file:${path}`], signal })
      const probe = readProbe(await probeWith())
      if (probe.kind === 'audio' || probe.frames !== null) return withDuration(probe, path, signal)
      // Few containers store the number of frames. For others ffprobe counts packets, without decoding them.
      const counted = readProbe(await probeWith('-select_streams', 'v:0', '-count_packets'))
      return withDuration({ ...probe, frames: counted.frames }, path, signal)
    },
    /**
     * Decodes the audio of a file to the new file `into`: 16-bit samples in one channel, `rate` a second. It writes up to a
     * second more than the limit, so that the caller can detect an excess. Rejects with Failure `invalid_video`,
     * `disk_full`.
     */
    async decodeAudio(
      path: string,
      into: string,
      { seconds, bytes, rate }: { seconds: number; bytes: number; rate: number },
      signal?: AbortSignal,
    ): Promise<void> {
      const { ffmpeg } = await required()
      const outputLimits = ['-t', String(seconds + 1), '-fs', String(bytes + 2)]
      const from = [...guarded, '-i', `file:${path}`, '-map', '0:a:0', '-vn', '-sn', '-dn', ...outputLimits]
      const out = ['-ac', '1', '-ar', String(rate), '-f', 's16le', '-n', `file:${into}`]
      const args = ['-v', 'error', '-nostdin', ...audioLimits, ...from, ...out]
      await run({ file: ffmpeg, args, signal }).catch((thrown: unknown) => {
        throw isWithoutAudio(thrown) ? new Failure('invalid_audio', 'The file has no audio track.') : thrown
      })
    },
    /**
     * Converts a video of an engine to the new file `into`: MP4 (H.264), with the same frames. Rejects with Failure
     * `unsupported_task` if ffmpeg has no H.264 encoder, `invalid_video`, `disk_full`.
     */
    async toMp4(path: string, into: string, maxBytes: number, signal?: AbortSignal): Promise<void> {
      const { ffmpeg, libx264, version } = await required()
      if (!libx264)
        throw new Failure(
          'unsupported_task',
          `ffmpeg ${version} of this server has no encoder libx264. ${installation}`,
        )
      const from = [...guarded, '-i', `file:${path}`, '-map', '0:v:0', '-an', '-sn', '-dn']
      // H.264 for every player needs even sides and 4:2:0.
      const video = ['-vf', 'pad=ceil(iw/2)*2:ceil(ih/2)*2', '-c:v', 'libx264', '-crf', '16', '-pix_fmt', 'yuv420p']
      // Twice, so that a video that was cut is too large and is refused.
      const out = ['-movflags', '+faststart', '-fs', String(2 * maxBytes), '-f', 'mp4', '-n']
      const processLimits = ['-timelimit', '1200', '-threads', '2']
      const args = ['-v', 'error', '-nostdin', ...processLimits, ...from, ...video, ...out, `file:${into}`]
      await run({ file: ffmpeg, args, signal, deadlineMs: conversionMs })
    },
    /** Resolves with the frame at `atMs` as a PNG in the size of the video. Rejects with Failure `invalid_video`. */
    async frame(path: string, atMs = 0, signal?: AbortSignal): Promise<Buffer> {
      const { ffmpeg } = await required()
      const from = [...guarded, '-ss', (atMs / 1000).toFixed(3), '-i', `file:${path}`]
      const into = ['-map', '0:v:0', '-frames:v', '1', '-f', 'image2pipe', '-c:v', 'png', 'pipe:1']
      // `-timelimit` limits its CPU time also if this server is killed and cannot end it.
      const args = ['-v', 'error', '-nostdin', '-timelimit', '60', '-threads', '1', ...from, ...into]
      const image = await run({ file: ffmpeg, args, signal, maxOutput: 128 << 20 })
      if (image.length === 0) throw new Failure('invalid_video', `The video has no frame at ${atMs} ms.`)
      return image
    },
  }
}
export type Ffmpeg = ReturnType<typeof openFfmpeg>

/** Whether ffmpeg failed because the audio track that it shall decode does not exist. The cause is its error output. */
const isWithoutAudio = (thrown: unknown): boolean =>
  thrown instanceof Failure && /matches no streams/.test(String(thrown.cause))

/** Returns the absolute path of an executable, from its path or its name on the PATH; undefined without one. */
function locate(name: string, path = ''): string | undefined {
  const candidates = name.includes('/') ? [name] : path.split(delimiter).map(folder => join(folder, name))
  return candidates.filter(isAbsolute).find(candidate => {
    try {
      accessSync(candidate, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Released in 2018; all supported distributions have a newer one, and older ones are untested. */
const oldestMajor = 4

/**
 * Runs the program at this path with `-version`. `fault`: why it cannot be used, as the end of a sentence that begins
 * with its path. Never rejects.
 */
export async function ffmpegVersion(file: string): Promise<{ version: string } | { fault: string }> {
  try {
    const text = (await runProgram({ file, args: ['-version'], deadlineMs: 10_000 })).toString('utf8')
    const version = /^ffmpeg version (\S+)/.exec(text)?.[1]
    if (version === undefined) return { fault: 'is not ffmpeg' }
    if (isTooOld(version))
      return { fault: `has version ${version}, which is too old: ${oldestMajor} or newer is needed` }
    return { version }
  } catch {
    // The message of `runProgram` does not fit here: it is about files that callers send.
    return { fault: 'cannot be run: it failed with the option -version' }
  }
}

/** Builds from a repository have a commit in place of a number and count as new. */
const isTooOld = (version: string): boolean => Number(/^n?(\d+)\./.exec(version)?.[1] ?? oldestMajor) < oldestMajor
