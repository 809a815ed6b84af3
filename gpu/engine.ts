import { EventEmitter } from 'node:events'
import { Failure } from '../core/failure.ts'
import { faultClass } from '../core/tasks/protocols/engine-text.ts'
import type { Endpoint, Exit, Launched, Launcher, LaunchOptions } from './launcher/launcher.ts'

export type EngineState = 'stopped' | 'starting' | 'ready' | 'stopping'

export interface EngineOptions extends Omit<LaunchOptions, 'launchId'> {
  engineId: string
  /** Answers 2xx once the engine can work; null for one that is taken to be ready at once. */
  healthPath: string | null
  /** Headers that go with every request to it, as names and values in turn. */
  headers: readonly string[]
  /** A load that shows nothing new for this long has failed; one that goes on for ten times as long, too. */
  loadStallMs: number
  /** Between asking it to end and killing it. */
  graceMs: number
}

/** A port is looked up before the engine binds it; somebody may be faster, this often at most. */
const portRaces = 3
const portTaken = /EADDRINUSE|address already in use|bind.*failed|failed to bind|couldn't bind/i

/** Servers put up their routes one after the other, so a 404 right after the start means nothing yet. */
const longestWrongAnswer = 10_000

/**
 * One engine and the only code that changes its state. Callers never read the state to decide: they ask for `ready()`
 * or `stop()` and the engine decides, because by the time a caller acts on what it read, a crash or an unload has
 * changed it. `exit` is emitted when a ready engine ends without having been asked to: with the reason as a sentence for
 * callers, and the last words of its output for the log.
 */
export class Engine extends EventEmitter<{ exit: [reason: string, lastWords: string] }> {
  readonly options: EngineOptions
  #launcher: Launcher
  #state: EngineState = 'stopped'
  #launched: Launched | undefined
  #starting: { done: Promise<void>; abort: AbortController } | undefined
  #stopping: Promise<void> | undefined
  #launches = 0

  constructor(options: EngineOptions, launcher: Launcher) {
    super()
    this.options = options
    this.#launcher = launcher
  }

