import { rmSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { selfCommand, selfFiles } from '../../../core/assets.ts'
import { Failure } from '../../../core/failure.ts'
import type { Log } from '../../../core/log.ts'
import type { SshPool } from '../../../core/models/pools.ts'
import type { Discovery } from '../../devices/device.ts'
import type { Endpoint, Launch, Launcher, LaunchOptions, LogPiece } from '../launcher.ts'
import { secretsIn } from '../launcher.ts'
import type { AgentClient } from './agent-client.ts'
import type { Connection, SshProgram } from './connection.ts'
import { openForwards } from './forwards.ts'
import { openLink } from './link.ts'
import { openModelCopies } from './model-copies.ts'
import { type OwnProgram, portableLaunch } from './portable-launch.ts'
import { socketFolder } from './socket-folder.ts'

export interface SshLauncherOptions {
  /** Name of the pool. */
  pool: string
  settings: Pick<SshPool, 'host' | 'port' | 'identity_file' | 'orphan_grace'>
  dataDir: string
  /** Tells engines of this server from those of others on the machine. */
  serverId: string
  log: Log
  /** The environment of the server, in which ssh finds its agent. */
  host: Readonly<Record<string, string | undefined>>
  /** The program ssh with its first arguments. */
  ssh?: SshProgram['command']
}

/** Milliseconds that a start waits for the first connection: infer may be copied to the machine before. */
const firstMs = 5_000
/** Milliseconds in which the machine must accept that its engines are ended, or let go. */
const endMs = 5_000
/** Milliseconds until a socket that could not be made is tried again. */
const againMs = 1_000
/** How many launches that could not be started are still listed. */
const keptGone = 256

/** A launch whose files are being copied, or that has ended before it was started there. */
interface Waiting {
  options: LaunchOptions
  reason: () => string
  isGone: boolean
  abort: AbortController
  /** The call that starts it there, once it was sent: from then on the agent may know it. */
  sent?: Promise<unknown>
}

/**
 * Starts engines on one machine that is reached by ssh. infer runs there as an agent with the launcher and the keeper of that
 * machine, over one connection, which also forwards the sockets of the engines: nothing listens on the network. Engines
 * outlive the connection for the grace of the pool. Resolves after the first attempt to connect, also where it has failed, and
 * after `firstMs` at most.
 */
export async function openSshLauncher(options: SshLauncherOptions): Promise<Launcher> {
  const { pool, settings, dataDir, serverId, host, ssh = ['ssh'], log } = options
  const own: OwnProgram = { command: commandOf(selfCommand([])), files: selfFiles() }
  const folder = socketFolder(dataDir, pool)
  const listeners = new Set<() => void>()
  const waiting = new Map<string, Waiting>()
  /** What was noted last of each launch, for an agent that starts later. */
  const notes = new Map<string, object>()
  const node = settings.host.replace(/^.*@/, '')

  let hasLeft = false
  let noted: AgentClient | undefined
  const changed = () => {
    const agent = link.agent()
    if (agent && agent !== noted) for (const [launchId, note] of notes) agent.note(launchId, note)
    noted = agent
    for (const listener of listeners) listener()
  }
  const link = openLink(
    {
      pool,
      address: settings,
      orphanGraceMs: settings.orphan_grace,
      folder,
      serverId,
      ssh: { command: ssh, env: host },
      log,
    },
    changed,
  )
  const forwards = openForwards(folder)
  const copies = openModelCopies(link, own, { node, hubEndpoint: host.HF_ENDPOINT, log })

  const startThere = async (launch: LaunchOptions, files: ReadonlyMap<string, string>, signal?: AbortSignal) =>
    link.now().agent.call('start', { options: portableLaunch(launch, { own, dataDir, files }) }, signal)

  /**
   * The socket that leads to an engine. Where it cannot be made now, the one before it, at which requests wait, or undefined; it
   * is tried again soon. The other engines of the machine are not concerned.
   */
  async function socketOf(launchId: string, to: string, connection: Connection): Promise<string | undefined> {
    try {
      return await forwards.get(launchId, to, connection)
    } catch (thrown) {
      log.warn('The socket of an engine on another machine cannot be made yet', { pool, launch: launchId }, thrown)
      setTimeout(changed, againMs).unref()
      return forwards.known(launchId)
    }
  }

  /** Starts it there once its files were copied. */
  async function startLater(one: Waiting): Promise<void> {
    const { options: launch, abort } = one
    try {
      for (;;) {
        const files = await copies.copy(launch, abort.signal, text => (one.reason = text))
        try {
          abort.signal.throwIfAborted()
          one.sent = startThere(launch, files)
          await one.sent
          waiting.delete(launch.launchId)
          return changed()
        } catch (thrown) {
          // After any other error nobody knows whether it was started, and a repetition starts nothing twice.
          if (thrown instanceof Failure || abort.signal.aborted) throw thrown
          await link.next(abort.signal)
        }
      }
    } catch (thrown) {
      const { message } = thrown as Error
      one.reason = () => (abort.signal.aborted ? 'It was stopped before it was started.' : message)
      one.isGone = true
      changed()
    }
  }

  await Promise.race([link.first, pause(firstMs, undefined, { ref: false })])
  return {
    pollMs: 60_000,
    async start(launch, signal) {
      if (waiting.has(launch.launchId)) return
      const found = await copies.find(launch, signal)
      if (found.missing.length === 0) return void (await startThere(launch, found.files, signal))
      const reason = () => `Its files are being copied to '${node}'.`
      const one: Waiting = { options: launch, reason, isGone: false, abort: new AbortController() }
      waiting.set(launch.launchId, one)
      for (const [id, { isGone }] of [...waiting].slice(0, -keptGone)) if (isGone) waiting.delete(id)
      void startLater(one)
    },
    async list(signal) {
      const { agent, connection } = link.now()
      const listed = (await agent.call('list', {}, signal)) as Launch[]
      const shown = listed.map(async (launch): Promise<Launch> => {
        if (launch.state === 'gone' || !launch.endpoint) {
          void forwards.end(launch.launchId, connection)
          notes.delete(launch.launchId)
          return { ...launch, node }
        }
        const socketPath = await socketOf(launch.launchId, targetOf(launch.endpoint), connection)
        return { ...launch, node, endpoint: socketPath ? { origin: 'http://engine', socketPath, generation: 1 } : null }
      })
      const ids = new Set(listed.map(({ launchId }) => launchId))
      return [
        ...(await Promise.all(shown)),
        ...[...waiting.values()].filter(one => !ids.has(one.options.launchId)).map(waitingLaunch),
      ]
    },
    async stop(launchId, graceMs, signal) {
      const one = waiting.get(launchId)
      one?.abort.abort()
      if (one && !one.isGone && !one.sent) return changed()
      await one?.sent?.catch(() => {})
      signal.throwIfAborted()
      await link.now().agent.call('stop', { launchId, graceMs }, signal)
    },
    async *logs(launchId, from, signal) {
      if (waiting.has(launchId)) {
        if (waiting.get(launchId)!.isGone) return
        throw new Error('It is not started yet.')
      }
      yield* piecesOf((piece, stop) => link.now().agent.call('logs', { launchId, from }, stop, piece), signal)
    },
    capacity: async signal => (await link.now().agent.call('capacity', {}, signal)) as Discovery,
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    note(launchId, note) {
      notes.set(launchId, note)
      link.agent()?.note(launchId, note)
    },
    leave: () => finish('leave'),
    close: () => finish('close'),
  }

  /**
   * Lets the agent end or leave its engines, as far as the machine can be reached. The connection stays after `leave`, for
   * requests that still run, until `close`. The sockets in the folder are then those of the next server.
   */
  async function finish(how: 'leave' | 'close'): Promise<void> {
    for (const { abort } of waiting.values()) abort.abort()
    link.leave()
    try {
      const { agent } = link.now()
      await agent.call(how, {}, AbortSignal.timeout(endMs))
      await agent.ended
    } catch {
      // Its engines end after the grace of the pool, unless another server takes them over.
      link.agent()?.end()
    }
    forwards.close()
    hasLeft ||= how === 'leave'
    if (how === 'leave') return
    await link.close()
    if (!hasLeft) rmSync(folder, { recursive: true, force: true })
  }
}

const commandOf = ({ file, args }: { file: string; args: readonly string[] }): string[] => [file, ...args]

/** Where an engine answers on its machine: the path of its socket, or address and port. */
const targetOf = ({ origin, socketPath }: Endpoint): string => socketPath ?? new URL(origin).host

const waitingLaunch = ({ options, reason, isGone }: Waiting): Launch => ({
  launchId: options.launchId,
  engineId: options.engineId,
  modelId: options.modelId,
  state: isGone ? 'gone' : 'pending',
  reason: reason(),
  node: null,
  pid: null,
  endpoint: null,
  status: null,
  endsAt: null,
  note: null,
  secrets: secretsIn(options.env),
})

/** The pieces of an output that a call reports, in order, until it resolves. Rejects as it does. */
async function* piecesOf(
  call: (piece: (piece: LogPiece) => void, signal: AbortSignal) => Promise<unknown>,
  signal: AbortSignal,
): AsyncIterable<LogPiece> {
  const stop = new AbortController()
  let pieces: LogPiece[] = []
  let more = Promise.withResolvers<void>()
  const add = (piece: LogPiece) => {
    pieces.push(piece)
    more.resolve()
  }
  let isOver = false
  const done = call(add, AbortSignal.any([signal, stop.signal])).then(() => {
    isOver = true
  })
  done.catch(() => {})
  try {
    while (!signal.aborted) {
      await Promise.race([more.promise, done])
      more = Promise.withResolvers<void>()
      const now = pieces
      pieces = []
      yield* now
      if (isOver && pieces.length === 0) return
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  } finally {
    stop.abort()
  }
}
