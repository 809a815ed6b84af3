import { spawn } from 'node:child_process'
import { hostEnvironment } from '../../../core/config.ts'
import { Failure } from '../../../core/failure.ts'

/** Maximum bytes of the audio of one request: 25 minutes. The text is limited too, so this is only reached by a fault. */
const maxAudio = 64 << 20
/** Maximum bytes of its messages that are kept. */
const maxMessages = 4096

/**
 * Runs espeak-ng and resolves with what it writes to standard output. The text goes to its standard input and never into
 * its arguments. Rejects with Failure `worker_error` if it fails, and with the reason of the signal after killing it.
 */
export function runEspeak(
  program: string,
  args: readonly string[],
  text: string,
  signal: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    // Not the other variables of the engine, one of which is its key.
    const env = { PATH: hostEnvironment().PATH, LANG: 'C.UTF-8' }
    const child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
    const pieces: Buffer[] = []
    let bytes = 0
    let messages = ''
    const kill = () => child.kill('SIGKILL')
    signal.addEventListener('abort', kill, { once: true })
    child.stdout.on('data', (piece: Buffer) => {
      bytes += piece.length
      if (bytes <= maxAudio) pieces.push(piece)
      else kill()
    })
    child.stderr.on('data', (piece: Buffer) => {
      messages = (messages + piece.toString('utf8')).slice(-maxMessages)
    })
    // It may end before it has read the whole text; its exit code says why.
    child.stdin.on('error', () => undefined)
    child.stdin.end(text)
    const failed = (why: string, cause?: unknown) =>
      reject(new Failure('worker_error', `${program} ${why}`, cause === undefined ? {} : { cause }))
    child.once('error', cause => {
      signal.removeEventListener('abort', kill)
      failed(`cannot be started: ${cause.message}. Install it (Debian, Ubuntu: sudo apt install espeak-ng).`, cause)
    })
    child.once('close', (code, ended) => {
      signal.removeEventListener('abort', kill)
      if (signal.aborted) reject(signal.reason as Error)
      else if (bytes > maxAudio) failed(`wrote more than ${maxAudio >> 20} MiB of audio for one text.`)
      else if (code !== 0) failed(`ended with ${code ?? ended}: ${messages.trim().slice(-500)}`)
      else resolve(Buffer.concat(pieces))
    })
  })
}
