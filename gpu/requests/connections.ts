import { setTimeout as delay } from 'node:timers/promises'
import type { Failure } from '../../core/failure.ts'
import { SwapSet } from '../../core/swap-set.ts'
import type { Endpoint } from '../launcher/launcher.ts'
import type { Converter } from '../presets/preset.ts'
import { type Address, type AddressReport, openAddresses } from './addresses.ts'
import type { NameAdapter } from './engine-adapters.ts'
import { EngineConnection } from './engine-connection.ts'
import type { EngineSlots } from './engine-slots.ts'
import type { HttpExchange } from './exchange.ts'
import { isWorking, runningRequests } from './health.ts'
import { headerLines } from './http-request.ts'

export interface ConnectionOptions {
  engineId: string
  modelId: string
  endpoint: Endpoint
  /** Headers of every request, names and values alternating. */
  headers: string[]
  /** An engine that sends nothing on any request for this long is stuck. */
  noProgressMs: number
  keepAliveMs: number
  /** True for a process that infer started: a broken connection then waits for its exit status. */
  isOwnProcess: boolean
  /** Whether it sees the folders of this server, which engines in pools do not. */
  sharesFolders: boolean
  /** True if a server that infer did not start gets the `traceparent` of requests. */
  takesTrace?: true | undefined
  failureOf: (status: number, body: string, path: string) => Failure
  /** Changes requests that this engine cannot process as they are. */
  convert?: Converter
  /** Adds to a request what the engine needs for the adapter that it names. */
  nameAdapter?: NameAdapter | undefined
  /** Names the organization of a request for an engine that saves conversations; undefined if its are not saved. */
  ownerOf?: ((organizationId: string) => string | undefined) | undefined
  /** What is in the slots of an engine whose slots infer saves. */
  slots?: EngineSlots | undefined
  /** Path that reports how many requests it works on; null for one that is assumed to stop cancelled ones at once. */
  healthPath: string | null
  /** Least milliseconds between two questions for its running requests. */
  pollMs: number
  /** How long it may continue a cancelled request, in milliseconds. */
  cancelGraceMs: number
  /** How many requests other processes may have on it; absent: none. */
  others?: () => number
  /**
   * Called when a request finds nobody at the address of the engine: its launcher looks whether it can be reached. Absent where
   * the end of an engine is known at once.
   */
  unreached?: (() => void) | undefined
  /** Whether it can accept another request now. */
  hasFreeSlot: () => boolean
  /** Called when it continued a cancelled request for longer than `cancelGraceMs` and must be killed. */
  unresponsive(): void
  /** Called when the engine has refused a request and wants none for this many milliseconds. */
  pauseRequested(ms: number): void
  /** Called when the engine has accepted a request. On the hot path. */
  accepted(): void
  /** Called when the engine has sent nothing on any request for `noProgressMs`. */
  stuck: () => void
  /** Called when an address of it fails or works again; absent: nobody else needs to know. */
  addressChanged?: (report: AddressReport) => void
  /** Called when a listener threw, which is a bug in infer and must be logged. */
  listenerThrew(thrown: unknown): void
}

/**
 * Called when every request of an engine fails at once: it has ended, or else cannot be reached. `slotsInUse`: how many were
 * when it ended by itself.
 */
export type FailureListener = (failure: Failure, hasEnded: boolean, slotsInUse?: number) => void

/** A connection of one slot to one of the addresses of its engine. */
export interface Connection {
  readonly client: EngineConnection
  readonly address: Address
}

/** An engine that writes an answer sees at its next token that the client has left: it is asked early once. */
const soonMs = 100

/** How long a broken connection waits for its engine's exit status, which explains more than 'connection reset'. */
const exitWaitMs = 750
/** How long a request that finds nobody waits until it is known whether the engine can be reached at all. */
const reachWaitMs = 3_000

/**
 * The connections to one ready engine. Each slot has its own connection, so a request never waits for another and there
 * is no pool to search. Connections are opened on first use, and the one used last is reused first, so that low load
 * needs few of them.
 */
export class EngineConnections {
  readonly options: ConnectionOptions
  readonly open = new SwapSet<HttpExchange>()
  /**
   * How many slots were in use when the engine ended; undefined while it runs, if its machine may have failed, and if infer
   * is closing.
   */
  slotsAtEnd: number | undefined
  /** When the engine last sent anything, on the monotonic clock. */
  lastProgressAt = performance.now()
  readonly addresses: ReturnType<typeof openAddresses>
  /** By the index of their address. */
  #free: Connection[][]
  #all = new Set<EngineConnection>()
  #headerLines: string | undefined
  /** Cancelled requests that the engine may still work on. */
  #cancelled = 0
  #engineFailure: (() => Failure) | undefined
  /** Set while the engine cannot be reached, when it may work on anything. */
  #unreachable: (() => Failure) | undefined
  #failureListener: FailureListener | undefined
  #waiters = new Set<(engineFailure: (() => Failure) | undefined) => void>()

  constructor(options: ConnectionOptions) {
    this.options = options
    const { origin, origins = [origin] } = options.endpoint
    this.addresses = openAddresses(origins, options.addressChanged)
    this.#free = origins.map(() => [])
  }

  /** Takes a connection that no other request uses until it is released. */
  take(): Connection {
    return this.#takeAt(this.addresses.choose()!)
  }

