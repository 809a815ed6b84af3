import { spawn } from 'node:child_process'
import type { KeyObject } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { constants } from 'node:os'
import { join } from 'node:path'
import { keeperCommand } from '../../core/assets.ts'
import type { Log } from '../../core/log.ts'
import type { ChildOptions, ProcessEnd } from './child.ts'
import { endKeepers } from './end-keepers.ts'
import { messageFrame, openFrameReader } from './keeper-frames.ts'
import { isProof, keeperProtocol, newNonce, proofOf } from './keeper-proof.ts'
import { keeperSocket } from './keeper-socket.ts'
import { sendSignal } from './processes.ts'

export interface KeeperOptions {
  dataDir: string
  /** Proves to the keeper that this is a server of the data directory, and the reverse. */
  key: KeyObject
  /** How long engines outlive this server, unless it ends them; milliseconds. */
  graceMs: number
  log: Log
}

/** An engine's process whose parent is the keeper. */
export interface KeptProcess {
  launchId: string
  /** In the machine's PID namespace: the wrapper's, if the engine has one. */
  pid: number
  about: unknown
  /** What `note` has set last. */
  note: unknown
  /** Bytes that it has printed before those that are read; absent if a keeper of another version did not count. */
  printed?: number
  /** Resolves when it has exited and its output has been read; also when the keeper has ended. */
  ended: Promise<ProcessEnd>
  /** Calls the reader with what it prints, from what the keeper has of its end on. */
  read(reader: (chunk: Buffer) => void): void
}

/** Milliseconds that a keeper may take for the proof, and an owner before it to go. */
const connectMs = { proof: 3_000, owner: 30_000 }
const startMs = 15_000

const keeperEnded = 'It cannot be started: the keeper of the engines has ended.'

interface Connection {
  socket: Socket
  keeperPid: number
}

/**
 * Connects to the keeper of the data directory, whose lock the caller holds. Resolves with what an earlier server left with
 * it. One of another version or key, or that another server does not let go, is ended. A new one is started with the first
 * engine.
 */
