import { spawn } from 'node:child_process'
import { Failure } from '../failure.ts'

export interface Program {
  file: string
  args: readonly string[]
  signal?: AbortSignal | undefined
  /** Milliseconds; a minute when absent. */
  deadlineMs?: number
  /** Bytes of its output; a megabyte when absent. */
  maxOutput?: number
}

/** Nothing of ours is in the environment of a program that reads what strangers sent. */
const environment = { PATH: '/usr/local/bin:/usr/bin:/bin', LANG: 'C.UTF-8', HOME: '/nonexistent' }

/** As the system's library puts it. */
const noRoom = /No space left on device|Disk quota exceeded/

/**
 * Runs a program to its end and gives back what it wrote. It has no input, a bare environment and a group of its own,
 * which is killed as a whole at the deadline, when it writes too much and when the signal aborts. Rejects with Failure
 * `invalid_video` when it fails: what it is given is what callers sent; `disk_full`; or with the signal's reason.
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
    const aborted = () => stop(signal?.reason as Error)
    const late = () => stop(new Failure('invalid_video', `The file could not be read within ${deadlineMs / 1000} s.`))
    const deadline = setTimeout(late, deadlineMs)
    signal?.addEventListener('abort', aborted, { once: true })
    const over = () => {
      clearTimeout(deadline)
      signal?.removeEventListener('abort', aborted)
    }

    child.stdout.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes > maxOutput) stop(new Failure('invalid_video', 'The file holds more than can be read of it here.'))
      else pieces.push(piece)
    })
    child.stderr.on('data', (piece: Buffer) => {
      errorText = (errorText + piece.toString('utf8')).slice(-4096)
    })
    child.once('error', cause => {
      over()
      reject(new Failure('internal_error', `${file} could not be started.`, { cause }))
    })
    child.once('close', code => {
      over()
      if (stopped !== undefined) return reject(stopped)
      // Whatever it ends with: ffmpeg takes it for a success where only the last of a file found no room.
      if (noRoom.test(errorText))
        return reject(
          new Failure(
            'disk_full',
            'There is no room on the disk for what is made of the file. Try again when there is.',
            {
              cause: errorText,
            },
          ),
        )
      if (code === 0) return resolve(Buffer.concat(pieces))
      reject(
        new Failure('invalid_video', 'The file could not be read: it is damaged, cut short or of an unknown kind.', {
          cause: errorText,
        }),
      )
    })
  })
}

/** The program and what it has started. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended since.
  }
}