  /** Takes a connection to an address that is none of these; undefined without another. */
  takeElsewhere(tried: ReadonlySet<Address>): Connection | undefined {
    const address = this.addresses.choose(tried)
    return address && this.#takeAt(address)
  }

  #takeAt(address: Address): Connection {
    address.underWay++
    return this.#free[address.index]!.pop() ?? { client: this.#connect(address), address }
  }

  release(connection: Connection): void {
    const { address } = connection
    address.underWay--
    this.#free[address.index]!.push(connection)
  }

  /** The lines of the headers of every request. Throws ConnectionError for what HTTP does not allow. */
  get headerLines(): string {
    return (this.#headerLines ??= headerLines(this.options.headers))
  }

  /** Creates the failure of every further request; undefined while the engine runs. */
  get engineFailure(): (() => Failure) | undefined {
    return this.#engineFailure
  }

  /** Fails every request at once, and every later one. `slotsInUse`: those of the engine, which has ended by itself. */
  fail(engineFailure: () => Failure, slotsInUse?: number): void {
    if (!this.#engineFailure) this.#failureListener?.(engineFailure(), true, slotsInUse)
    this.#engineFailure ??= engineFailure
    this.slotsAtEnd ??= slotsInUse
    this.#failOpen(engineFailure)
    this.close()
  }

  /** The engine cannot be reached: fails every request at once. Later ones are sent all the same. */
  interrupt(failure: () => Failure): void {
    this.#unreachable = failure
    this.#failureListener?.(failure(), false)
    this.#failOpen(failure)
  }

  /** The engine can be reached again. */
  resume(): void {
    this.#unreachable = undefined
  }

  /** The listener learns of `fail` and `interrupt`, for the requests that other processes have on the engine. */
  watchFailures(listener: FailureListener): void {
    this.#failureListener = listener
  }

  #failOpen(failure: () => Failure): void {
    for (const waiter of this.#waiters) waiter(failure)
    this.#waiters.clear()
    for (const exchange of this.open) exchange.terminate(failure())
  }

  /**
   * Calls back once: with the engine's failure when it has ended, or with undefined when it seems to run on. `isRefused`: nobody
   * was at its address.
   */
  afterExit(callback: (engineFailure: (() => Failure) | undefined) => void, isRefused = false): void {
    const { unreached } = this.options
    if (isRefused) unreached?.()
    const known = this.#engineFailure ?? (isRefused ? this.#unreachable : undefined)
    if (known || !this.options.isOwnProcess) return callback(known)
    const waiter = (engineFailure: (() => Failure) | undefined) => {
      clearTimeout(timer)
      this.#waiters.delete(waiter)
      callback(engineFailure)
    }
    const timer = setTimeout(waiter, isRefused && unreached ? reachWaitMs : exitWaitMs, undefined)
    this.#waiters.add(waiter)
  }

  /** A request of another process received something, this many milliseconds ago. */
  progressed(agoMs: number): void {
    this.lastProgressAt = Math.max(this.lastProgressAt, performance.now() - agoMs)
  }

  /** A request received nothing in time. The engine counts as stuck only if no other request received anything. */
  stalled(): void {
    const { noProgressMs, stuck } = this.options
    // A timer that fires early must not keep a frozen engine running.
    const toleranceMs = Math.min(Math.max(noProgressMs / 10, 500), noProgressMs / 2)
    if (performance.now() - this.lastProgressAt >= noProgressMs - toleranceMs) stuck()
  }

  /**
   * Resolves when the engine has stopped a cancelled request, that is, when it works on fewer requests than are open or
   * cancelled, or has ended the work at `workPath`. An engine that continues after `cancelGraceMs` is reported as
   * unresponsive; while it serves other requests and has a free slot, it only keeps the slot. `origin`: where it works.
   */
  async untilReleased(origin: string, workPath?: string): Promise<void> {
    const { healthPath, pollMs, cancelGraceMs, hasFreeSlot } = this.options
    if (healthPath === null && workPath === undefined) return
    const until = performance.now() + cancelGraceMs
    this.#cancelled++
    try {
      for (
        let pauseMs = Math.min(pollMs, soonMs);
        !this.#engineFailure && !this.#unreachable;
        pauseMs = Math.max(pollMs, Math.min(2 * pauseMs, 250))
      ) {
        if ((await this.#hasStopped(origin, workPath)) || this.#engineFailure || this.#unreachable) return
        const mayKill = this.open.size === 0 || !hasFreeSlot()
        if (performance.now() >= until && mayKill) return this.options.unresponsive()
        await delay(pauseMs)
      }
    } finally {
      this.#cancelled--
    }
  }

  async #hasStopped(origin: string, workPath: string | undefined): Promise<boolean> {
    const { healthPath, headers, others } = this.options
    const endpoint = { ...this.options.endpoint, origin }
    if (workPath !== undefined) return !(await isWorking(endpoint, workPath, headers))
    const running = await runningRequests(endpoint, healthPath!, headers)
    return running < this.open.size + this.#cancelled + (others?.() ?? 0)
  }

  close(): void {
    for (const client of this.#all) client.destroy()
    this.#all.clear()
  }

  #connect({ origin }: Address): EngineConnection {
    const { endpoint, noProgressMs, keepAliveMs } = this.options
    const connectMs = Math.max(1_000, Math.min(noProgressMs, 5_000))
    const client = new EngineConnection({ endpoint: { ...endpoint, origin }, keepAliveMs, connectMs })
    this.#all.add(client)
    return client
  }
}
