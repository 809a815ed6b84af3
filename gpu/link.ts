import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'undici'
import type { Failure } from '../core/failure.ts'
import { SwapSet } from '../core/swap-set.ts'
import type { EngineExchange } from './exchange.ts'
import { stillRunning } from './health.ts'
import type { Endpoint } from './launcher/launcher.ts'
import type { Adapter } from './presets/adapter.ts'

export interface LinkOptions {
  engineId: string
  modelId: string
  endpoint: Endpoint
  /** Headers of every request, names and values in turn. */
  headers: string[]
  /** An engine that sends nothing for this long on any request is stuck. */
  noProgressMs: number
  keepAliveMs: number
  /** True for a process of ours, of whose end we hear; a broken connection then waits a moment to say why. */
  watched: boolean
  failureOf: (status: number, body: string, path: string) => Failure
  /** Puts requests in another way that this engine cannot take as they are. */
  adapt?: Adapter | undefined
  /** Where it says how many requests it works on; null for an engine that does not, and is taken to stop at once. */
  healthPath: string | null
  /** How long it may go on with a request that was given up. */
  cancelGraceMs: number
  /** It went on for longer than that. */
  unresponsive(): void
  /** Nothing has come from the engine for as long as `noProgressMs`, on no request at all. */
  stuck(): void
  /** A listener threw: a fault of ours, to be logged. */
  fault(thrown: unknown): void
}

/** How many bytes a connection reads ahead of a client that does not read. undici's types lack this option of net.connect. */
const readAhead: object = { highWaterMark: 16 << 10 }

/** How long a broken connection waits for the exit status of its engine, which makes the better message. */
const exitWaitMs = 750

/**
 * One ready engine as requests see it. It owns the connections: one for each slot and used by nobody else, so that a
 * request never waits behind another and there is no pool to search. Connections are made when first needed and the
 * one used last is used next, which keeps few of them busy at low load.
 */
export class Link {
  readonly options: LinkOptions
  /** Requests on their way. */
  readonly open = new SwapSet<EngineExchange>()
  /** When the engine last sent anything, on the monotonic clock. */
  lastProgressAt = performance.now()
  #free: Client[] = []
  #all = new Set<Client>()
  #engineFailure: (() => Failure) | undefined
  #waiters = new Set<(engineFailure: (() => Failure) | undefined) => void>()

  constructor(options: LinkOptions) {
    this.options = options
  }

  /** A connection of one's own, until it is given back. */
  take(): Client {
    return this.#free.pop() ?? this.#connect()
  }

  give(client: Client): void {
    this.#free.push(client)
  }

  /** Makes the failure of every request from here on; undefined while the engine lives. */
  get engineFailure(): (() => Failure) | undefined {
    return this.#engineFailure
  }

  /** Ends every request at once with the reason, and refuses those that come. */
  fail(engineFailure: () => Failure): void {
    this.#engineFailure ??= engineFailure
    for (const waiter of this.#waiters) waiter(engineFailure)
    this.#waiters.clear()
    for (const exchange of this.open) exchange.cut(engineFailure())
    this.close()
  }

  /** Calls back once with how the engine died, or with undefined when it seems to live on. */
  afterExit(tell: (engineFailure: (() => Failure) | undefined) => void): void {
    if (this.#engineFailure || !this.options.watched) return tell(this.#engineFailure)
    const waiter = (engineFailure: (() => Failure) | undefined) => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
      tell(engineFailure)
    }
    const timer = setTimeout(waiter, exitWaitMs, undefined)
    this.#waiters.add(waiter)
  }

  /** A request has waited in vain. It condemns the engine only if nobody else has heard from it either. */
  stalled(): void {
    // Timers are a little coarse, and one that fires early must not let a frozen engine off.
    if (performance.now() - this.lastProgressAt >= this.options.noProgressMs * 0.9) this.options.stuck()
  }

  /**
   * Resolves when the engine has stopped the requests that were cancelled: as soon as it works on no more than what is
   * open. An engine that goes on after `cancelGraceMs` is reported as unresponsive.
   */
  async untilReleased(): Promise<void> {
    const { healthPath, cancelGraceMs, endpoint, headers } = this.options
    if (healthPath === null) return
    const until = performance.now() + cancelGraceMs
    for (let pauseMs = 20; !this.#engineFailure; pauseMs = Math.min(2 * pauseMs, 250)) {
      const running = await stillRunning(endpoint, healthPath, headers)
      if (running <= this.open.size || this.#engineFailure) return
      if (performance.now() >= until) return this.options.unresponsive()
      await delay(pauseMs)
    }
  }

  close(): void {
    for (const client of this.#all) void client.destroy().catch(() => {})
    this.#all.clear()
  }

  #connect(): Client {
    const { endpoint, noProgressMs, keepAliveMs } = this.options
    const client = new Client(endpoint.origin, {
      socketPath: endpoint.socketPath,
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      headersTimeout: noProgressMs,
      bodyTimeout: noProgressMs,
      connectTimeout: Math.max(1_000, Math.min(noProgressMs, 5_000)),
      allowH2: false,
      // Read ahead of a client that does not read.
      connect: readAhead,
    })
    this.#all.add(client)
    return client
  }
}
