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
  const listeners: ((message: FromSuccessor) => void)[] = []
  // Created now, because messages may arrive together.
  const states = {
    prepared: Promise.withResolvers<void>(),
    serving: Promise.withResolvers<void>(),
    settled: Promise.withResolvers<void>(),
  }
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
    else if (received.kind !== 'answer') states[received.kind].resolve()
    for (const hear of listeners) hear(received)
  })

  /** Rejects, and ends the process, if it ends before it is in that state or the time is over. */
  async function reached(state: keyof typeof states, withinMs: number): Promise<void> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Failure('timeout', `The new server was not ready within ${withinMs / 1_000} s.`)),
      withinMs,
    )
    try {
      await Promise.race([states[state].promise, late.promise, gone.promise])
    } catch (thrown) {
      child.kill('SIGKILL')
      throw thrown
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    pid: child.pid,
    /** Resolves when it can take over at once. Rejects with Failure `conflict` or `timeout`. */
    prepared: (): Promise<void> => reached('prepared', prepareMs),
    /** Resolves when it serves. Rejects likewise. */
    serving: (): Promise<void> => reached('serving', openMs),
    /** Resolves when this process may end, which is so too when the new one has ended. */
    settled: (): Promise<void> => Promise.race([states.settled.promise, gone.promise]),
    /** Rejects when it has ended. */
    gone: gone.promise,
    /** Ends it at once. */
    kill: (): void => void child.kill('SIGKILL'),
    /** Lets it drain and end. */
    stop: (): void => void child.kill('SIGTERM'),
    send: (message: ToSuccessor): void => void child.send(message, () => {}),
    onMessage: (hear: (message: FromSuccessor) => void): void => void listeners.push(hear),
  }
}
export type Successor = ReturnType<typeof startSuccessor>
