import { setTimeout as delay } from 'node:timers/promises'
import { Failure } from '../core/failure.ts'
import { faultClass } from '../core/tasks/protocols/engine-text.ts'
import type { Endpoint, LaunchOptions, ProcessExit } from './launcher/launcher.ts'
import type { Launched, Launches } from './launcher/launches.ts'

export type EngineState = 'stopped' | 'starting' | 'ready' | 'stopping'

export interface EngineOptions extends Omit<LaunchOptions, 'launchId'> {
  /** Path that answers 2xx once the engine can work; null for an engine that counts as ready at once. */
  healthPath: string | null
  /** Headers of every request to it, names and values alternating. */
  headers: readonly string[]
  /** A load without progress for this many milliseconds has failed, and so has one that takes ten times as long. */
  loadStallMs: number
  /** Milliseconds between SIGTERM and SIGKILL. */
  graceMs: number
}

/** Attempts to start on a free port: another program may bind the chosen port before the engine does. */
const maxPortAttempts = 3
const portTaken = /EADDRINUSE|address already in use|bind.*failed|failed to bind|couldn't bind/i

/** Milliseconds: servers register their routes one by one, so a 404 right after the start is no failure yet. */
const maxWrongAnswerMs = 10_000

/** Milliseconds in which an engine must answer that is ready since an earlier server. */
const leftAnswerMs = 5_000

/**
 * One engine, and the only code that changes its state. Callers do not read the state to decide: they call `ready()` or
 * `stop()` and the engine decides, because a crash or an unload can change the state before the caller acts. `onExit` is
 * called when a ready engine ends unexpectedly: with the reason as a sentence for callers. `left`: its process, which an
 * earlier server has started; `ready()` then only asks it.
 */
export function openEngine(
  options: EngineOptions,
  launches: Pick<Launches, 'start' | 'stop' | 'logs'>,
  onExit: (reason: string, exit: ProcessExit) => void,
  left?: Launched,
) {
  const { engineId, channel, graceMs: defaultGraceMs } = options
  let state: EngineState = 'stopped'
  let launched = left
  let starting: { done: Promise<void>; abort: AbortController } | undefined
  let stopping: Promise<void> | undefined
  let attempts = 0
  let queueMs = 0
  let isLost = false

  const launchId = () => (left ? left.launchId : `${engineId}-${attempts}`)
  const logs = () => launches.logs(launchId())

  async function start(abort: AbortSignal): Promise<void> {
    state = 'starting'
    queueMs = 0
    isLost = false
    try {
      for (let attempt = 1; ; attempt++) {
        const failure = await launch(abort)
        if (failure === undefined) return
        const lostPort =
          channel === 'port' &&
          logs()
            .slice(-40)
            .some(line => portTaken.test(line))
        if (left || !lostPort || attempt === maxPortAttempts || abort.aborted) throw failure
      }
    } catch (thrown) {
      state = 'stopped'
      launched = undefined
      throw thrown
    }
  }

  /** Starts one process. Resolves with undefined when it is ready, else with the failure that says why not. */
  async function launch(abort: AbortSignal): Promise<Failure | undefined> {
    attempts++
    const one = left ?? (await launches.start({ ...options, launchId: launchId() }, abort))
    launched = one
    const exited = one.exited.then(exit => {
      isLost ||= state === 'starting' && exit.isLost === true
      const engineText = exitReason({ ...exit, hint: exit.loadingHint })
      return new Failure('worker_error', exitReason(exit), { engineText })
    })
    const polling = new AbortController()
    const asked = left ? { ...options, loadStallMs: Math.min(options.loadStallMs, leftAnswerMs) } : options
    const begun = performance.now()
    const ran = () => void (queueMs += performance.now() - begun)
    const failed = await Promise.race([exited, poll(asked, one, AbortSignal.any([abort, polling.signal]), ran)])
    polling.abort()
    if (failed !== undefined) {
      // Without grace: a loading engine has no requests to finish, and may not handle signals yet.
      const stopped = launches.stop(one.launchId, 0)
      // What has failed there may be known minutes later: the launch is followed until then.
      if (failed === unreached) isLost = true
      else await stopped
      return typeof failed === 'string' ? new Failure('worker_error', failed) : failed
    }
    state = 'ready'
    void one.exited.then(exit => {
      if (launched !== one) return
      launched = undefined
      const unexpected = state === 'ready'
      state = 'stopped'
      if (unexpected) onExit(exitReason(exit), exit)
    })
    return undefined
  }

  async function end(reason: string, graceMs: number): Promise<void> {
    starting?.abort.abort(reason)
    await starting?.done.catch(() => {})
    if (!launched) return
    state = 'stopping'
    await launches.stop(launched.launchId, graceMs)
    launched = undefined
    state = 'stopped'
  }

  return {
    options,
    /** For display only. Never decide on a start or a stop by it. */
    state: () => state,
    pid: (): number | null => launched?.pid() ?? null,
    /** The machine on which it runs; null if it is this one, or not known. */
    node: (): string | null => launched?.node() ?? null,
    /** Whether its last start failed because its machine did, or was taken from it. */
    isLost: (): boolean => isLost,
    /** Why it does not run yet, as a sentence; null once it does. */
    waits: (): string | null => launched?.waits() ?? null,
    /** How long its launches have waited for a machine, milliseconds; 0 before one runs. */
    queueMs: (): number => queueMs,
    /** Calls the listener with the time at which the machine of the running engine ends it: see `Launched`. */
    watchEndsAt: (listener: (endsAt: number | null) => void): void => launched?.watchEndsAt(listener),
    /** Calls the listener when the running engine cannot be reached any more, and when it can be again: see `Launched`. */
    watchReach: (listener: (isReached: boolean) => void): void => launched?.watchReach(listener),
    /** What a request calls that could not connect: see `check` of `Launched`. */
    reachCheck: (): (() => void) | undefined => launched?.check,
    /** Its address; undefined while it is stopped. */
    endpoint: (): Endpoint | undefined => launched?.endpoint(),
    /** The id of its newest launch. */
    launchId,
    /** The last lines it printed, oldest first. */
    logs,
    /**
     * Resolves when the engine is ready: at once, after a start in progress, or after a new start. Rejects with Failure
     * `worker_error` that says why it is not, with paths of this machine only in `engineText`; then none of its
     * processes is left.
     */
    async ready(): Promise<void> {
      // Awaits only a stop in progress: otherwise a stop in the same tick would not see the start.
      // oxlint-disable-next-line no-unmodified-loop-condition -- `stop` of another caller sets it again meanwhile.
      while (stopping) await stopping
      if (state === 'ready') return
      if (!starting) {
        const abort = new AbortController()
        const done = start(abort.signal).finally(() => (starting = undefined))
        starting = { abort, done }
      }
      return starting.done
    },
    /** Resolves when the process and all its children have ended. Safe in any state; `graceMs` 0 kills at once. */
    stop(reason: string, graceMs = defaultGraceMs): Promise<void> {
      if (stopping && graceMs === 0 && launched) void launches.stop(launched.launchId, 0)
      stopping ??= end(reason, graceMs).finally(() => (stopping = undefined))
      return stopping
    },
  }
}

