import { spawn } from 'node:child_process'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import { type Begin, type FromSuccessor, type ServeFlags, serveArguments, type ToSuccessor } from './protocol.ts'

/** How long a new server may take until it can take over, milliseconds: its first start unpacks files. */
const prepareMs = 120_000
/** How long it may take to open the data directory: an upgrade of the database copies it first. Milliseconds. */
const openMs = 600_000

export interface SuccessorOptions {
  program: readonly string[]
  dataDir: string
  flags: ServeFlags
  /** File descriptor of the listening socket. */
  listener: number
  begin: Begin
}

/** Starts a server that is to take the place of this one. It inherits the listening socket and the standard streams. */
export function startSuccessor({ program, dataDir, flags, listener, begin }: SuccessorOptions) {
  const [file, ...first] = program
  const child = spawn(
    file!,
    [...first, ...serveArguments(dataDir, flags), '--predecessor', JSON.stringify(begin)],
    // In a group of its own, because the signals of a terminal are for the server that was started there.
    {
      env: hostEnvironment(),
      stdio: ['ignore', 'inherit', 'inherit', listener, 'ipc'],
      serialization: 'advanced',
      detached: true,
    },
  )
  let listeners: ((message: FromSuccessor) => void)[] = []
  let refusal: string | undefined
  const gone = Promise.withResolvers<never>()
  const end = (reason: string) => gone.reject(new Failure('conflict', refusal ?? reason))
  gone.promise.catch(() => {})
  child.on('error', cause => end(`${file} cannot be started: ${cause.message}.`))
  child.on('exit', (code, signal) =>
    end(`The new server ended with ${signal ?? `exit code ${code}`} before it served. Its log says why.`),
  )
  child.on('message', message => {
    const received = message as FromSuccessor
    if (received.kind === 'failed') refusal = received.message
    for (const hear of listeners) hear(received)
  })

  /** Resolves at the message. Rejects, and ends the process, if it ends or the time is over. */
  async function heard(kind: FromSuccessor['kind'], withinMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const hear = (message: FromSuccessor) => message.kind === kind && resolve()
    listeners.push(hear)
    const late = setTimeout(
      () => reject(new Failure('timeout', `The new server was not ready within ${withinMs / 1_000} s.`)),
      withinMs,
    )
    try {
      await Promise.race([promise, gone.promise])
    } catch (thrown) {
      child.kill('SIGKILL')
      throw thrown
    } finally {
      clearTimeout(late)
      listeners = listeners.filter(one => one !== hear)
    }
  }

  return {
    pid: child.pid,
    /** Resolves when it can take over at once. Rejects with Failure `conflict` or `timeout`. */
    prepared: (): Promise<void> => heard('prepared', prepareMs),
    /** Resolves when it serves. Rejects likewise. */
    serving: (): Promise<void> => heard('serving', openMs),
    /** Resolves when this process may end. Rejects likewise. */
    settled: (): Promise<void> => heard('settled', openMs),
    /** Rejects when it has ended. */
    gone: gone.promise,
    send: (message: ToSuccessor): void => void child.send(message, () => {}),
    onMessage: (hear: (message: FromSuccessor) => void): void => void listeners.push(hear),
  }
}
export type Successor = ReturnType<typeof startSuccessor>
