import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { selfCommand } from '../../core/assets.ts'
import { hostEnvironment } from '../../core/config.ts'
import { Failure, type FailureCode, failures } from '../../core/failure.ts'

/** An event that a command prints as a line of JSON. */
export interface CommandEvent {
  event: string
  file?: string
  bytes?: number
  total_bytes?: number
  /** What a setup does now, or a line of its tools. */
  text?: string
}

/** Bytes of its output that are kept: the catalogue has 200 kB. */
const maxKept = 4 << 20

/**
 * Starts a command of this program on the data directory as a process of its own, which prints JSON. A configuration that
 * does not exist is left out.
 */
export function spawnSelf(
  words: readonly string[],
  dataDir: string,
  configPath: string | undefined,
  ending: { signal?: AbortSignal; killSignal?: 'SIGKILL' } = {},
) {
  const config = configPath !== undefined && existsSync(configPath) ? ['--config', resolve(configPath)] : []
  const self = selfCommand([...words, '--json', '--data-dir', resolve(dataDir), ...config])
  const { INFER_URL: _url, INFER_TOKEN: _token, ...environment } = hostEnvironment()
  const env = { ...environment, ...self.env }
  return spawn(self.file, self.args, { cwd: dataDir, env, stdio: ['ignore', 'pipe', 'pipe'], ...ending })
}

/** Returns the failure that the command has printed. */
function failureIn(text: string): Failure {
  const line = text.trimEnd().split('\n').at(-1) ?? ''
  try {
    const { error } = JSON.parse(line) as { error: { code: string; message: string } }
    if (error.code in failures && error.code !== 'internal_error')
      return new Failure(error.code as FailureCode, error.message)
  } catch {
    // Falls through.
  }
  return new Failure('worker_error', 'The command ended with an error that the log of this server has.', {
    cause: text,
  })
}

/**
 * Returns the function that runs a command of this program on the data directory as a process of its own, so that its
 * work uses neither the memory nor the event loop of the server, and a proxy for it changes no other request. It resolves
 * with the JSON that the command prints, and rejects with its failure or the reason of `signal`. `config`: the
 * configuration file that it changes.
 */
export const openOwnCommand =
  (dataDir: string) =>
  async <T>(
    words: readonly string[],
    {
      signal,
      config,
      onEvent = () => {},
    }: { signal?: AbortSignal; config?: string; onEvent?: (event: CommandEvent) => void } = {},
  ): Promise<T> => {
    signal?.throwIfAborted()
    const child = spawnSelf(words, dataDir, config)
    const stop = () => void child.kill('SIGINT')
    signal?.addEventListener('abort', stop)
    let errors = ''
    let result = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-maxKept)
    })
    createInterface({ input: child.stdout }).on('line', line => {
      if (line.startsWith('{"event":')) onEvent(JSON.parse(line) as CommandEvent)
      else result = (result + line).slice(-maxKept)
    })
    try {
      const code = await new Promise<number | null>((resolve, reject) => {
        child.once('error', reject).once('close', resolve)
      })
      signal?.throwIfAborted()
      if (code !== 0) throw failureIn(errors)
    } finally {
      signal?.removeEventListener('abort', stop)
    }
    return JSON.parse(result) as T
  }
export type OwnCommand = ReturnType<typeof openOwnCommand>