  /** For showing. Never branch a start or a stop on it. */
  get state(): EngineState {
    return this.#state
  }
  get pid(): number | null {
    return this.#launched?.pid() ?? null
  }
  /** Where it answers; undefined while it is stopped. */
  get endpoint(): Endpoint | undefined {
    return this.#launched?.endpoint
  }
  /** The last lines it printed, oldest first. */
  logs(): string[] {
    return this.#launcher.logs(this.#launchId)
  }
  get #launchId(): string {
    return `${this.options.engineId}-${this.#launches}`
  }

  /**
   * Resolves when the engine serves: at once, after joining a start under way, or after starting it. Rejects with
   * Failure `worker_error` that says why it does not; nothing of it is left running then.
   */
  async ready(): Promise<void> {
    // No await when there is nothing to wait for: a stop in the same tick must find the start.
    while (this.#stopping) await this.#stopping
    if (this.#state === 'ready') return
    if (!this.#starting) {
      const abort = new AbortController()
      const done = this.#start(abort.signal).finally(() => {
        this.#starting = undefined
      })
      this.#starting = { abort, done }
    }
    return this.#starting.done
  }

  /** Resolves when the process and everything it started are gone. Safe in any state; `graceMs` 0 kills at once. */
  stop(reason: string, graceMs = this.options.graceMs): Promise<void> {
    if (this.#stopping && graceMs === 0 && this.#launched) void this.#launcher.stop(this.#launched.launchId, 0)
    this.#stopping ??= this.#end(reason, graceMs).finally(() => {
      this.#stopping = undefined
    })
    return this.#stopping
  }

  async #start(abort: AbortSignal): Promise<void> {
    this.#state = 'starting'
    try {
      for (let race = 1; ; race++) {
        const why = await this.#launch(abort)
        if (why === undefined) return
        const raced =
          this.options.channel === 'port' &&
          this.logs()
            .slice(-40)
            .some(line => portTaken.test(line))
        if (!raced || race === portRaces || abort.aborted) throw new Failure('worker_error', why)
      }
    } catch (thrown) {
      this.#state = 'stopped'
      this.#launched = undefined
      throw thrown
    }
  }

  /** One process, until it serves or is gone. Resolves with why it does not serve, as a sentence. */
  async #launch(abort: AbortSignal): Promise<string | undefined> {
    this.#launches++
    const launched = await this.#launcher.start({ ...this.options, launchId: this.#launchId })
    this.#launched = launched
    const exited = launched.exited.then(exitReason)
    const polling = new AbortController()
    const signal = AbortSignal.any([abort, polling.signal])
    const why = await Promise.race([exited, this.#poll(launched, signal)])
    polling.abort()
    if (why !== undefined) {
      // No grace: one that is still loading has nothing to bring to an end, and may not listen to signals yet.
      await this.#launcher.stop(launched.launchId, 0)
      return why
    }
    this.#state = 'ready'
    void launched.exited.then(exit => {
      if (this.#launched !== launched) return
      this.#launched = undefined
      const unexpected = this.#state === 'ready'
      this.#state = 'stopped'
      if (unexpected) this.emit('exit', exitReason(exit), exit.lastWords)
    })
    return undefined
  }

  async #poll(launched: Launched, signal: AbortSignal): Promise<string | undefined> {
    const { healthPath, headers, loadStallMs } = this.options
    if (healthPath === null) return undefined
    const startedAt = performance.now()
    let answered = ''
    let answeredAt = startedAt
    let failingSince = Number.POSITIVE_INFINITY
    const { askHealth } = await import('./health.ts')
    for (let pause = 20; !signal.aborted; pause = Math.min(pause * 1.3, 500)) {
      const { health, body } = await askHealth(launched.endpoint, healthPath, headers, Math.min(2_000, loadStallMs))
      if (signal.aborted) break
      if (health === 'ready') return undefined
      const now = performance.now()
      failingSince = typeof health === 'object' ? Math.min(failingSince, now) : Number.POSITIVE_INFINITY
      if (body !== answered) {
        answered = body
        answeredAt = now
      }
      const stalled = now - Math.max(answeredAt, launched.lastOutputAt()) > loadStallMs
      if (typeof health === 'object' && (stalled || now - failingSince > longestWrongAnswer))
        return `Engine answered ${health.status} at ${healthPath}, where it should say whether it is ready.`
      if (stalled) return `Engine made no progress in loading for ${seconds(loadStallMs)}.`
      if (now - startedAt > 10 * loadStallMs) return `Engine was still not ready after ${seconds(10 * loadStallMs)}.`
      await wait(pause, signal)
    }
    return `Engine was stopped while it was loading${typeof signal.reason === 'string' ? `: ${signal.reason}` : ''}.`
  }

  async #end(reason: string, graceMs: number): Promise<void> {
    const starting = this.#starting
    if (starting) {
      starting.abort.abort(reason)
      await starting.done.catch(() => {})
    }
    const launched = this.#launched
    if (!launched) return
    this.#state = 'stopping'
    await this.#launcher.stop(launched.launchId, graceMs)
    this.#launched = undefined
    this.#state = 'stopped'
  }
}

/**
 * How an engine ended, as a sentence for callers: `Engine exited (3): out of memory`. It quotes no line of the output,
 * which may be about the request of somebody else; after a signal the last line has nothing to do with the end.
 */
export function exitReason({ status, lastWords, hint }: Exit): string {
  const why = status.startsWith('SIG') ? undefined : faultClass(lastWords)
  return `Engine exited (${status})${why ? `: ${why}` : ''}${hint ? `. ${hint}` : ''}`
}

const seconds = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${Math.round(ms / 100) / 10} s`)

const wait = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(done => {
    if (signal.aborted) return done()
    const timer = setTimeout(finish, ms)
    function finish() {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      done()
    }
    signal.addEventListener('abort', finish)
  })
