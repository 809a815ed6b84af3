import { spawn } from 'node:child_process'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { ForwardTarget } from '../../server/fronts/forward.ts'
import { type Begin, type FromSuccessor, type ServeFlags, serveArguments, type ToSuccessor } from './protocol.ts'

/** How long a new server may take until it can take over, milliseconds: its first start unpacks files. */
const prepareMs = 120_000
/** How long it may take to open the data directory: an upgrade of the database copies it first. Milliseconds. */
const openMs = 600_000

export interface SuccessorOptions {
  program: readonly string[]
  dataDir: string
  flags: ServeFlags
  /** File descriptors of the listening sockets, at least one. */
  sockets: readonly number[]
  begin: Omit<Begin, 'sockets'>
}

/** Starts a server that is to take the place of this one. It inherits the listening sockets and the standard streams. */
export function startSuccessor({ program, dataDir, flags, sockets, begin: facts }: SuccessorOptions) {
  const begin: Begin = { ...facts, sockets: sockets.length }
  const [file, ...first] = program
  const child = spawn(
    file!,
    [...first, ...serveArguments(dataDir, flags), '--predecessor', JSON.stringify(begin)],
    // In a group of its own, because the signals of a terminal are for the server that was started there.
    {
      env: hostEnvironment(),
      // The first one twice: see `listenerDescriptor`.
      stdio: ['ignore', 'inherit', 'inherit', sockets[0]!, ...sockets, 'ipc'],
      serialization: 'advanced',
      detached: true,
    },
  )
  const listeners: ((message: FromSuccessor) => void)[] = []
  // Created now, because messages may arrive together.
  const states = {
    prepared: Promise.withResolvers<void>(),
    serving: Promise.withResolvers<ForwardTarget>(),
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
    else if (received.kind === 'serving') states.serving.resolve(received.forwarding)
    else if (received.kind !== 'answer') states[received.kind].resolve()
    for (const hear of listeners) hear(received)
  })

  /** Rejects, and ends the process, if it ends before it is in that state or the time is over. */
  async function reached<State>(state: Promise<State>, withinMs: number): Promise<State> {
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      () => late.reject(new Failure('timeout', `The new server was not ready within ${withinMs / 1_000} s.`)),
      withinMs,
    )
    try {
      return await Promise.race([state, late.promise, gone.promise])
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
    prepared: (): Promise<void> => reached(states.prepared.promise, prepareMs),
    /** Resolves when it serves, with where it takes the requests of this one. Rejects likewise. */
    serving: (): Promise<ForwardTarget> => reached(states.serving.promise, openMs),
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
