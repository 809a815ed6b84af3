import { Failure } from '../../core/failure.ts'
import type { EngineCall, EngineExchange, EngineListener } from '../../core/models/engine-call.ts'
import type { EngineSocket, SocketListener } from '../../core/models/engine-socket.ts'
import type { EngineProgress, Lease, SlotUse } from '../../core/models/fleet.ts'
import type { Energy, EnergyMark } from '../devices/energy.ts'
import { ownerHeader } from '../engines/owner.ts'
import type { ConvertedCall } from '../presets/preset.ts'
import type { Resident } from '../residency/model-state.ts'
import type { Address } from './addresses.ts'
import type { Connection, EngineConnections } from './connections.ts'
import type { SlotHold } from './engine-slots.ts'
import { HttpExchange } from './exchange.ts'
import { openEngineSocket } from './socket.ts'

/** What a lease needs to know of its engine. */
export type LeasedEngine = Pick<Resident, 'engineId' | 'devices' | 'slots'> & {
  serves: { model: Pick<Resident['serves']['model'], 'id'> }
}

export interface LeaseOptions<Leased extends LeasedEngine> {
  /** Called when it is released. `ranMs` is null unless one of its requests succeeded. */
  onReleased: (resident: Leased, ranMs: number | null, probe: boolean) => void
  /** Called when others may have the other slots of the engine, which it had alone. */
  onShared?: (resident: Leased) => void
  /** Whether it is the first lease after a pause of the engine. */
  probe: boolean
  waitedMs: number
  loadedMs: number
  /** Takes a slot of the engine that has computed the beginning of this prompt; undefined if that is the one that it has. */
  move?: (from: Leased, prompt: string | Uint8Array) => { resident: Leased; connections: EngineConnections } | undefined
  /** Follows the progress that the engine prints; the function that it returns ends this. */
  followProgress?: (listener: (progress: EngineProgress) => void) => () => void
}

const none: readonly string[] = []

export class EngineLease<Leased extends LeasedEngine = Resident> implements Lease {
  readonly modelId: string
  readonly waitedMs: number
  readonly loadedMs: number
  organizationId: string | undefined
  traceparent: string | undefined
  #connections: EngineConnections
  #resident: Leased
  #connection: Connection
  /** True once the server at its address has accepted a request: later ones may ask for what that has begun. */
  #isBound = false
  #options: LeaseOptions<Leased>
  #energy: Energy
  #mark: EnergyMark
  #used: SlotUse | undefined
  #since = performance.now()
  #succeeded = false
  /** True when its last request succeeded or there was none: the engine is then not working for this slot any more. */
  #lastSucceeded = true
  #released = false
  #open: HttpExchange | undefined
  /** `workPath` of its last request. */
  #workPath: string | undefined
  #unfollow: (() => void) | undefined
  #sockets = new Set<EngineSocket>()
  #slot: SlotHold | undefined

  constructor(resident: Leased, connections: EngineConnections, energy: Energy, options: LeaseOptions<Leased>) {
    this.modelId = resident.serves.model.id
    this.waitedMs = options.waitedMs
    this.loadedMs = options.loadedMs
    this.#resident = resident
    this.#connections = connections
    this.#connection = connections.take()
    this.#slot = connections.options.slots?.hold()
    this.#options = options
    this.#energy = energy
    this.#mark = energy.take(resident.devices)
  }

  get engineId(): string {
    return this.#resident.engineId
  }

  get sharesFolders(): boolean {
    return this.#connections.options.sharesFolders
  }

  prefer(prompt: string | Uint8Array): void {
    // The first request after a pause shows whether the engine serves again.
    const other = this.#released || this.#options.probe ? undefined : this.#options.move?.(this.#resident, prompt)
    if (!other) return
    const before = this.#resident
    this.#connections.release(this.#connection)
    this.#energy.release(this.#mark)
    this.#slot?.release()
    this.#resident = other.resident
    this.#connections = other.connections
    this.#connection = other.connections.take()
    this.#slot = other.connections.options.slots?.hold()
    this.#mark = this.#energy.take(other.resident.devices)
    this.#options.onReleased(before, null, false)
  }

  get othersAtEnd(): number | undefined {
    const inUse = this.#connections.slotsAtEnd
    return inUse === undefined ? undefined : Math.max(0, inUse - 1)
  }

