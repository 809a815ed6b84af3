import { spawn } from 'node:child_process'
import { Failure } from '../../../core/failure.ts'

/** Maximum characters of ffmpeg's error output in a message. */
const maxErrorText = 600

/** Limits each ffmpeg process to one core. */
const commonArguments = ['-hide_banner', '-nostdin', '-v', 'error', '-y', '-threads', '1', '-filter_threads', '1']

/** Formats that contain the media themselves. Playlists are excluded because they refer to other files. */
const containers = 'mov,mp4,matroska,webm,avi,mpegts,mp3,wav,flac,ogg,aac,asf,flv,caf,aiff'
export const fromFile = (path: string): string[] =>
  [
    ['-protocol_whitelist', 'file,pipe', '-format_whitelist', containers],
    ['-i', `file:${path}`],
  ].flat()

/** Output arguments: widely playable, streamable, and the same bytes for the same frames. */
export const asMp4 = (path: string): string[] =>
  [
    ['-map_metadata', '-1', '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '21', '-pix_fmt', 'yuv420p'],
    ['-threads', '1', '-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'],
    ['-movflags', '+faststart', '-f', 'mp4', `file:${path}`],
  ].flat()

export const asAac = ['-c:a', 'aac', '-b:a', '128k']

/**
 * Starts ffmpeg; the signal kills it. `ended` settles when the process has exited and its pipes are closed; it rejects with
 * Failure or the signal's reason.
 */
export function startFfmpeg(program: string, args: readonly string[], signal: AbortSignal) {
  signal.throwIfAborted()
  const child = spawn(program, [...commonArguments, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  const kill = () => child.kill('SIGKILL')
  let errorText = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errorText = (errorText + text).slice(-maxErrorText)
  })
  // A broken pipe is reported by the exit of the process.
  child.stdin.on('error', () => {})
  signal.addEventListener('abort', kill, { once: true })
  const ended = new Promise<void>((resolve, reject) => {
    let broken: Error | undefined
    child.once('error', error => {
      broken = error
      if (child.pid === undefined) reject(notStarted(program, error))
    })
    child.once('close', (code, by) => {
      signal.removeEventListener('abort', kill)
      if (signal.aborted) return reject(signal.reason as Error)
      if (code === 0 && !broken) return resolve()
      const encoder = /Unknown encoder '(\w+)'/.exec(errorText)?.[1]
      if (encoder) return reject(encoderMissing(program, encoder))
      const how = broken?.message ?? (code === null ? `was ended by ${by}` : `exited with ${code}`)
      reject(new Failure('worker_error', `ffmpeg ${how}${errorText ? `: ${errorText.trim()}` : ''}.`))
    })
  })
  ended.catch(() => {})
  return { child, ended }
}

export type FfmpegRun = ReturnType<typeof startFfmpeg>

const notStarted = (program: string, cause: unknown): Failure =>
  new Failure(
    'unsupported_task',
    `Video tasks need the program ffmpeg, and '${program}' cannot be started: ${(cause as Error).message}. Install it (apt install ffmpeg, dnf install ffmpeg, brew install ffmpeg) or give its path with --ffmpeg.`,
    { cause },
  )

const encoderMissing = (program: string, encoder: string): Failure =>
  new Failure(
    'unsupported_task',
    `Video tasks need the encoder ${encoder}, which '${program}' was built without. Install an ffmpeg with this encoder, or give its path with --ffmpeg.`,
  )

const working = new Set<string>()

/** Throws Failure `unsupported_task` with installation advice if ffmpeg cannot be started. */
export async function checkFfmpeg(program: string, signal: AbortSignal): Promise<void> {
  if (working.has(program)) return
  const { child, ended } = startFfmpeg(program, ['-version'], signal)
  child.stdin.end()
  child.stdout.resume()
  await ended
  working.add(program)
}
