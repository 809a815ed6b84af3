import { mkdirSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import type { Discovery } from '../devices/device.ts'
import { findProgram } from '../sandbox/program.ts'
import { absentPath, openSandbox, type SandboxOptions, sandboxHint } from '../sandbox/sandbox.ts'
import { exitStatus, type Wrapper, wrapCommand } from '../sandbox/wrapper.ts'
import { openEngineAddresses } from './address.ts'
import { type ChildOptions, spawnChild } from './child.ts'
import { engineEnvironment, enginePath } from './environment.ts'
import type { KeeperClient, KeptProcess } from './keeper-client.ts'
import { openLaunchFolders, orUnwritable } from './launch-folders.ts'
import { type Endpoint, type Launch, type Launcher, type LaunchOptions, secretsIn } from './launcher.ts'
import { type LogBytes, openLogBytes } from './log-bytes.ts'
import { descendantsOf, identityOf, locateProgram, type ProcessIdentity, signal } from './processes.ts'
import { endAll, openRecord, sweep } from './reap.ts'

interface Child {
  about: About
  launchId: string
  /** The process that was started: the wrapper's, if it has one. */
  pid: number
  /** The engine's own, once it is found below the wrapper. */
  enginePid: number
  /** Signals go only to this process; undefined if it had exited at once. */
  identity: Promise<ProcessIdentity | undefined>
  logs: LogBytes
  /** Resolves when it has exited, or when another server gets it: `letGo`. */
  done: Promise<unknown>
  letGo: () => void
  isGone: boolean
  stopping?: Promise<void>
  /** Set when the launcher kills it: wrappers report a kill with different exit statuses. */
  killed: boolean
  note: unknown
  /** A path that its last error names and its sandbox lacks. */
  absent: (words: string) => Promise<string | undefined>
}

/** A launch that has ended. */
type Ended = Pick<Child, 'about' | 'launchId' | 'logs' | 'absent'> & { status: string }

/** How many launches that have ended are still listed. */
const keptEnded = 256
/** Milliseconds in which the engines that are left must have ended when it is closed. */
const closeMs = 5_000

/** What the launcher of the next server must know of a launch. Plain data. */
interface About {
  engineId: string
  modelId: string
  endpoint: Endpoint
  port: number | null
  wrapper: Pick<Wrapper, 'name' | 'signals' | 'depth'>
  /** The level of its sandbox; null without one. */
  level: 'strict' | 'files' | null
  /** Texts that are redacted in its output. */
  secrets: readonly string[]
}

export interface LocalLauncherOptions extends Pick<SandboxOptions, 'support' | 'secrets'> {
  dataDir: string
  bootId: string
  /** The boot of another server that still runs: its engines are left alone. */
  otherBootId?: string | undefined
  host: Readonly<Record<string, string | undefined>>
  /** How engines without a sandbox are started. */
  wrapper: Wrapper
  /** The parent of the engines, which outlives this process; absent: this process is. */
  keeper?: KeeperClient | undefined
  /** The devices of this machine. */
  devices: () => Promise<Discovery>
  log: Log
}

/**
 * Starts engines as processes of this machine. Opening it first ends processes left by an earlier boot, which would still
 * occupy GPU memory, but for those that the keeper has: `list` shows them.
 */
export async function openLocalLauncher(options: LocalLauncherOptions) {
  const { dataDir, bootId, otherBootId, host, wrapper, keeper, devices, log, ...sandboxing } = options
  for (const name of ['run', 'home']) mkdirSync(join(dataDir, name), { recursive: true, mode: 0o700 })
  // Engines get paths in it, and a sandbox may not contain the symbolic links on the way.
  const data = realpathSync(dataDir)
  const run = join(data, 'run')
  const sandbox = await openSandbox({ ...sandboxing, dataDir: data, host })
  const folders = openLaunchFolders(data)
  const record = openRecord(join(run, 'launches.json'))
  const addresses = openEngineAddresses(run)
  const starts = new Map<string, Promise<void>>()
  const children = new Map<string, Child>()
  const ended = new Map<string, Ended>()
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  const left = keeper?.left() ?? []
  const boots = otherBootId === undefined ? [bootId] : [bootId, otherBootId]
  const swept = await sweep(record, boots, new Set(left.map(({ launchId }) => launchId)))
  if (swept.ended > 0) log.warn('Ended processes left by an earlier run of this server', { processes: swept.ended })
  if (swept.left.length > 0)
    log.error('Cannot end processes left by an earlier run of this server', {
      pids: swept.left.map(one => one.pid).join(' '),
    })

  async function start(options: LaunchOptions): Promise<void> {
    const { launchId, modelId } = options
    const shared = orUnwritable(modelId, () => {
      const made = folders.make(options)
      record.put({ launchId, bootId, modelId, process: null })
      return made
    })
    const { endpoint, port } = await addresses.take(options.channel, launchId).catch((cause: Error) => {
      record.remove(launchId)
      folders.release(options)
      const why = `There is no address for the engine of '${modelId}': ${cause.message}.`
      throw new Failure('worker_error', withoutLocations(why), { engineText: why })
    })
    /** `why` may name paths of this machine; callers get it without them. */
    const fail = (why: string, said = withoutLocations(why)): never => {
      record.remove(launchId)
      addresses.release(endpoint, port)
      folders.release(options)
      throw new Failure('worker_error', said, { engineText: why })
    }
    const missing = (program: string): string =>
      `The program '${program}' that runs '${modelId}' is not installed here, or not on PATH.`
    const env = engineEnvironment({ ...options, ...shared, host, bootId, more: options.env })
    env.PATH = enginePath(data, env.PATH!, options.environments)
    const inData = (part: string) => part.replaceAll('{data_directory}', () => data)
    const argv = options.argv.map(part =>
      inData(part)
        .replaceAll('{port}', String(port ?? ''))
        .replaceAll('{socket}', endpoint.socketPath ?? '')
        .replaceAll('{home}', () => shared.home)
        .replaceAll('{outputs}', () => shared.outputs),
    )
    if (!findProgram(argv[0] ?? '', env.PATH)) fail(missing(argv[0] ?? ''), missing(basename(argv[0] ?? '')))
    const write = [shared.home, shared.outputs, ...(endpoint.socketPath ? [dirname(endpoint.socketPath)] : [])]
    const configuredVariables = Object.keys(options.env)
    let confined: Awaited<ReturnType<typeof sandbox.wrapperFor>>
    try {
      const read = [shared.inputs]
      const requirements = { ...options.sandbox, read: options.sandbox.read.map(inData) }
      confined = await sandbox.wrapperFor({ requirements, argv, env, configuredVariables, write, read })
    } catch (cause) {
      return fail(`Cannot create the sandbox of '${modelId}': ${(cause as Error).message}.`)
    }
    const used = confined?.wrapper ?? wrapper
    const about: About = {
      engineId: options.engineId,
      modelId,
      endpoint,
      port,
      wrapper: { name: used.name, signals: used.signals, depth: used.depth },
      level: confined?.level ?? null,
      secrets: secretsIn(options.env),
    }
    const spawned = await spawn(launchId, { ...wrapCommand(used, argv), env, cwd: shared.home }, about)
    if (typeof spawned === 'string') return fail(spawned)
    const child = follow(launchId, about, spawned, async words => confined && (await absentPath(words, confined)))
    const identity = await child.identity
    if (identity && children.has(launchId)) record.put({ launchId, bootId, modelId, process: identity })
  }

  const spawn = (launchId: string, command: ChildOptions, about: About) =>
    keeper ? keeper.start(launchId, command, about) : spawnChild(command)

  /** Keeps the output of a process, and cleans up when it has ended. */
  function follow(
    launchId: string,
    about: About,
    spawned: Pick<KeptProcess, 'pid' | 'ended' | 'read' | 'printed'>,
    absent: Child['absent'] = async () => undefined,
  ): Child {
    const { pid, printed } = spawned
    const logs = openLogBytes(printed)
    spawned.read(chunk => logs.push(chunk))
    const exited = spawned.ended.then(async ({ code, signal }) => {
      await endLeftovers(child, log)
      const status = child.killed ? 'SIGKILL' : exitStatus(about.wrapper, code, signal, constants.signals)
      children.delete(launchId)
      ended.set(launchId, { launchId, about, logs, absent, status })
      for (const id of [...ended.keys()].slice(0, -keptEnded)) ended.delete(id)
      addresses.release(about.endpoint, about.port)
      record.remove(launchId)
      folders.release(about)
      logs.end()
      changed()
    })
    const gone = Promise.withResolvers<void>()
    const child: Child = {
      about,
      launchId,
      pid,
      enginePid: pid,
      identity: identityOf(pid),
      logs,
      done: Promise.race([exited, gone.promise]),
      letGo() {
        child.isGone = true
        gone.resolve()
      },
      isGone: false,
      killed: false,
      note: null,
      absent,
    }
    children.set(launchId, child)
    void locateProgram(pid, about.wrapper, found => {
      child.enginePid = found
      changed()
    })
    return child
  }

  for (const one of left) {
    const { launchId } = one
    const known = isAbout(one.about) ? one.about : undefined
    const about = known ?? unknownLaunch(launchId)
    addresses.adopt(about.port)
    follow(launchId, about, one).note = known ? one.note : { refusal: 'It was started by another version.' }
  }

  return {
    // Every change is announced; the list is only the net below.
    pollMs: 60_000,
    start(options) {
      const { launchId } = options
      if (children.has(launchId) || ended.has(launchId)) return Promise.resolve()
      const starting = starts.get(launchId) ?? start(options).finally(() => starts.delete(launchId))
      starts.set(launchId, starting)
      return starting
    },
    async stop(launchId, graceMs) {
      await starts.get(launchId)?.catch(() => {})
      const child = children.get(launchId)
      if (!child || child.isGone) return
      if (child.stopping && graceMs === 0) void kill(child)
      child.stopping ??= end(child, graceMs, log)
      changed()
    },
    list: async () => [...[...children.values()].map(launchOf), ...[...ended.values()].map(endedLaunch)],
    async *logs(launchId, from, signal) {
      const known = children.get(launchId) ?? ended.get(launchId)
      if (known) yield* known.logs.read(from, signal)
    },
    capacity: devices,
    watch(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    note(launchId, note) {
      const child = children.get(launchId)
      if (child) child.note = note
      keeper?.note(launchId, note)
    },
    async hints(launchId, status, words) {
      const known = ended.get(launchId)
      const level = known?.about.level
      if (!known || !level) return {}
      const hint = sandboxHint(level, status, words)
      return { hint, loadingHint: hint && sandboxHint(level, status, words, await known.absent(words)) }
    },
    async leave() {
      record.freeze()
      if (!keeper) return
      // Those that are being stopped too: the next server ends them.
      for (const child of children.values()) child.letGo()
      await keeper.release()
      children.clear()
      addresses.leave()
    },
    /** What was ended when it was opened. */
    swept,
    async close() {
      const left = [...children.values()]
      if (keeper) await keeper.end()
      else for (const child of left) child.stopping ??= end(child, 0, log)
      await within(Promise.all(left.map(({ done }) => done)), closeMs)
      addresses.close()
    },
  } satisfies Launcher & Record<string, unknown>
}

const launchOf = ({ launchId, about, stopping, enginePid, note }: Child): Launch => ({
  launchId,
  engineId: about.engineId,
  modelId: about.modelId,
  state: stopping ? 'ending' : 'running',
  reason: null,
  node: null,
  pid: enginePid,
  endpoint: { ...about.endpoint, generation: 1 },
  status: null,
  endsAt: null,
  note,
  secrets: about.secrets,
})

const endedLaunch = ({ launchId, about, status }: Ended): Launch => ({
  launchId,
  engineId: about.engineId,
  modelId: about.modelId,
  state: 'gone',
  reason: status.startsWith('SIG') ? `It was ended by ${status}.` : `It has exited with status ${status}.`,
  node: null,
  pid: null,
  endpoint: null,
  status,
  endsAt: null,
  note: null,
  secrets: about.secrets,
})

/** Whether a server of this version has said this of a launch. */
function isAbout(about: unknown): about is About {
  const { engineId, modelId, endpoint, port, wrapper, level, secrets } = (about ?? {}) as Partial<About>
  return (
    typeof engineId === 'string' &&
    typeof modelId === 'string' &&
    typeof endpoint?.origin === 'string' &&
    (port === null || typeof port === 'number') &&
    typeof wrapper?.name === 'string' &&
    typeof wrapper.depth === 'number' &&
    level !== undefined &&
    Array.isArray(secrets)
  )
}

/** What is assumed of a launch of another version, which is only ended. */
const unknownLaunch = (launchId: string): About => ({
  engineId: launchId.replace(/-\d+$/, ''),
  modelId: 'unknown',
  endpoint: { origin: '' },
  port: null,
  wrapper: { name: 'plain', signals: 'group', depth: 0 },
  level: null,
  secrets: [],
})

/** Ends processes that the engine started in other sessions; without a PID namespace they survive it. */
async function endLeftovers({ launchId, about }: Child, log: Log): Promise<void> {
  const { left } = await endAll({ INFER_LAUNCH_ID: new Set([launchId]) }, 5_000)
  const pids = left.map(one => one.pid).join(' ')
  if (pids) log.error('Cannot end processes started by an engine that has exited', { model: about.modelId, pids })
}

async function end(child: Child, graceMs: number, log: Log): Promise<void> {
  if (graceMs > 0) {
    if (child.about.wrapper.signals === 'group') await signalTo(child, 'SIGTERM')
    else for (const one of await inside(child)) await signal(one, 'SIGTERM')
    if (await within(child.done, graceMs)) return
  }
  await kill(child)
  if (await within(child.done, 10_000)) return
  log.error('An engine still runs 10 s after SIGKILL', { model: child.about.modelId, pid: child.pid })
  await child.done
}

/** Kills the processes inside first: the wrapper then exits, which proves that its namespace is empty. */
async function kill(child: Child): Promise<void> {
  if (child.isGone) return
  child.killed = true
  const found = child.about.wrapper.depth > 0 ? await inside(child) : []
  for (const one of found) await signal(one, 'SIGKILL')
  if (found.length > 0 && (await within(child.done, 2_000))) return
  await signalTo(child, 'SIGKILL')
}

/** Signals its process group, unless another server has it. */
async function signalTo(child: Child, name: NodeJS.Signals): Promise<void> {
  const identity = await child.identity
  if (identity && !child.isGone) await signal(identity, name, 'group')
}

/** The processes below the wrapper; none when the wrapper has exited, because another process may have its id then. */
async function inside({ pid, identity }: Child): Promise<ProcessIdentity[]> {
  const found = await Promise.all((await descendantsOf(pid)).map(identityOf))
  const [before, now] = await Promise.all([identity, identityOf(pid)])
  return before && before.startTime === now?.startTime ? found.filter(one => one !== undefined) : []
}

async function within(done: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController()
  const timeout = pause(ms, false, { signal: timer.signal }).catch(() => false)
  try {
    return await Promise.race([done.then(() => true), timeout])
  } finally {
    timer.abort()
  }
}
