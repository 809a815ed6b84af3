import type { Rules } from './advance.ts'
import { defaultBackoff } from './backoff.ts'
import type { Resident } from './model-state.ts'

/**
 * What the residency has done for it. Nothing here answers at once: each is answered later by an event, also when it
 * has nothing to do. `start`: `ready` or `startFailed`. `settle`: `settled`. `stop`: `gone`. `wake`: `tick`.
 */
export interface Effects {
  now: () => number
  /** Starts the engine of a resident. */
  start(resident: Resident): void
  /** Waits until the devices show what the engines before it have given back. */
  settle(resident: Resident): void
  /** Ends the engine, whatever state it is in; `kill` gives it no grace. */
  stop(resident: Resident, reason: string, kill: boolean): void
  /** Calls `tick` at this time instead of any asked for before. */
  wake(at: number): void
  newEngineId(): string
  /** An engine got ready after this long. */
  loaded?(modelId: string, ms: number): void
}

/** What holds unless a test says otherwise. */
export const defaultRules: Rules = {
  backoff: defaultBackoff,
  holdMs: 10_000,
  provenMs: 60_000,
  promoteAfterMs: 30_000,
}
