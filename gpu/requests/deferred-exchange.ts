import { Failure } from '../../core/failure.ts'
import type { EngineListener, Exchange } from '../../core/models/fleet.ts'
import type { AdaptedCall } from '../presets/adapter.ts'
import type { EngineLease } from './lease.ts'

/**
 * A request that is adapted to its engine before it is sent. A pause or abort before that takes effect when it is sent.
 */
export class DeferredExchange implements Exchange {
  #exchange: Exchange | undefined
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
