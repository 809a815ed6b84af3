import { Failure } from '../core/failure.ts'
import type { EngineListener, Exchange } from '../core/models/fleet.ts'
import type { EngineLease } from './lease.ts'
import type { AdaptedCall } from './presets/adapter.ts'

/** A request that is changed for its engine before it is sent. What is asked of it meanwhile holds when it is. */
export class DeferredExchange implements Exchange {
  #exchange: Exchange | undefined
  #paused = false
  #aborted = false

  constructor(adapting: Promise<AdaptedCall>, lease: Pick<EngineLease, 'openAsIs'>, listener: EngineListener) {
    adapting.then(
      adapted => {
        if (this.#aborted) return
        this.#exchange = lease.openAsIs(adapted.call, adapted.listener)
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
