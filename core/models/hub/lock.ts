import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Failure } from '../../failure.ts'

/** What `flock` ends with when somebody else holds the lock. */
const taken = 75

/**
 * Runs something while this process holds the lock of a file, the one that the hub's own tools take, so that no two
 * write the same blob. Node cannot lock files; `flock` of util-linux does, and ends with the pipe to it, so that
 * nothing stays locked when this process dies. `onWait` is called when somebody else holds it.
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

/** Resolves with what gives the lock back; undefined when it is taken. */
function acquire(path: string, how: string[], signal: AbortSignal): Promise<(() => Promise<void>) | undefined> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    // In a session of its own: Ctrl-C is for us, and the lock lasts until we are through.
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
        new Failure('invalid_value', `Downloads need the program 'flock' (package util-linux): ${cause.message}.`, {
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
        reject(
          new Failure(
            'invalid_value',
            `The file '${path}' cannot be locked: ${errorText.trim() || `flock ended with ${code}`}.`,
          ),
        )
    })
  })
}
