import { spawn } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import { freePort } from '../../gpu/launcher/address.ts'
import type { ProgramRun } from '../../gpu/sandbox/program.ts'
import { printable } from '../terminal/styled-line.ts'

/** Bytes of output that are kept for a message. */
const keptOutput = 32 << 10

interface TrialServerOptions<Answer> {
  /** Program and arguments; `{port}` stands for its port on loopback. */
  command: readonly string[]
  env: Readonly<Record<string, string>>
  /** Its working folder. */
  home: string
  healthPath: string
  /** How long it may take until it is healthy, and what it has done then, after "it has" or "it had". */
  loads: { ms: number; text: string }
  answerMs: number
  /** Sends it a request. `output` is what it has printed so far. */
  ask: (address: string, signal: AbortSignal, output: () => string) => Promise<Answer>
  /** Why it ended, as the end of a sentence; null if the cause is not known. */
  faultOf: (run: ProgramRun) => string | null
  /** The failure for a reason, which is the end of a sentence. */
  unusable: (why: string) => Failure
  signal: AbortSignal
}

/**
 * Starts a server on a port of loopback, waits until it is healthy, resolves with its answer to one request and kills it
 * with its children. Rejects with the Failure of `unusable`, and with the reason of the signal.
 */
export async function askTrialServer<Answer>(options: TrialServerOptions<Answer>): Promise<Answer> {
  const { env, home, loads, faultOf, unusable, signal } = options
  const port = await freePort()
  const [program, ...args] = options.command.map(part => part.replaceAll('{port}', String(port)))
  const child = spawn(program!, args, { env, cwd: home, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (piece: Buffer) => {
      output = (output + piece.toString('utf8')).slice(-keptOutput)
    })
  const ended = new Promise<ProgramRun>(resolve => {
    child.once('error', cause =>
      resolve({
        exitCode: undefined,
        errorCode: (cause as NodeJS.ErrnoException).code ?? '',
        timedOut: false,
        stdout: output,
        stderr: '',
      }),
    )
    child.once('close', (code, by) =>
      resolve({ exitCode: code ?? undefined, signal: by ?? undefined, timedOut: false, stdout: output, stderr: '' }),
    )
  })
  const stopped = new AbortController()
  const either = AbortSignal.any([signal, stopped.signal])
  const address = `http://127.0.0.1:${port}`
  try {
    const early = ended.then(run => {
      throw unusable(faultOf(run) ?? `it ended before it had ${loads.text}: ${lastLine(output)}`)
    })
    const within = async <T>(ms: number, what: string, done: Promise<T>): Promise<T> => {
      const late = pause(ms, undefined, { signal: either }).then(() => {
        throw unusable(`it has not ${what} within ${ms / 1000} s: ${lastLine(output)}`)
      })
      return Promise.race([done, late, early])
    }
    await within(loads.ms, loads.text, whenReady(`${address}${options.healthPath}`, either))
    return await within(
      options.answerMs,
      'answered',
      options.ask(address, either, () => output),
    )
  } catch (thrown) {
    signal.throwIfAborted()
    throw thrown instanceof Failure ? thrown : unusable(`its answer cannot be read: ${(thrown as Error).message}`)
  } finally {
    stopped.abort()
    try {
      process.kill(-child.pid!, 'SIGKILL')
    } catch {
      // It has ended by itself, or never started.
    }
    await ended
  }
}

/** The last line of a program's output, for a message. */
export const lastLine = (text: string): string =>
  printable((text.split('\n').findLast(line => line.trim() !== '') ?? 'it printed nothing').trim().slice(0, 300))

async function whenReady(address: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const answer = await fetch(address, { signal }).catch(() => null)
    await answer?.body?.cancel()
    if (answer?.ok) return
    await pause(50, undefined, { signal })
  }
}
