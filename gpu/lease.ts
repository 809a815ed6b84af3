import type { Client } from 'undici'
import type { EngineCall, EngineListener, Exchange, Lease } from '../core/models/fleet.ts'
import { DeferredExchange } from './deferred-exchange.ts'
import { EngineExchange } from './exchange.ts'
import type { Link } from './link.ts'
import type { Resident } from './model-state.ts'

/** What a lease tells when it is given back. `ranMs` is null unless a request of it ended well. */
export type Returned = (resident: Resident, ranMs: number | null) => void

/** One slot of one engine, with the connection that belongs to it. */
export class EngineLease implements Lease {
  readonly engineId: string
  readonly modelId: string
  readonly waitedMs: number
  readonly loadedMs: number
  #link: Link
  #resident: Resident
  #client: Client
  #returned: Returned
  #since = performance.now()
  #well = false
  /** Whether its last request ended well, or there was none: the engine then does nothing for it any more. */
  #wellAtLast = true
  #released = false
  #open: EngineExchange | undefined

  constructor(resident: Resident, link: Link, returned: Returned, waitedMs: number, loadedMs: number) {
    this.engineId = resident.engineId
    this.modelId = resident.serves.model.id
    this.waitedMs = waitedMs
    this.loadedMs = loadedMs
    this.#resident = resident
    this.#link = link
    this.#client = link.take()
    this.#returned = returned
  }

  open(call: EngineCall, listener: EngineListener): Exchange {
    const adapting = this.#link.options.adapt?.(call, listener)
    return adapting ? new DeferredExchange(adapting, this, listener) : this.openAsIs(call, listener)
  }

  /** Opens a request that the engine takes as it is. */
  openAsIs(call: EngineCall, listener: EngineListener): Exchange {
    const exchange = new EngineExchange(this.#link, this.#client, call, listener, well => {
      if (well) this.#well = true
      this.#wellAtLast = well
      if (this.#open === exchange) this.#open = undefined
    })
    this.#open = exchange
    if (this.#released) exchange.abort()
    else exchange.start()
    return exchange
  }

  release(): void {
    if (this.#released) return
    this.#released = true
    // A slot that is given back is free: what still ran in it would run beside the next one's request.
    this.#open?.abort()
    this.#link.give(this.#client)
    const ranMs = this.#well ? performance.now() - this.#since : null
    const back = () => this.#returned(this.#resident, ranMs)
    if (this.#wellAtLast) back()
    else void this.#link.untilReleased().then(back)
  }

  [Symbol.dispose](): void {
    this.release()
  }
}
