import { spawn } from 'node:child_process'
import { Failure } from '../failure.ts'

export interface Program {
  file: string
  args: readonly string[]
  signal?: AbortSignal | undefined
  /** Milliseconds; a minute when absent. */
  deadlineMs?: number
  /** Maximum bytes of its output; a megabyte when absent. */
  maxOutput?: number
}

/** A program that reads untrusted files inherits nothing from our environment. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' }

/** Messages of the C library for a full disk. */
const diskFull = /No space left on device|Disk quota exceeded/

/**
 * Runs a program and resolves with its output. It has no input, a minimal environment and its own process group, which is
 * killed at the deadline, when the output is too large and when the signal aborts. Rejects with Failure `invalid_video`
 * when the program fails, because its input is a file of a caller; with `disk_full`; or with the signal's reason.
 */
export function runProgram({ file, args, signal, deadlineMs = 60_000, maxOutput = 1 << 20 }: Program): Promise<Buffer> {
  signal?.throwIfAborted()
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env: environment, detached: true, stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' })
    const pieces: Buffer[] = []
    let bytes = 0
    let errorText = ''
    let stopped: Error | undefined

    const stop = (reason: Error) => {
      stopped ??= reason
      killGroup(child.pid)
    }
    const onAbort = () => stop(signal?.reason as Error)
    const onDeadline = () =>
      stop(new Failure('invalid_video', `The file could not be read within ${deadlineMs / 1000} s.`))
    const deadline = setTimeout(onDeadline, deadlineMs)
    signal?.addEventListener('abort', onAbort, { once: true })
    const cleanUp = () => {
      clearTimeout(deadline)
      signal?.removeEventListener('abort', onAbort)
    }

    child.stdout.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > maxOutput) stop(new Failure('invalid_video', 'The file produces more output than is allowed.'))
      else pieces.push(piece)
    })
    child.stderr.on('data', (piece: Buffer) => {
      errorText = (errorText + piece.toString('utf8')).slice(-4096)
    })
    child.once('error', cause => {
      cleanUp()
      reject(new Failure('internal_error', `${file} could not be started.`, { cause }))
    })
    child.once('close', code => {
      cleanUp()
      if (stopped !== undefined) return reject(stopped)
      // Checked before the exit code: ffmpeg reports success if only the last bytes of a file could not be written.
      if (diskFull.test(errorText))
        return reject(
          new Failure('disk_full', 'The disk has no space for the converted file. Free some space and try again.', {
            cause: errorText,
          }),
        )
      if (code === 0) return resolve(Buffer.concat(pieces))
      reject(
        new Failure('invalid_video', 'The file could not be read: it is damaged, cut short or of an unknown format.', {
          cause: errorText,
        }),
      )
    })
  })
}

/** Kills the program and its children. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
}
