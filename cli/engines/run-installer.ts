import { spawn } from 'node:child_process'
import { StringDecoder } from 'node:string_decoder'
import { Failure } from '../../core/failure.ts'
import { withoutLogin } from '../../core/models/hub/settings.ts'
import { printable } from '../terminal/styled-line.ts'

/** Bytes of output that are kept for the message about a failure. */
const keptOutput = 64 << 10

const unreachable =
  /NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|Max retries exceeded|error sending request|dns error|tcp connect error|Failed to fetch|Connection refused|Temporary failure in name resolution/i

/** What the output of pip, uv and venv says about a failure, with what to do. The first match counts. */
const causes: readonly [pattern: RegExp, sentence: string][] = [
  [
    /ensurepip is not available|No module named (venv|ensurepip)|returned non-zero exit status.*ensurepip/i,
    'python3 has no module venv here. Install it (Debian, Ubuntu: sudo apt install python3-venv) and try again.',
  ],
  [
    /No space left on device|Disk quota exceeded|os error 28/i,
    'The disk is full. Free some space and run the command again: it continues.',
  ],
  [
    /THESE PACKAGES DO NOT MATCH THE HASHES|Hash mismatch/i,
    'A package of the index differs from the one that infer was tested with, so it was not installed. Use another index: --index-url, or INFER_PYPI_INDEX.',
  ],
  [
    new RegExp(`(${unreachable.source})[^]*download\\.pytorch\\.org`, 'i'),
    'The index of PyTorch cannot be reached. Check the network and the proxy (HTTPS_PROXY), or name another one with --torch-index-url, and run the command again: it continues.',
  ],
  [
    unreachable,
    'The package index cannot be reached. Check the network and the proxy (HTTPS_PROXY), or name another index with --index-url, and run the command again: it continues.',
  ],
  [
    /No matching distribution found|no solution found|has no wheels|Could not find a version|not found in the (package )?registry|No interpreter found/i,
    'The package index has not all packages for this machine and its Python. Use another index: --index-url, or INFER_PYPI_INDEX.',
  ],
]

/**
 * Runs a program to its end and resolves with its standard output. Calls `onLine` with every line that it prints. Rejects
 * with Failure `invalid_value` if it fails, with a sentence about the cause where its output shows one; and with the
 * reason of the signal, after the program and its children have been told to end.
 */
export function runInstaller(
  [file, ...args]: readonly string[],
  {
    environment,
    signal,
    onLine,
    failureFor: explain = failureFor,
  }: {
    environment: Readonly<Record<string, string | undefined>>
    signal: AbortSignal
    onLine?: (line: string) => void
    /** Makes the failure of a program from its output and how it ended. */
    failureFor?: (file: string, output: string, how: string) => Failure
  },
): Promise<string> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    // In a session of its own, so that it can be ended together with its children.
    const child = spawn(file!, args, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const stop = () => {
      try {
        process.kill(-child.pid!, 'SIGTERM')
      } catch {
        // It has ended by itself.
      }
    }
    signal.addEventListener('abort', stop, { once: true })
    let output = ''
    let written = ''
    for (const stream of [child.stdout, child.stderr]) {
      const decoder = new StringDecoder('utf8')
      let rest = ''
      stream.on('data', (piece: Buffer) => {
        const text = decoder.write(piece)
        output = (output + text).slice(-keptOutput)
        if (stream === child.stdout) written = (written + text).slice(-keptOutput)
        const lines = (rest + text).split(/[\r\n]+/)
        rest = lines.pop()!.slice(-4096)
        for (const line of lines) if (line.trim() !== '') onLine?.(printable(line.trim()))
      })
    }
    child.once('error', cause => {
      signal.removeEventListener('abort', stop)
      reject(new Failure('invalid_value', `${file} cannot be started: ${cause.message}.`, { cause }))
    })
    child.once('close', (code, ended) => {
      signal.removeEventListener('abort', stop)
      if (signal.aborted) return reject(signal.reason as Error)
      if (code === 0) return resolve(written)
      reject(explain(file!, output, code === null ? `with ${ended}` : `with exit code ${code}`))
    })
  })
}

/** Pure. */
export const failureFor = (file: string, output: string, how: string): Failure =>
  new Failure(
    'invalid_value',
    withOutput(
      causes.find(([pattern]) => pattern.test(output))?.[1] ??
        `${file} ended ${how}, and the environment is not complete. It printed:`,
      output,
    ),
  )

/** A sentence with the last lines of a program's output, without logins. Pure. */
export function withOutput(sentence: string, output: string): string {
  const lines = output.split(/[\r\n]+/).filter(line => line.trim() !== '')
  const last = lines.slice(-6).map(line => printable(line.replaceAll(/https?:\/\/[^\s'"]+/g, url => withoutLogin(url))))
  return [sentence, ...last].join('\n')
}
