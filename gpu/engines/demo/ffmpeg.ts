import { type ChildProcess, spawn } from 'node:child_process'
import { Failure } from '../../../core/failure.ts'

/** Last words of a program that are repeated, in characters. */
const lastWords = 600

/** One core a program. */
const careful = ['-hide_banner', '-nostdin', '-v', 'error', '-y', '-threads', '1', '-filter_threads', '1']

/** Kinds of files that hold what they show; none is a list of other files. */
const containers = 'mov,mp4,matroska,webm,avi,mpegts,mp3,wav,flac,ogg,aac,asf,flv,caf,aiff'
export const fromFile = (path: string): string[] =>
  [
    ['-protocol_whitelist', 'file,pipe', '-format_whitelist', containers],
    ['-i', `file:${path}`],
  ].flat()

/** How every video is written: plays everywhere, from its first bytes on, and the same bytes for the same frames. */
export const asMp4 = (path: string): string[] =>
  [
    ['-map_metadata', '-1', '-c:v', 'libx264', '-preset', 'veryfast', '-crf', '21', '-pix_fmt', 'yuv420p'],
    ['-threads', '1', '-fflags', '+bitexact', '-flags:v', '+bitexact', '-flags:a', '+bitexact'],
    ['-movflags', '+faststart', '-f', 'mp4', `file:${path}`],
  ].flat()

/** Sound that goes along. */
export const asAac = ['-c:a', 'aac', '-b:a', '128k']

/** One run of ffmpeg. `ended` settles when the process is gone: rejects with Failure or with the signal's reason. */
export interface FfmpegRun {
  child: ChildProcess
  ended: Promise<void>
}

/** Starts ffmpeg; the signal kills it. Whatever reads or writes its pipes hears of its end there. */
export function startFfmpeg(program: string, args: readonly string[], signal: AbortSignal): FfmpegRun {
  signal.throwIfAborted()
  const child = spawn(program, [...careful, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  const kill = () => child.kill('SIGKILL')
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-lastWords)
  })
  // A pipe that breaks is told of by the end of the process.
  child.stdin.on('error', () => {})
  signal.addEventListener('abort', kill, { once: true })
  const ended = new Promise<void>((resolve, reject) => {
    let broken: Error | undefined
    child.once('error', error => {
      broken = error
      if (child.pid === undefined) reject(missing(program, error))
    })
    child.once('close', (code, by) => {
      signal.removeEventListener('abort', kill)
      if (signal.aborted) return reject(signal.reason as Error)
      if (code === 0 && !broken) return resolve()
      const encoder = /Unknown encoder '(\w+)'/.exec(words)?.[1]
      if (encoder) return reject(lacking(program, encoder))
      const how = broken?.message ?? (code === null ? `was ended by ${by}` : `ended with ${code}`)
      reject(new Failure('worker_error', `ffmpeg ${how}${words ? `: ${words.trim()}` : ''}.`))
    })
  })
  ended.catch(() => {})
  return { child, ended }
}

const missing = (program: string, cause: unknown): Failure =>
  new Failure(
    'unsupported_task',
    `Videos are made with the program ffmpeg, and '${program}' cannot be started: ${(cause as Error).message}. Install it (apt install ffmpeg, dnf install ffmpeg, brew install ffmpeg) or name it with --ffmpeg.`,
    { cause },
  )

const lacking = (program: string, encoder: string): Failure =>
  new Failure(
    'unsupported_task',
    `Videos are written with ${encoder}, which '${program}' was built without. Install an ffmpeg that has it, or name one with --ffmpeg.`,
  )

const found = new Set<string>()

/** Throws Failure `unsupported_task`, which says what to install, where there is no ffmpeg. */
export async function checkFfmpeg(program: string, signal: AbortSignal): Promise<void> {
  if (found.has(program)) return
  const { child, ended } = startFfmpeg(program, ['-version'], signal)
  child.stdin?.end()
  child.stdout?.resume()
  await ended
  found.add(program)
}
