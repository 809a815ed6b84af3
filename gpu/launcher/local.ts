import { mkdirSync, realpathSync } from 'node:fs'
import { constants } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import { withoutLocations } from '../../core/tasks/protocols/engine-text.ts'
import { findProgram } from '../sandbox/program.ts'
import { absentPath, openSandbox, type SandboxOptions, sandboxHint } from '../sandbox/sandbox.ts'
import { exitStatus, type Wrapper, wrapCommand } from '../sandbox/wrapper.ts'
import { openEngineAddresses } from './address.ts'
import { spawnChild } from './child.ts'
import { engineEnvironment, enginePath } from './environment.ts'
import { openLaunchFolders } from './launch-folders.ts'
import type { Launched, Launcher, LaunchOptions, ProcessExit } from './launcher.ts'
import { lastError, openOutputs } from './outputs.ts'
import { descendantsOf, identityOf, locateProgram, sendSignal } from './processes.ts'
import { endAll, openRecord, sweep } from './reap.ts'

interface Child {
  launchId: string
  modelId: string
  pid: number
  exited: Promise<ProcessExit>
  stopping?: Promise<void>
  /** Set when the launcher kills it: wrappers report a kill with different exit statuses. */
  killed: boolean
  wrapper: Wrapper
}

/**
 * Starts engines as child processes of this machine. Opening it first ends processes left by an earlier boot, which
 * would still occupy GPU memory.
 */
export async function openLocalLauncher(
  options: {
    dataDir: string
    bootId: string
    host: Readonly<Record<string, string | undefined>>
    /** How engines without a sandbox are started. */
    wrapper: Wrapper
    log: Log
  } & Pick<SandboxOptions, 'support' | 'secrets'>,
) {
  const { dataDir, bootId, host, wrapper, log, ...sandboxing } = options
  for (const name of ['run', 'home']) mkdirSync(join(dataDir, name), { recursive: true, mode: 0o700 })
  // Engines get paths in it, and a sandbox may not contain the symbolic links on the way.
  const data = realpathSync(dataDir)
  const run = join(data, 'run')
  const sandbox = openSandbox({ ...sandboxing, dataDir: data, host })
  const folders = openLaunchFolders(data)
  const record = openRecord(join(run, 'launches.json'))
  const addresses = openEngineAddresses(run)
  const children = new Map<string, Child>()
  const outputs = openOutputs()
  const swept = await sweep(record, bootId)
  if (swept.ended > 0) log.warn('Ended processes left by an earlier run of this server', { processes: swept.ended })
  if (swept.left.length > 0)
    log.error('Cannot end processes left by an earlier run of this server', {
      pids: swept.left.map(one => one.pid).join(' '),
    })

  async function start(options: LaunchOptions): Promise<Launched> {
    const { launchId, modelId } = options
    const shared = folders.make(options)
    const { endpoint, port } = await addresses.take(options.channel, launchId)
    /** `why` may name paths of this machine; callers get it without them. */
    const fail = (why: string, said = withoutLocations(why)): never => {
      forget(launchId)
      addresses.release(endpoint, port)
      folders.release(options)
      throw new Failure('worker_error', said, { engineText: why })
    }
    const missing = (program: string): string =>
      `The program '${program}' that runs '${modelId}' is not installed here, or not on PATH.`
    const env = engineEnvironment({ ...options, host, home: shared.home, bootId, more: options.env })
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
    record.put({ launchId, bootId, modelId, process: null })
    const output = outputs.open({ launchId, modelId, secrets: secretsIn(options.env) })
    const write = [shared.home, shared.outputs, ...(endpoint.socketPath ? [dirname(endpoint.socketPath)] : [])]
    const configuredVariables = Object.keys(options.env)
    let confined: ReturnType<typeof sandbox.wrapperFor>
    try {
      const read = [shared.inputs]
      const requirements = { ...options.sandbox, read: options.sandbox.read.map(inData) }
      confined = sandbox.wrapperFor({ requirements, argv, env, configuredVariables, write, read })
    } catch (cause) {
      return fail(`Cannot create the sandbox of '${modelId}': ${(cause as Error).message}.`)
    }
    const used = confined?.wrapper ?? wrapper
    const spawned = await spawnChild({ ...wrapCommand(used, argv), env, cwd: shared.home, output })
    if (typeof spawned === 'string') return fail(spawned)
    const { pid, lastOutputAt } = spawned
    const child: Child = {
      launchId,
      modelId,
      pid,
      killed: false,
      wrapper: used,
      exited: spawned.ended.then(async ({ code, signal }): Promise<ProcessExit> => {
        await endLeftovers(child, log)
        children.delete(launchId)
        addresses.release(endpoint, port)
        forget(launchId)
        folders.release(options)
        const status = child.killed ? 'SIGKILL' : exitStatus(used, code, signal, constants.signals)
        const words = lastError(output.lines())
        if (!confined) return { status, lastError: words }
        const hint = sandboxHint(confined.level, status, words)
        const loadingHint = sandboxHint(confined.level, status, words, absentPath(words, confined))
        return { status, lastError: words, hint, loadingHint }
      }),
    }
    children.set(launchId, child)
    let engine = pid
    void locateProgram(pid, used, found => {
      engine = found
    })
    const identity = await identityOf(pid)
    if (identity && children.has(launchId)) record.put({ launchId, bootId, modelId, process: identity })
    return { launchId, pid: () => engine, endpoint, exited: child.exited, lastOutputAt }
  }

  function forget(launchId: string): void {
    record.remove(launchId)
    outputs.ended(launchId)
  }

  async function stop(launchId: string, graceMs: number): Promise<void> {
    const child = children.get(launchId)
    if (!child) return
    if (child.stopping && graceMs === 0) await kill(child)
    child.stopping ??= end(child, graceMs, log)
    await child.stopping
  }

  return {
    start,
    stop,
    logs: outputs.lines,
    outputs,
    swept,
    close: () => addresses.close(),
  } satisfies Launcher & Record<string, unknown>
}