  open(call: EngineCall, listener: EngineListener): EngineExchange {
    const { convert, nameAdapter } = this.#connections.options
    const named = nameAdapter?.(call) ?? call
    const converted =
      named instanceof Promise
        ? named.then(ready => convert?.(ready, listener) ?? { call: ready, listener })
        : convert?.(named, listener)
    if (!converted) return this.#openPinned(named as EngineCall, listener)
    return openDeferred(converted, ready => this.#openPinned(ready.call, ready.listener), listener)
  }

  /** Opens a request in a slot of the engine that infer chooses, if it chooses any. */
  #openPinned(call: EngineCall, listener: EngineListener): EngineExchange {
    const pinned = this.#slot?.pin(call, listener, this.organizationId)
    if (!pinned) return this.#openAsIs(call, listener)
    if (!(pinned instanceof Promise)) return this.#openAsIs(pinned.call, pinned.listener)
    return openDeferred(pinned, ready => this.#openAsIs(ready.call, ready.listener), listener)
  }

  /** Opens a request without changing it. */
  #openAsIs(call: EngineCall, listener: EngineListener): EngineExchange {
    const exchange = new HttpExchange(
      this.#connections,
      this.#connection,
      call,
      listener,
      succeeded => {
        if (succeeded) this.#succeeded = this.#isBound = true
        this.#lastSucceeded = succeeded
        this.#slot?.ended(exchange.began)
        if (this.#open === exchange) this.#open = undefined
      },
      {
        headers: this.#ownHeaders(),
        elsewhere: this.#connections.addresses.all.length > 1 ? tried => this.#elsewhere(tried) : undefined,
      },
    )
    this.#open = exchange
    this.#workPath = call.workPath
    if (this.#released) exchange.abort()
    else exchange.start()
    return exchange
  }

  /** Moves to an address that a request has not tried; undefined without one, and if it must stay where it is. */
  #elsewhere(tried: ReadonlySet<Address>): Connection | undefined {
    const other = this.#isBound || this.#released ? undefined : this.#connections.takeElsewhere(tried)
    if (!other) return undefined
    this.#connections.release(this.#connection)
    return (this.#connection = other)
  }

  /** The headers of this work besides those of all requests. */
  #ownHeaders(): readonly string[] {
    const { ownerOf, isOwnProcess, takesTrace } = this.#connections.options
    const owner = this.organizationId === undefined ? undefined : ownerOf?.(this.organizationId)
    // Not to a service of others, which could tell by it which requests belong together.
    const trace = isOwnProcess || takesTrace ? this.traceparent : undefined
    if (owner === undefined && trace === undefined) return none
    return [
      ...(owner === undefined ? none : [ownerHeader, owner]),
      ...(trace === undefined ? none : ['traceparent', trace]),
    ]
  }

  followProgress(listener: (progress: EngineProgress) => void): void {
    this.#unfollow?.()
    if (!this.#released) this.#unfollow = this.#options.followProgress?.(listener)
  }

  connect(path: string, listener: SocketListener): EngineSocket {
    const socket = openEngineSocket(
      this.#connections,
      this.#connection.address.origin,
      path,
      this.#ownHeaders(),
      listener,
    )
    if (this.#released) socket.close()
    else this.#sockets.add(socket)
    return socket
  }

  abandoned(): void {
    this.#lastSucceeded = false
  }

  used(): SlotUse {
    if (this.#used) return this.#used
    const { devices, slots } = this.#resident
    const ms = performance.now() - this.#since
    return { gpuMs: (ms * devices.length) / slots, energyMj: this.#energy.since(this.#mark) }
  }

  detach(): void {
    if (!this.#released) this.#close()
    this.#slot?.release()
  }

  share(): void {
    if (!this.#released) this.#options.onShared?.(this.#resident)
  }

  #close(): void {
    this.#used = this.used()
    this.#energy.release(this.#mark)
    this.#released = true
    this.#unfollow?.()
    // Otherwise a request that is still running would share the slot with the next one.
    this.#open?.abort()
    for (const socket of this.#sockets) socket.close()
    this.#connections.release(this.#connection)
  }

  release(): void {
    if (this.#released) return
    this.#close()
    const ranMs = this.#succeeded ? performance.now() - this.#since : null
    const notify = () => {
      this.#slot?.release()
      this.#options.onReleased(this.#resident, ranMs, this.#options.probe)
    }
    if (this.#lastSucceeded) notify()
    else void this.#connections.untilReleased(this.#connection.address.origin, this.#workPath).then(notify)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

/** A request that is converted before it is sent. A pause or abort before that takes effect when it is sent. */
function openDeferred(
  converted: Promise<ConvertedCall>,
  open: (ready: ConvertedCall) => EngineExchange,
  listener: EngineListener,
): EngineExchange {
  let exchange: EngineExchange | undefined
  let [paused, aborted] = [false, false]
  converted.then(
    ready => {
      if (aborted) return
      exchange = open(ready)
      if (paused) exchange.pause()
    },
    (thrown: unknown) => {
      if (!aborted) listener.failed(Failure.from(thrown))
    },
  )
  return {
    pause() {
      paused = true
      exchange?.pause()
    },
    resume() {
      paused = false
      exchange?.resume()
    },
    abort() {
      aborted = true
      exchange?.abort()
    },
  }
}
