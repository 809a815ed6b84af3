import { mkdirSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isMainThread } from 'node:worker_threads'
import { execa } from 'execa'
import { Failure } from '../../core/failure.ts'
import type { Log } from '../../core/log.ts'
import { openAddresses } from './address.ts'
import { engineEnvironment } from './environment.ts'
import type { Exit, Launch, Launched, Launcher, LaunchOrder } from './launcher.ts'
import { lastWords, type Output, openOutput } from './output.ts'
import { childrenOf, descendantsOf, identityOf, send } from './processes.ts'
import { findProgram } from './program.ts'
import { endAll, openRecord, type Sweep, sweep } from './reap.ts'
import { statusOf, type Wrapper, wrapped } from './wrapper.ts'

interface Child extends Launch {
  pid: number
  exited: Promise<Exit>
  /** Set once it has been asked to end. */
  stopping: Promise<void> | undefined
}

/** Logs of launches that have ended which are kept; at most a megabyte each. */
const keptLogs = 8

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
}: {
  dataDir: string
  bootId: string
  host: Readonly<Record<string, string | undefined>>
  wrapper: Wrapper
  log: Log
}): Promise<Launcher & { swept: Sweep; close(): void }> {
  const run = join(dataDir, 'run')
  const home = join(dataDir, 'home')
  for (const directory of [run, home]) mkdirSync(directory, { recursive: true, mode: 0o700 })
  const record = openRecord(join(run, 'launches.json'))
  const addresses = openAddresses(run)
  const children = new Map<string, Child>()
  const outputs = new Map<string, Output>()
  const swept = await sweep(record, bootId)
  if (swept.ended > 0) log.warn('Ended what an earlier run of this server left behind', { processes: swept.ended })
  if (swept.left.length > 0)
    log.error('Processes of an earlier run cannot be ended', { pids: swept.left.map(one => one.pid).join(' ') })

  async function start(order: LaunchOrder): Promise<Launched> {
    // A child told to die with its parent dies with the thread that made it, so it must be one that stays.
    if (!isMainThread) throw new Error('Engines are started from the main thread only.')
    const { launchId, modelId } = order
    const { endpoint, port } = await addresses.take(order.channel, launchId)
    const env = engineEnvironment({ ...order, host, home, bootId, more: order.env })
    const fill = (part: string) =>
      part.replaceAll('{port}', String(port ?? '')).replaceAll('{socket}', endpoint.socketPath ?? '')
    const argv = order.argv.map(fill)
    if (!findProgram(argv[0] ?? '', env.PATH!)) {
      addresses.give(endpoint, port)
      throw new Failure(
        'worker_error',
        `The program '${argv[0]}' that runs '${modelId}' is not installed here, or not on PATH.`,
      )
    }
    record.put({ launchId, bootId, modelId, process: null })
    const { file, args } = wrapped(wrapper, argv)
    const child = execa(file, args, {
      env,
      extendEnv: false,
      cwd: home,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      buffer: false,
      reject: false,
      // A group of its own: asking it to end reaches its workers, and a Ctrl-C at our terminal does not.
      detached: true,
      cleanup: false,
    })
    const output = openOutput()
    outputs.set(launchId, output)
    const pid = child.pid
    if (pid === undefined) {
      const { shortMessage } = (await child) as { shortMessage?: string }
      forget(launchId)
      addresses.give(endpoint, port)
      throw new Failure('worker_error', `The engine of '${modelId}' cannot be started: ${shortMessage ?? file}.`)
    }
    let lastOutputAt = performance.now()
    const listen = (chunk: Buffer) => {
      const before = output.news
      output.push(chunk)
      if (output.news !== before) lastOutputAt = performance.now()
    }
    child.stdout.on('data', listen)
    child.stderr.on('data', listen)
    // Not execa's own promise: it waits for the pipes, and a stray grandchild can hold those open for ever.
    const ended = new Promise<{ code: number | null; by: string | null }>(settle => {
      child.nodeChildProcess.once('exit', (code, by) => settle({ code, by }))
    })
    child.catch(() => {})
    const streams = Promise.all(
      [child.stdout, child.stderr].map(stream => new Promise(done => stream.once('close', done))),
    )
    preferVictim(pid)
    const located = { pid }
    const exited = (async (): Promise<Exit> => {
      const { code, by } = await ended
      await Promise.race([streams, pause(250)])
      output.end()
      const { left } = await endAll({ INFER_LAUNCH_ID: new Set([launchId]) }, 5_000)
      if (left.length > 0)
        log.error('An engine left processes that cannot be ended', {
          model: modelId,
          pids: left.map(p => p.pid).join(),
        })
      children.delete(launchId)
      addresses.give(endpoint, port)
      forget(launchId)
      return { status: statusOf(wrapper, code, by, constants.signals), lastWords: lastWords(output.lines()) }
    })()
    children.set(launchId, { launchId, modelId, pid, startedAt: Date.now(), exited, stopping: undefined })
    const identity = await identityOf(pid)
    if (identity && children.has(launchId)) record.put({ launchId, bootId, modelId, process: identity })
    void locate(pid, wrapper.depth, found => {
      located.pid = found
    })
    return { launchId, pid: () => located.pid, endpoint, exited, lastOutputAt: () => lastOutputAt }
  }

  function forget(launchId: string): void {
    record.remove(launchId)
    const old = [...outputs.keys()].filter(id => !children.has(id)).slice(0, -keptLogs)
    for (const id of old) outputs.delete(id)
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
      if (wrapper.signals === 'group') send(-child.pid, 'SIGTERM')
      else for (const pid of await descendantsOf(child.pid)) send(pid, 'SIGTERM')
      if (await within(child.exited, graceMs)) return
    }
    await kill(child)
    if (await within(child.exited, 10_000)) return
    log.error('An engine does not end even when killed', { model: child.modelId, pid: child.pid })
    await child.exited
  }

  /** From the inside out: the wrapper ends by itself once its namespace is empty, which is how we know that it is. */
  async function kill(child: Child): Promise<void> {
    const inside = wrapper.depth > 0 ? await descendantsOf(child.pid) : []
    for (const pid of inside) send(pid, 'SIGKILL')
    if (inside.length > 0 && (await within(child.exited, 2_000))) return
    send(-child.pid, 'SIGKILL')
    send(child.pid, 'SIGKILL')
  }

  return {
    start,
    stop,
    list: async () =>
      [...children.values()].map(({ launchId, modelId, pid, startedAt }) => ({ launchId, modelId, pid, startedAt })),
    logs: launchId => outputs.get(launchId)?.lines() ?? [],
    swept,
    close: () => addresses.close(),
  }
}

/** When memory runs out the kernel shall take an engine, which can be started again, and not the server. */
function preferVictim(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, '500')
  } catch {
    // Not every container allows it, and it only decides who goes first.
  }
}

/** Finds the engine's own process below the wrapper, for showing; it appears a few milliseconds after the wrapper. */
async function locate(pid: number, depth: number, found: (pid: number) => void): Promise<void> {
  for (let attempt = 0; attempt < 50 && depth > 0; attempt++) {
    let at: number | undefined = pid
    for (let level = 0; level < depth && at !== undefined; level++) at = (await childrenOf(at))[0]
    if (at !== undefined) return found(at)
    await pause(20)
  }
}

const within = (done: Promise<unknown>, ms: number): Promise<boolean> => {
  const late = new AbortController()
  return Promise.race([done.then(() => true), pause(ms, false, { signal: late.signal }).catch(() => false)]).finally(
    () => late.abort(),
  ) as Promise<boolean>
}
