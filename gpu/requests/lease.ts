import type { Client } from 'undici'
import { Failure } from '../../core/failure.ts'
import type {
  EngineCall,
  EngineExchange,
  EngineListener,
  EngineProgress,
  EngineSocket,
  Lease,
  SlotUse,
  SocketListener,
} from '../../core/models/fleet.ts'
import type { Energy, EnergyMark } from '../devices/energy.ts'
import type { AdaptedCall } from '../presets/adapter.ts'
import type { Resident } from '../residency/model-state.ts'
import type { EngineConnections } from './connections.ts'
import { UndiciExchange } from './exchange.ts'
import { openEngineSocket } from './socket.ts'

/** Called when a lease is released. `ranMs` is null unless one of its requests succeeded. */
export type OnReleased = (resident: Resident, ranMs: number | null) => void

export interface LeaseOptions {
  onReleased: OnReleased
  waitedMs: number
  loadedMs: number
  /** Follows the progress that the engine prints; the function that it returns ends this. */
  followProgress?: ((listener: (progress: EngineProgress) => void) => () => void) | undefined
}

export class EngineLease implements Lease {
  readonly engineId: string
  readonly modelId: string
  readonly waitedMs: number
  readonly loadedMs: number
  #connections: EngineConnections
  #resident: Resident
  #client: Client
  #onReleased: OnReleased
  #energy: Energy
  #mark: EnergyMark
  #used: SlotUse | undefined
  #since = performance.now()
  #succeeded = false
  /** True when its last request succeeded or there was none: the engine is then not working for this slot any more. */
  #lastSucceeded = true
  #released = false
  #open: UndiciExchange | undefined
  /** `workPath` of its last request. */
  #workPath: string | undefined
  #followOutput: LeaseOptions['followProgress']
  #unfollow: (() => void) | undefined
  #sockets = new Set<EngineSocket>()

  constructor(resident: Resident, connections: EngineConnections, energy: Energy, options: LeaseOptions) {
    const { onReleased, waitedMs, loadedMs, followProgress } = options
    this.engineId = resident.engineId
    this.modelId = resident.serves.model.id
    this.waitedMs = waitedMs
    this.loadedMs = loadedMs
    this.#resident = resident
    this.#connections = connections
    this.#client = connections.take()
    this.#onReleased = onReleased
    this.#followOutput = followProgress
    this.#energy = energy
    this.#mark = energy.take(resident.devices)
  }

  open(call: EngineCall, listener: EngineListener): EngineExchange {
    const adapted = this.#connections.options.adapt?.(call, listener)
    return adapted ? new DeferredExchange(adapted, this, listener) : this.openAsIs(call, listener)
  }

  /** Opens a request without adapting it. */
  openAsIs(call: EngineCall, listener: EngineListener): EngineExchange {
    const exchange = new UndiciExchange(this.#connections, this.#client, call, listener, succeeded => {
      if (succeeded) this.#succeeded = true
      this.#lastSucceeded = succeeded
      if (this.#open === exchange) this.#open = undefined
    })
    this.#open = exchange
    this.#workPath = call.workPath
    if (this.#released) exchange.abort()
    else exchange.start()
    return exchange
  }

  followProgress(listener: (progress: EngineProgress) => void): void {
    this.#unfollow?.()
    if (!this.#released) this.#unfollow = this.#followOutput?.(listener)
  }

  connect(path: string, listener: SocketListener): EngineSocket {
    const socket = openEngineSocket(this.#connections, path, listener)
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

  release(): void {
    if (this.#released) return
    this.#used = this.used()
    this.#energy.release(this.#mark)
    this.#released = true
    this.#unfollow?.()
    // Otherwise a request that is still running would share the slot with the next one.
    this.#open?.abort()
    for (const socket of this.#sockets) socket.close()
    this.#connections.release(this.#client)
    const ranMs = this.#succeeded ? performance.now() - this.#since : null
    const notify = () => this.#onReleased(this.#resident, ranMs)
    if (this.#lastSucceeded) notify()
    else void this.#connections.untilReleased(this.#workPath).then(notify)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}

/** A request that is adapted before it is sent. A pause or abort before that takes effect when it is sent. */
class DeferredExchange implements EngineExchange {
  #exchange: EngineExchange | undefined
  #paused = false
  #aborted = false

  constructor(adapted: Promise<AdaptedCall>, lease: Pick<EngineLease, 'openAsIs'>, listener: EngineListener) {
    adapted.then(
      ready => {
        if (this.#aborted) return
        this.#exchange = lease.openAsIs(ready.call, ready.listener)
        if (this.#paused) this.#exchange.pause()
      },
      (thrown: unknown) => {
        if (!this.#aborted) listener.failed(Failure.from(thrown))
      },
    )
  }

  pause(): void {
    this.#paused = true
    this.#exchange?.pause()
  }

  resume(): void {
    this.#paused = false
    this.#exchange?.resume()
  }

  abort(): void {
    this.#aborted = true
    this.#exchange?.abort()
  }
}
