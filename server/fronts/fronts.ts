import { type ChildProcess, type SendHandle, spawn } from 'node:child_process'
import { closeSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { selfCommand } from '../../core/assets.ts'
import { hostEnvironment } from '../../core/config.ts'
import { invalidValue } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { KeyPair } from '../http/connection/certificate.ts'
import type { FrontSession } from './calls-in-fronts.ts'
import type { ForwardTarget } from './forward.ts'
import type { FrontWorkOwner } from './front-work.ts'
import type { FromFront, FrontStart, ToFront } from './messages.ts'

/** The hidden command that runs a front. */
const frontCommand = '__front'

/** Milliseconds before a front that ended is replaced: doubled with each that ends soon, up to the second figure. */
const [firstPauseMs, longestPauseMs] = [50, 5_000]
/** A front that ran for so long, milliseconds, did not end soon. */
const steadyMs = 10_000
/** Milliseconds after which a front that does not end is killed. */
const closeTimeoutMs = 2_000
/** In a front, the file descriptor of the first socket that it gets with its start; 3 is the channel. */
const firstDescriptor = 4

export interface FrontsOptions extends Omit<FrontStart, 'descriptors'> {
  count: number
  /** The fronts that `startFronts` has started; absent: they are started now. */
  started: StartedFronts | undefined
  /** File descriptors of sockets that listen already, which the fronts share; absent: each front opens one. */
  sockets: readonly number[] | undefined
  /** Returns the failure of listening, with the system's error. */
  refused: (error: { code: string | undefined; message: string }) => Error
  log: Log
}

/** The sockets of each front: every socket has a front, and every front has a socket. */
const divided = (count: number, sockets: readonly number[]): number[][] =>
  Array.from({ length: count }, (_, at) => {
    const own = sockets.filter((_, index) => index % count === at)
    return own.length > 0 || sockets.length === 0 ? own : [sockets[at % sockets.length]!]
  })

/** Starts front processes that `openFronts` gets later. `loaded` resolves when they can begin at once. */
export function startFronts(count: number, sockets: readonly number[]) {
  const processes = divided(count, sockets).map(startProcess)
  const loaded = processes.map(
    front =>
      new Promise<void>((resolve, reject) => {
        front.once('message', () => resolve())
        front.once('error', reject)
        front.once('exit', () => reject(new Error('A gateway process ended before it was loaded. Read the log.')))
      }),
  )
  const all = Promise.all(loaded).then(() => {})
  // Prevents an unhandled rejection; whoever awaits it gets the error.
  all.catch(() => {})
  return { processes, loaded: all }
}
export type StartedFronts = ReturnType<typeof startFronts>

/**
 * Starts the front processes and replaces those that end. `listening` resolves when all of them accept connections; it
 * rejects with the failure of the first that cannot.
 */
export function openFronts({ count, started, sockets: inherited = [], refused, log, ...start }: FrontsOptions) {
  if (process.platform !== 'linux')
    throw invalidValue('gateway_processes above 1 needs Linux. Remove it from infer.yaml, or set it to 1.')
  const fronts = new Set<ChildProcess>()
  const sessions = new Map<ChildProcess, FrontSession>()
  /** By front, the descriptors of the sockets from which it accepts: this process keeps them for its successor. */
  const sockets = divided(count, inherited)
  /** Those that a front has opened. */
  const opened: (SocketHandle | undefined)[] = []
  let work: Pick<FrontWorkOwner, 'begin' | 'drain' | 'yield'> | undefined
  /** Those that accept connections. */
  const ready = new Set<ChildProcess>()
  const listening = Promise.withResolvers<void>()
  let { keyPair } = start
  let awaited = count
  let pauseMs = firstPauseMs
  let closing = false
  let isReplaced = true
  /** Called when one has left, or has ended. */
  const leaving = new Map<ChildProcess, () => void>()
  listening.promise.catch(() => {})

  function begin(front: ChildProcess): void {
    const link = { send: (message: ToFront) => tell(front, message), kill: () => void front.kill('SIGKILL') }
    if (work) sessions.set(front, work.begin(link))
  }

  /** Closes the socket that a front has opened. */
  function closeOpened(at: number): void {
    opened[at]?.close()
    opened[at] = undefined
    sockets[at] = []
  }

  function closeSockets(): void {
    const inherited = sockets.filter((_, at) => !opened[at]).flat()
    for (const descriptor of new Set(inherited)) closeSync(descriptor)
    for (let at = 0; at < count; at++) closeOpened(at)
  }

  function run(at: number, prepared?: ChildProcess): void {
    const isAlive = prepared?.exitCode === null && prepared.signalCode === null
    // A front gets the socket of one before it only once it can accept: until it is loaded it would outlive a killed control.
    const socket = opened[at]
    const front = isAlive ? prepared : startProcess(socket ? [] : sockets[at]!)
    fronts.add(front)
    const startedAt = performance.now()
    let [isListening, refusal] = [false, '']
    const descriptors = socket ? [] : sockets[at]!.map((_, index) => firstDescriptor + index)
    const begins = () => tell(front, { kind: 'start', ...start, keyPair, descriptors }, opened[at])
    if (!socket) begins()
    front.on('message', (message: FromFront, own: unknown) => {
      if (message.kind === 'loaded') return socket && begins()
      if (message.kind === 'left') return leaving.get(front)?.()
      if (message.kind === 'log') return log[message.level](message.message, message.fields, message.cause)
      if (message.kind === 'refused') {
        refusal = message.message
        listening.reject(refused(message))
        return
      }
      if (message.kind !== 'listening') return sessions.get(front)?.received(message)
      isListening = true
      if (own) {
        opened[at] = own as SocketHandle
        sockets[at] = [opened[at].fd]
      }
      ready.add(front)
      begin(front)
      if (--awaited === 0) listening.resolve()
    })
    const ended = (how: string) => {
      if (!fronts.delete(front)) return
      ready.delete(front)
      sessions.get(front)?.ended()
      sessions.delete(front)
      leaving.get(front)?.()
      if (closing) return
      const why = refusal === '' ? how : refusal
      if (!isListening) listening.reject(new Error(`A gateway process ended before it accepted connections: ${why}.`))
      if (performance.now() - startedAt >= steadyMs) pauseMs = firstPauseMs
      const then = isReplaced ? ' It is replaced.' : ''
      log.error(`A gateway process ended (${why}), and its connections with it.${then}`, { pid: front.pid })
      if (!isReplaced) return
      // Connections that wait for the next front are not lost, unless they would wait for long.
      if (opened[at] && pauseMs > firstPauseMs) closeOpened(at)
      setTimeout(() => isReplaced && run(at), pauseMs)
      pauseMs = Math.min(2 * pauseMs, longestPauseMs)
    }
    front.once('error', ({ message }) => ended(message))
    front.once('exit', (code, signal) => ended(signal ?? `exit status ${code}`))
  }
  for (let at = 0; at < count; at++) run(at, started?.processes[at])

  /** Ends all fronts after their last answers. */
  async function close(): Promise<void> {
    closing = true
    isReplaced = false
    closeSockets()
    await Promise.all(
      [...fronts].map(async front => {
        const ended = new Promise(resolve => front.once('exit', resolve))
        const timer = setTimeout(() => front.kill('SIGKILL'), closeTimeoutMs)
        tell(front, { kind: 'close' })
        await ended
        clearTimeout(timer)
      }),
    )
  }

  return {
    listening: listening.promise,
    /** From now on fronts answer what they can themselves. */
    serve(owner: NonNullable<typeof work>): void {
      work = owner
      for (const front of ready) begin(front)
    },
    /** Fronts answer nothing more themselves. */
    drain: async (deadlineMs: number): Promise<void> => work?.drain(deadlineMs),
    /** New connections use this key pair. */
    use(pair: KeyPair): void {
      keyPair = pair
      for (const front of fronts) tell(front, { kind: 'keyPair', keyPair: pair })
    },
    /** The file descriptors of the sockets on which they listen. */
    sockets: (): number[] => [...new Set(sockets.flat())],
    /** They answer nothing more themselves, and none is replaced. Resolves when they have told of all that they have done. */
    hold: async (): Promise<void> => {
      isReplaced = false
      await work?.yield()
    },
    /**
     * They accept no more connections and pass requests on to another server. Resolves when they have ended, after the
     * requests that run in them, which they interrupt after so many milliseconds.
     */
    async leave(to: ForwardTarget, deadlineMs: number): Promise<void> {
      const late = delay(deadlineMs + closeTimeoutMs, undefined, { ref: false })
      const left = [...fronts].map(front => {
        tell(front, { kind: 'leave', deadlineMs, ...to })
        return new Promise<void>(resolve => leaving.set(front, resolve))
      })
      // From here on the sockets are those of the other server alone.
      closeSockets()
      await Promise.race([Promise.all(left), late])
      await close()
    },
    close,
  }
}
export type Fronts = ReturnType<typeof openFronts>

/** A socket that has come with a message. */
interface SocketHandle {
  fd: number
  close: () => void
}

function startProcess(sockets: readonly number[]): ChildProcess {
  const self = selfCommand([frontCommand])
  // It opens no store and calls no server.
  const { INFER_MASTER_KEY: _key, INFER_URL: _url, INFER_TOKEN: _token, ...environment } = hostEnvironment()
  return spawn(self.file, self.args, {
    env: { ...environment, ...self.env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc', ...sockets],
    serialization: 'advanced',
  })
}

/** Sends a message. A front that has ended does not get it, which its exit shows. */
function tell(front: ChildProcess, message: ToFront, socket?: SocketHandle): void {
  if (front.connected) front.send(message, socket as unknown as SendHandle, () => {})
}