export async function openKeeperClient({ dataDir, key, graceMs, log }: KeeperOptions) {
  mkdirSync(join(dataDir, 'run'), { recursive: true, mode: 0o700 })
  const run = join(realpathSync(dataDir), 'run')
  const processes = new Map<string, ReturnType<typeof openProcess>>()
  const starts = new Map<string, PromiseWithResolvers<KeptProcess | string>>()
  let connection: Promise<Connection> | undefined
  let current: Connection | undefined
  /** Why nothing can be started any more, as a sentence; undefined while it can. */
  let over: string | undefined

  /** Connects, proves the key and becomes the owner. Rejects if there is no keeper, or one with another key. */
  function connect(): Promise<Connection> {
    const { promise, resolve, reject } = Promise.withResolvers<Connection>()
    const at = keeperSocket(run)
    const socket = createConnection({ path: at.path })
    const nonce = newNonce()
    const limit = (ms: number, why: string) => setTimeout(() => socket.destroy(new Error(why)), ms)
    let timer = limit(connectMs.proof, 'it does not answer')
    const read = openFrameReader({
      message(message) {
        if (message.type === 'challenge') {
          if (!isProof(key, 'keeper', nonce, message.proof)) throw new Error('it has another key')
          clearTimeout(timer)
          timer = limit(connectMs.owner, 'another server does not let it go')
          const proof = proofOf(key, 'server', String(message.nonce))
          socket.write(messageFrame({ type: 'prove', proof, graceMs }))
        } else if (message.type === 'owner') {
          clearTimeout(timer)
          current = { socket, keeperPid: Number(message.pid) }
          for (const one of message.launches as KeptProcess[]) processes.set(one.launchId, openProcess(one))
          resolve(current)
        } else handle(message)
      },
      output: (launchId, bytes) => processes.get(launchId)?.push(bytes),
    })
    socket.on('connect', () => socket.write(messageFrame({ type: 'hello', protocol: keeperProtocol, nonce })))
    socket.on('data', piece => {
      try {
        read(piece)
      } catch (thrown) {
        socket.destroy(thrown as Error)
      }
    })
    socket.on('error', reject)
    socket.on('close', () => {
      at.close()
      clearTimeout(timer)
      reject(new Error('it is of another version, or busy'))
      if (current?.socket === socket) lost()
    })
    return promise
  }

  function handle(message: Record<string, unknown>): void {
    const launchId = String(message.launchId)
    const starting = starts.get(launchId)
    switch (message.type) {
      case 'started': {
        const one = openProcess({ launchId, pid: Number(message.pid), about: null, note: null })
        processes.set(launchId, one)
        starting?.resolve(one.kept)
        break
      }
      case 'refused':
        starting?.resolve(String(message.reason))
        break
      case 'ended':
        processes.get(launchId)?.end({ code: message.code as number | null, signal: message.signal as string | null })
        processes.delete(launchId)
        break
      case 'dropped':
        log.warn('Output of engines was dropped, because it came faster than it is read', {
          bytes: Number(message.bytes),
        })
    }
  }

  /** Without their parent the engines end: the kernel kills them, and the launcher what is left. */
  function lost(): void {
    current = undefined
    connection = undefined
    for (const starting of starts.values()) starting.resolve(over ?? keeperEnded)
    if (over !== undefined) return
    if (processes.size > 0) log.error('The keeper of the engines has ended, and the engines with it')
    for (const one of processes.values()) one.end({ code: null, signal: 'SIGKILL' })
    processes.clear()
  }

  async function startKeeper(): Promise<Connection> {
    const { file, args, env } = keeperCommand(run)
    const child = spawn(file, args, {
      cwd: run,
      env,
      // A session of its own: no terminal and no signal to the server's group reaches it.
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    const ready = new Promise<void>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', code => reject(new Error(`it has exited (${code})`)))
      child.stdout.once('data', () => resolve())
      setTimeout(() => reject(new Error('it was not ready in time')), startMs).unref()
    })
    child.stdin.on('error', () => {})
    child.stdin.end(key.export())
    await ready
    for (const stream of [child.stdin, child.stdout]) stream.destroy()
    child.unref()
    return await connect()
  }

  const connected = (): Promise<Connection> =>
    (connection ??= startKeeper().catch((thrown: unknown) => {
      connection = undefined
      throw thrown
    }))

  /** Starts nothing more, and closes the connection. Does nothing the second time. */
  async function finish(why: string, type: 'release' | 'end'): Promise<void> {
    process.off('exit', onExit)
    if (over !== undefined) return
    over = why
    await connection?.catch(() => {})
    if (current) await close(current.socket, { type })
  }

  // A second Ctrl-C or SIGTERM ends this process at once, and the engines with it. After a crash they stay for the grace.
  const onExit = (code: number) => {
    const { SIGINT, SIGTERM } = constants.signals
    if (current && (code === 128 + SIGINT || code === 128 + SIGTERM)) sendSignal(current.keeperPid, 'SIGTERM')
  }
  process.on('exit', onExit)

  try {
    connection = connect()
    await connection
  } catch (thrown) {
    connection = undefined
    const { code, message } = thrown as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'ECONNREFUSED') {
      log.warn(
        `The keeper that an earlier server has left cannot be used: ${message}. It is ended, and its engines with it`,
      )
      const pids = (await endKeepers(run)).map(({ pid }) => pid).join(' ')
      if (pids) log.error('Cannot end the keeper that an earlier server has left', { pids })
    }
  }

  return {
    /** The processes that an earlier server has left and that still run. */
    left: (): KeptProcess[] => [...processes.values()].map(({ kept }) => kept),
    /** The ids of their engines. A launch id is the engine id and a launch number. */
    engines: (): ReadonlySet<string> => new Set([...processes.keys()].map(id => id.replace(/-\d+$/, ''))),
    /** Whether engines may outlive this server, or have outlived an earlier one. */
    isUsed: (): boolean => graceMs > 0 || processes.size > 0,
    /** The keeper's process id; null while there is none. */
    pid: (): number | null => current?.keeperPid ?? null,
    /** Starts a process. If that fails, resolves with the reason as a sentence. `about`: data for the next server. */
    async start(launchId: string, options: ChildOptions, about: object): Promise<KeptProcess | string> {
      if (over !== undefined) return over
      try {
        const { socket } = await connected()
        if (over !== undefined) return over
        const starting = Promise.withResolvers<KeptProcess | string>()
        starts.set(launchId, starting)
        socket.write(messageFrame({ type: 'start', launchId, ...options, about }))
        return await starting.promise.finally(() => starts.delete(launchId))
      } catch (thrown) {
        return `It cannot be started: the process that keeps engines could not be used: ${(thrown as Error).message}.`
      }
    },
    /** Replaces what the next server is told of an engine; null: it should not take it over. */
    note(launchId: string, note: object | null): void {
      current?.socket.write(messageFrame({ type: 'note', launchId, note }))
    },
    /** Lets go of the engines without ending them, for another server. Resolves when the keeper has let go of this one. */
    async release(): Promise<void> {
      await finish('It cannot be started: another server has the engines.', 'release')
    },
    /** Ends the keeper and every engine that is left. */
    async end(): Promise<void> {
      await finish('It cannot be started: this server is stopping.', 'end')
    },
  }
}

export type KeeperClient = Awaited<ReturnType<typeof openKeeperClient>>

async function close(socket: Socket, message: object): Promise<void> {
  const closed = new Promise(done => socket.once('close', done))
  socket.write(messageFrame(message))
  await closed
}

/** A process of the keeper. Its output waits until it is read; the keeper sends no more than the end of it at first. */
function openProcess({ launchId, pid, about, note, printed = 0 }: Omit<KeptProcess, 'ended' | 'read'>) {
  const { promise: ended, resolve } = Promise.withResolvers<ProcessEnd>()
  let waiting: Buffer[] = []
  let reader: ((chunk: Buffer) => void) | undefined
  const kept: KeptProcess = {
    launchId,
    pid,
    about,
    note,
    printed,
    ended,
    read(chosen) {
      reader = chosen
      for (const chunk of waiting) chosen(chunk)
      waiting = []
    },
  }
  return {
    kept,
    push(chunk: Buffer): void {
      if (reader) reader(chunk)
      else waiting.push(Buffer.from(chunk))
    },
    end: resolve,
  }
}
