import { type ChildProcess, spawn } from 'node:child_process'
import { selfCommand } from '../../core/assets.ts'
import { hostEnvironment } from '../../core/config.ts'
import { invalidValue } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import type { KeyPair } from '../http/connection/certificate.ts'
import type { FrontSession, FrontWorkOwner } from './front-work.ts'
import type { FromFront, FrontStart, ToFront } from './messages.ts'

/** The hidden command that runs a front. */
const frontCommand = '__front'

/** Milliseconds before a front that ended is replaced: doubled with each that ends soon, up to the second figure. */
const [firstPauseMs, longestPauseMs] = [50, 5_000]
/** A front that ran for so long, milliseconds, did not end soon. */
const steadyMs = 10_000
/** Milliseconds after which a front that does not end is killed. */
const closeTimeoutMs = 2_000

export interface FrontsOptions extends FrontStart {
  count: number
  /** Returns the failure of listening, with the system's error. */
  refused: (error: { code: string | undefined; message: string }) => Error
  log: Log
}

/**
 * Starts the front processes and replaces those that end. `listening` resolves when all of them accept connections; it
 * rejects with the failure of the first that cannot.
 */
export function openFronts({ count, refused, log, ...start }: FrontsOptions) {
  if (process.platform !== 'linux')
    throw invalidValue('gateway_processes above 1 needs Linux. Remove it from infer.yaml, or set it to 1.')
  const fronts = new Set<ChildProcess>()
  const sessions = new Map<ChildProcess, FrontSession>()
  let work: Pick<FrontWorkOwner, 'begin' | 'drain'> | undefined
  /** Those that accept connections. */
  const ready = new Set<ChildProcess>()
  const listening = Promise.withResolvers<void>()
  let { keyPair } = start
  let awaited = count
  let pauseMs = firstPauseMs
  let closing = false
  listening.promise.catch(() => {})

  function begin(front: ChildProcess): void {
    const link = { send: (message: ToFront) => tell(front, message), kill: () => void front.kill('SIGKILL') }
    if (work) sessions.set(front, work.begin(link))
  }

  function run(): void {
    const front = startProcess()
    fronts.add(front)
    const startedAt = performance.now()
    let [isListening, refusal] = [false, '']
    tell(front, { kind: 'start', ...start, keyPair })
    front.on('message', (message: FromFront) => {
      if (message.kind === 'log') return log[message.level](message.message, message.fields, message.cause)
      if (message.kind === 'refused') {
        refusal = message.message
        listening.reject(refused(message))
        return
      }
      if (message.kind !== 'listening') return sessions.get(front)?.received(message)
      isListening = true
      ready.add(front)
      begin(front)
      if (--awaited === 0) listening.resolve()
    })
    const ended = (how: string) => {
      if (!fronts.delete(front)) return
      ready.delete(front)
      sessions.get(front)?.ended()
      sessions.delete(front)
      if (closing) return
      const why = refusal === '' ? how : refusal
      if (!isListening) listening.reject(new Error(`A gateway process ended before it accepted connections: ${why}.`))
      if (performance.now() - startedAt >= steadyMs) pauseMs = firstPauseMs
      log.error(`A gateway process ended (${why}), and its connections with it. It is replaced.`, { pid: front.pid })
      setTimeout(() => closing || run(), pauseMs)
      pauseMs = Math.min(2 * pauseMs, longestPauseMs)
    }
    front.once('error', ({ message }) => ended(message))
    front.once('exit', (code, signal) => ended(signal ?? `exit status ${code}`))
  }
  for (let started = 0; started < count; started++) run()

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
    /** Ends all fronts after their last answers. */
    async close(): Promise<void> {
      closing = true
      await Promise.all(
        [...fronts].map(async front => {
          const ended = new Promise(resolve => front.once('exit', resolve))
          const timer = setTimeout(() => front.kill('SIGKILL'), closeTimeoutMs)
          tell(front, { kind: 'close' })
          await ended
          clearTimeout(timer)
        }),
      )
    },
  }
}
export type Fronts = ReturnType<typeof openFronts>

function startProcess(): ChildProcess {
  const self = selfCommand([frontCommand])
  // It opens no store and calls no server.
  const { INFER_MASTER_KEY: _key, INFER_URL: _url, INFER_TOKEN: _token, ...environment } = hostEnvironment()
  return spawn(self.file, self.args, {
    env: { ...environment, ...self.env },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    serialization: 'advanced',
  })
}

/** Sends a message. A front that has ended does not get it, which its exit shows. */
function tell(front: ChildProcess, message: ToFront): void {
  if (front.connected) front.send(message, () => {})
}
