import type { Failure } from '../failure.ts'
import type { Lease } from './fleet.ts'
import type { Model } from './model.ts'

/** How another process reaches an engine. Plain data. */
export interface GrantedEngine {
  engineId: string
  modelId: string
  endpoint: {
    origin: string
    origins?: readonly string[] | undefined
    socketPath?: string | undefined
    /** What both sides of a connection prove; absent where nobody else can reach the engine. */
    tls?: { certificate: string; key: string } | undefined
  }
  /** Of every request, names and values alternating. */
  headers: readonly string[]
  devices: readonly string[]
  /** All slots of the engine. */
  slots: number
  isOwnProcess: boolean
  sharesFolders: boolean
  /** Whether its launcher can find out whether it is reachable, after a report of `unreached`. */
  isChecked: boolean
}

/** What another process has seen of an engine. Plain data. */
export type EngineFault =
  | 'stuck'
  /** A request found nobody at its address. */
  | 'unreached'
  | { pauseMs: number }
  | { address: { index: number; failures: number; reason: string | null; ejectedForMs: number } }

/**
 * Slots of ready engines that other processes use ahead of time. They count as in use until they are given back: a request
 * that waits, an engine that is to leave and a changed configuration call them back.
 */
export interface SlotGrants {
  /**
   * Takes a part of the free slots of a model, at least one; undefined if none is free, a request waits for the model, or
   * its engine needs to know of each request.
   */
  take(modelId: string, part: number): { engine: GrantedEngine; slots: number } | undefined
  /** Whether a call of another process may get a slot of the model, as far as is known before it has one. */
  mayLend(model: Model): boolean
  /**
   * Gives the slot of a lease to another process, which gives it back with `giveBack`. Undefined, and the lease goes on, if
   * its engine needs to know of each request. `keeps`: the process may use the slot for other calls afterwards.
   */
  lend(lease: Lease): { engine: GrantedEngine; keeps: boolean } | undefined
  /** Gives slots back. `ranMs`: the mean of the requests that succeeded on them; null without one. */
  giveBack(engineId: string, slots: number, ranMs: number | null): void
  /** Whether slots of this engine may stay away; otherwise they must come back. */
  mayStay(engineId: string): boolean
  /** The engine wants a pause, sends nothing on any request, is not found, or one of its addresses fails or works again. */
  report(engineId: string, fault: EngineFault): void
  /** The engine has sent something to the other process, this many milliseconds ago. */
  progressed(engineId: string, agoMs: number): void
  /** Calls the listener when a request begins to wait for a model. */
  onWait(listener: (modelId: string) => void): void
  /**
   * Calls the listener when all requests of an engine fail at once: it has ended, and its slots are void, or it cannot be
   * reached, and they must come back. `slotsInUse`: how many were when it ended by itself.
   */
  onFailed(listener: (engineId: string, failure: Failure, hasEnded: boolean, slotsInUse?: number) => void): void
}
