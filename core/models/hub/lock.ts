import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { invalidValue } from '../../failure.ts'

/** Exit code of `flock` when another process holds the lock. */
const taken = 75

/**
 * Runs `run` while this process holds the lock of a file, which the tools of the hub take too, so that no two processes
 * write the same blob. Node cannot lock files, so this starts `flock` of util-linux. It ends when the pipe to it is
 * closed, so that the lock is released even if this process is killed. `onWait` is called if another process has the lock.
 */
export async function withLock<T>(
  path: string,
  { signal, onWait }: { signal: AbortSignal; onWait: () => void },
  run: () => Promise<T>,
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true })
  let release = await acquire(path, ['--nonblock', '--conflict-exit-code', String(taken)], signal)
  if (!release) {
    onWait()
    release = await acquire(path, [], signal)
  }
  try {
    return await run()
  } finally {
    await release?.()
  }
}

/** Resolves with the function that releases the lock; undefined when another process has it. */
function acquire(path: string, how: string[], signal: AbortSignal): Promise<(() => Promise<void>) | undefined> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    // In its own session, so that Ctrl-C reaches only this process and does not release the lock early.
    const child = spawn('flock', ['--exclusive', ...how, path, 'sh', '-c', 'echo; exec cat'], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    })
    const ended = new Promise<number | null>(resolveEnd => child.once('close', resolveEnd))
    const stop = () => child.kill('SIGKILL')
    signal.addEventListener('abort', stop, { once: true })
    const settled = () => signal.removeEventListener('abort', stop)
    let errorText = ''
    child.stderr.on('data', piece => {
      errorText += String(piece)
    })
    child.stdin.on('error', () => undefined)
    child.once('error', cause => {
      settled()
      reject(
        invalidValue(`Downloads need the program 'flock' (package util-linux): ${cause.message}.`, {
          cause,
        }),
      )
    })
    child.stdout.once('data', () => {
      settled()
      resolve(async () => {
        child.stdin.end()
        await ended
      })
    })
    void ended.then(code => {
      settled()
      if (signal.aborted) reject(signal.reason as Error)
      else if (code === taken && how.length > 0) resolve(undefined)
      else
        reject(invalidValue(`The file '${path}' cannot be locked: ${errorText.trim() || `flock ended with ${code}`}.`))
    })
  })
}