export type Engine = ReturnType<typeof openEngine>

/** Milliseconds until an engine is asked again whether it is ready: what it adds to a load is a small part of that. */
const pauseAfter = (loadingMs: number): number => Math.min(500, Math.max(20, loadingMs / 40))

/** For how many milliseconds a loading engine may be out of reach: so long, or a third of its `load_timeout` if that is less. */
const maxUnreachedMs = 10_000
const unreached = 'Engine cannot be reached any more: its machine may have failed.'

/** Milliseconds between two looks at an engine that waits for a machine. */
const pendingPauseMs = 100

/**
 * Resolves with undefined when the engine is ready, else with the reason why it is not, as a sentence. `ran` is called when it
 * runs on its machine.
 */
async function poll(
  { healthPath, headers, loadStallMs }: EngineOptions,
  { endpoint: endpointOf, waits, lastOutputAt, watchReach }: Launched,
  signal: AbortSignal,
  ran: () => void,
): Promise<string | undefined> {
  let startedAt = performance.now()
  let runs = false
  let lastBody = ''
  let lastBodyAt = startedAt
  let failingSince = Number.POSITIVE_INFINITY
  let unreachedSince = Number.POSITIVE_INFINITY
  watchReach(isReached => void (unreachedSince = isReached ? Number.POSITIVE_INFINITY : performance.now()))
  const { fetchHealth } = await import('./requests/health.ts')
  while (!signal.aborted) {
    const endpoint = endpointOf()
    if (endpoint === undefined || waits() !== null) {
      // Its time to load begins when it runs.
      startedAt = lastBodyAt = performance.now()
      await delay(pendingPauseMs, undefined, { signal }).catch(() => {})
      continue
    }
    if (!runs) ran()
    runs = true
    if (healthPath === null) return undefined
    // Of several addresses one is enough.
    const origins = endpoint.origins ?? [endpoint.origin]
    const answers = await Promise.all(
      origins.map(origin => fetchHealth({ ...endpoint, origin }, healthPath, headers, Math.min(2_000, loadStallMs))),
    )
    const { health, body, untrusted } = answers.find(one => one.health === 'ready') ?? answers[0]!
    if (signal.aborted) break
    if (untrusted) return untrusted
    if (health === 'ready') return undefined
    const now = performance.now()
    if (now - unreachedSince > Math.min(maxUnreachedMs, loadStallMs / 3)) return unreached
    failingSince = typeof health === 'object' ? Math.min(failingSince, now) : Number.POSITIVE_INFINITY
    if (body !== lastBody) [lastBody, lastBodyAt] = [body, now]
    const stalled = now - Math.max(lastBodyAt, lastOutputAt()) > loadStallMs
    if (typeof health === 'object' && (stalled || now - failingSince > maxWrongAnswerMs))
      return `Engine answered ${health.status} at ${healthPath}, where it should say whether it is ready.`
    if (stalled) return `Engine made no progress in loading for ${seconds(loadStallMs)}.`
    if (now - startedAt > 10 * loadStallMs) return `Engine was still not ready after ${seconds(10 * loadStallMs)}.`
    await delay(pauseAfter(now - startedAt), undefined, { signal }).catch(() => {})
  }
  return `Engine was stopped while it was loading${typeof signal.reason === 'string' ? `: ${signal.reason}` : ''}.`
}

/**
 * How an engine ended, as a sentence for callers: `Engine exited (3): out of memory.` It quotes no output, which may
 * contain another caller's request. After a signal the output does not explain the end, so no class is added, but for
 * that by which a program ends itself.
 */
export function exitReason({ status, lastError, hint }: ProcessExit): string {
  const fault = status.startsWith('SIG') && status !== 'SIGABRT' ? undefined : faultClass(lastError)
  return `Engine exited (${status})${fault ? `: ${fault}` : ''}.${hint ? ` ${hint}` : ''}`
}

const seconds = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${Math.round(ms / 100) / 10} s`)
