import type { EngineCall, EngineListener } from '../../core/models/fleet.ts'

/** A request in the form that one engine needs, and the listener that puts its answer back into the usual form. */
export interface AdaptedCall {
  call: EngineCall
  listener: EngineListener
}

/**
 * Changes requests that this engine cannot take as they are. Returns undefined for all others, at the cost of a look at
 * the body. Rejects with Failure for a request that cannot be put in another way.
 */
export type Adapter = (call: EngineCall, listener: EngineListener) => Promise<AdaptedCall> | undefined
