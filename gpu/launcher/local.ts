import { mkdirSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import { openSandbox, type SandboxOptions, sandboxHint } from '../sandbox/sandbox.ts'
import { openAddresses } from './address.ts'
import { spawnChild } from './child.ts'
import { engineEnvironment } from './environment.ts'
import { openLaunchFolders } from './launch-folders.ts'
import type { Exit, Launch, Launched, Launcher, LaunchOptions } from './launcher.ts'
import { locate } from './locate.ts'
import { lastWords } from './output.ts'
import { type Outputs, openOutputs } from './outputs.ts'
import { descendantsOf, identityOf, send } from './processes.ts'
import { findProgram } from './program.ts'
import { endAll, openRecord, type Sweep, sweep } from './reap.ts'
import { statusOf, type Wrapper, wrapped } from './wrapper.ts'

interface Child extends Launch {
  pid: number
  exited: Promise<Exit> | undefined
  /** Set once it has been asked to end. */
  stopping: Promise<void> | undefined
  /** Set once it has been killed by us: wrappers differ in what they make of that. */
  killed: boolean
  wrapper: Wrapper
}

/**
 * Starts engines as child processes of this machine. Opening it first ends what an earlier boot left behind, so that
 * no load meets a card that a dead server's engine still fills.
 */
export async function openLocalLauncher({
  dataDir,
  bootId,
  host,
  wrapper,
  log,
  ...sandboxing
}: {
  dataDir: string
  bootId: string
  host: Readonly<Record<string, string | undefined>>
  /** How engines without a sandbox are started. */
  wrapper: Wrapper
  log: Log
} & Pick<SandboxOptions, 'support' | 'secrets'>): Promise<
  Launcher & { swept: Sweep; outputs: Outputs; close(): void }
> {
  for (const name of ['run', 'home']) mkdirSync(join(dataDir, name), { recursive: true, mode: 0o700 })
  // Engines get paths in it, and in a sandbox there may be no link that leads to them.
  const data = realpathSync(dataDir)
  const run = join(data, 'run')
  const sandbox = openSandbox({ ...sandboxing, dataDir: data, host })
  const folders = openLaunchFolders(data)
  const record = openRecord(join(run, 'launches.json'))
  const addresses = openAddresses(run)
  const children = new Map<string, Child>()
  const outputs = openOutputs()
  const swept = await sweep(record, bootId)
  if (swept.ended > 0) log.warn('Ended what an earlier run of this server left behind', { processes: swept.ended })
  if (swept.left.length > 0)
    log.error('Processes of an earlier run cannot be ended', { pids: swept.left.map(one => one.pid).join(' ') })

  async function start(options: LaunchOptions): Promise<Launched> {
    const { launchId, modelId } = options
    const shared = folders.make(options)
    const { endpoint, port } = await addresses.take(options.channel, launchId)
    const giveUp = (why: string): never => {
      forget(launchId)
      addresses.give(endpoint, port)
      folders.release(options)
      throw new Failure('worker_error', why)
    }
    const env = engineEnvironment({ ...options, host, home: shared.home, bootId, more: options.env })
    const argv = options.argv.map(part =>
      part.replaceAll('{port}', String(port ?? '')).replaceAll('{socket}', endpoint.socketPath ?? ''),
    )
    if (!findProgram(argv[0] ?? '', env.PATH!))
      giveUp(`The program '${argv[0]}' that runs '${modelId}' is not installed here, or not on PATH.`)
    record.put({ launchId, bootId, modelId, process: null })
    const output = outputs.open({ launchId, modelId, secrets: secretsIn(options.env) })
    const write = [shared.home, shared.outputs, ...(endpoint.socketPath ? [dirname(endpoint.socketPath)] : [])]
    const own = Object.keys(options.env)
    let confined: ReturnType<typeof sandbox.wrapperFor>
    try {
      confined = sandbox.wrapperFor({ requirements: options.sandbox, argv, env, own, write, read: [shared.inputs] })
    } catch (cause) {
      return giveUp(`The sandbox of '${modelId}' cannot be made: ${(cause as Error).message}.`)
    }
    const used = confined?.wrapper ?? wrapper
    const spawned = await spawnChild({ ...wrapped(used, argv), env, cwd: shared.home, output })
    if (typeof spawned === 'string') return giveUp(spawned)
    const { pid, lastOutputAt } = spawned
    const child: Child = {
      launchId,
      modelId,
      pid,
      startedAt: Date.now(),
      stopping: undefined,
      killed: false,
      wrapper: used,
      exited: undefined,
    }
    children.set(launchId, child)
    const exited = spawned.ended.then(async ({ code, signal }): Promise<Exit> => {
      await endLeftovers(child)
      children.delete(launchId)
      addresses.give(endpoint, port)
      forget(launchId)
      folders.release(options)
      const status = child.killed ? 'SIGKILL' : statusOf(used, code, signal, constants.signals)
      const words = lastWords(output.lines())
      return { status, lastWords: words, hint: sandboxHint(confined?.level ?? 'none', status, words) }
    })
    child.exited = exited
    let engine = pid
    void locate(pid, used, found => {
      engine = found
    })
    const identity = await identityOf(pid)
    if (identity && children.has(launchId)) record.put({ launchId, bootId, modelId, process: identity })
    return { launchId, pid: () => engine, endpoint, exited, lastOutputAt }
  }

  /** What an engine left in sessions of their own, where no namespace took them along. */
  async function endLeftovers({ launchId, modelId }: Child): Promise<void> {
    const { left } = await endAll({ INFER_LAUNCH_ID: new Set([launchId]) }, 5_000)
    const pids = left.map(one => one.pid).join(' ')
    if (pids) log.error('An engine left processes that cannot be ended', { model: modelId, pids })
  }

  function forget(launchId: string): void {
    record.remove(launchId)
    outputs.ended(launchId)
  }

  async function stop(launchId: string, graceMs: number): Promise<void> {
    const child = children.get(launchId)
    if (!child) return
    if (child.stopping && graceMs === 0) await kill(child)
    child.stopping ??= end(child, graceMs)
    await child.stopping
  }

  async function end(child: Child, graceMs: number): Promise<void> {
    if (graceMs > 0) {
      if (child.wrapper.signals === 'group') send(-child.pid, 'SIGTERM')
      else for (const pid of await descendantsOf(child.pid)) send(pid, 'SIGTERM')
      if (await within(child.exited!, graceMs)) return
    }
    await kill(child)
    if (await within(child.exited!, 10_000)) return
    log.error('An engine does not end even when killed', { model: child.modelId, pid: child.pid })
    await child.exited
  }

  /** From the inside out: the wrapper ends by itself once its namespace is empty, which is how we know that it is. */
  async function kill(child: Child): Promise<void> {
    child.killed = true
    const inside = child.wrapper.depth > 0 ? await descendantsOf(child.pid) : []
    for (const pid of inside) send(pid, 'SIGKILL')
    if (inside.length > 0 && (await within(child.exited!, 2_000))) return
    send(-child.pid, 'SIGKILL')
    send(child.pid, 'SIGKILL')
  }

  return {
    start,
    stop,
    list: async () =>
      [...children.values()].map(({ launchId, modelId, pid, startedAt }) => ({ launchId, modelId, pid, startedAt })),
    logs: launchId => outputs.lines(launchId),
    outputs,
    swept,
    close: () => addresses.close(),
  }
}

async function within(done: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new AbortController()
  const never = pause(ms, false, { signal: late.signal }).catch(() => false)
  try {
    return await Promise.race([done.then(() => true), never])
  } finally {
    late.abort()
  }
}

/** Values in an engine's environment that its name says are secret: what an engine prints must not show them. */
const secretsIn = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i.test(name) && value.length >= 8 ? [value] : [],
  )
