import type { ResidencyRules } from './advance.ts'
import { defaultBackoff } from './backoff.ts'
import type { Resident } from './model-state.ts'

/**
 * The effects that the residency calls. Each returns at once and is answered later by an event, also when there was
 * nothing to do: `start` by `ready` or `startFailed`, `settle` by `settled`, `stop` by `exited`, `wake` by `tick`.
 */
export interface Effects {
  now: () => number
  /** Starts the engine of a resident. */
  start(resident: Resident): void
  /** Waits until the devices show the memory of the evicted engines as free. */
  settle(resident: Resident): void
  /** Ends the engine in any state; `kill` ends it without the grace period. */
  stop(resident: Resident, reason: string, kill: boolean): void
  /** Calls `tick` at this time, and not at a time that was set before. */
  wake(at: number): void
  newEngineId(): string
  /** Called when an engine is ready, with the milliseconds that it took. */
  loaded?(modelId: string, ms: number): void
}

/** The default rules. */
export const defaultRules: ResidencyRules = {
  backoff: defaultBackoff,
  turnMs: 10_000,
  provenMs: 60_000,
  promoteAfterMs: 30_000,
}