/** Ends processes that the engine started in other sessions; without a PID namespace they survive it. */
async function endLeftovers({ launchId, modelId }: Child, log: Log): Promise<void> {
  const { left } = await endAll({ INFER_LAUNCH_ID: new Set([launchId]) }, 5_000)
  const pids = left.map(one => one.pid).join(' ')
  if (pids) log.error('Cannot end processes started by an engine that has exited', { model: modelId, pids })
}

async function end(child: Child, graceMs: number, log: Log): Promise<void> {
  if (graceMs > 0) {
    if (child.wrapper.signals === 'group') sendSignal(-child.pid, 'SIGTERM')
    else for (const pid of await descendantsOf(child.pid)) sendSignal(pid, 'SIGTERM')
    if (await within(child.exited, graceMs)) return
  }
  await kill(child)
  if (await within(child.exited, 10_000)) return
  log.error('An engine still runs 10 s after SIGKILL', { model: child.modelId, pid: child.pid })
  await child.exited
}

/** Kills the processes inside first: the wrapper then exits, which proves that its namespace is empty. */
async function kill(child: Child): Promise<void> {
  child.killed = true
  const inside = child.wrapper.depth > 0 ? await descendantsOf(child.pid) : []
  for (const pid of inside) sendSignal(pid, 'SIGKILL')
  if (inside.length > 0 && (await within(child.exited, 2_000))) return
  sendSignal(-child.pid, 'SIGKILL')
  sendSignal(child.pid, 'SIGKILL')
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

/** Values of variables whose name indicates a secret; they are redacted in the engine's output. */
const secretsIn = (env: Readonly<Record<string, string>>): string[] =>
  Object.entries(env).flatMap(([name, value]) =>
    /KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL/i.test(name) && value.length >= 8 ? [value] : [],
  )
