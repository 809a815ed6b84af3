import type { AbortSource } from '../abort-source.ts'
import type { Admitted } from '../admission/admission.ts'
import type { Failure } from '../failure.ts'
import { newId } from '../ids.ts'
import type { Lease } from '../models/fleet.ts'
import type { FallbackReason } from '../schemas/fallback-reason.ts'
import { callRecordDefaults } from '../store/call-record.ts'
import type { JobRecord, Usage, WaitingJob } from '../store/store.ts'
import type { SwapSetMember } from '../swap-set.ts'
import type { EngineEnd } from './suspects.ts'
import type { WaitingCall } from './waiting-calls.ts'

/** How an attempt of a call ended. `retry`: the caller has received nothing, so another engine may be tried. */
export type CallEnd =
  | { how: 'completed'; usage: Usage }
  | { how: 'failed'; failure: Failure; usage: Usage }
  | { how: 'cancelled'; usage: Usage }
  | { how: 'retry'; failure: Failure }

export interface CallOptions {
  admitted: Admitted
  /** Epoch milliseconds. */
  createdAt: number
  /** How long it may wait for a slot, milliseconds; the model has a limit too, and the shorter one applies. */
  waitMs: number
  /** The answer needs no engine: the call takes no slot, waits for none and loads nothing. */
  withoutEngine?: boolean | undefined
  /** The trace that it belongs to (W3C Trace Context), for its engine and the log. */
  traceparent?: string | undefined
  /** Aborted when the caller disconnects or the call is cancelled. */
  caller: AbortSource
  /** The body that the engine gets, if it begins with what other requests begin with: the prompt of a text. */
  prompt?: string | Uint8Array | undefined
  /** Absent without any: then a call costs nothing more. */
  fallbacks?: CallFallbacks | undefined
  /** How its engine ended under it in the gateway process that has passed it on; absent: it is new. */
  engineEnd?: EngineEnd | undefined
  /** Called each time it has to wait for a slot. What it returns is called when that wait has ended. */
  waits?: (call: RunningCall) => (() => void) | undefined
  /** Called when it gets its first slot of a model, so that the response headers can say how it was served. */
  began?: (call: RunningCall, lease: Lease) => void
}

/** A job with a synchronous caller, while it waits or runs. It is in memory only. */
export interface RunningCall
  extends SwapSetMember,
    Pick<JobRecord, 'organizationId' | 'tokenId' | 'task' | 'createdAt'> {
  readonly id: string
  readonly traceparent: string | undefined
  modelId: string
  requestedModel: string | null
  fallbackReason: FallbackReason | null
  /** When it got its first slot, epoch milliseconds. */
  startedAt: number | null
  engineId: string | null
  /** How long it has waited for slots, milliseconds. */
  queuedMs: number
  /**
   * How long it would have waited in the reference order, milliseconds. Where that order had not begun it yet it is what
   * it has waited, and so a lower bound.
   */
  referenceQueuedMs: number
  /** Whether that order had begun it. */
  hasReference: boolean
  /** What its attempts have used of the devices so far, as in `SlotUse`. */
  gpuMs: number
  /** The part of it on models whose work was done by a fallback: nobody pays for it. */
  unbilledGpuMs: number
  energyMj: number | null
  /** From the request to the first piece of text of its stream, milliseconds; null before, and without a stream. */
  timeToFirstTokenMs: number | null
  /** Its entry in the queue, created when it first has to wait. */
  entry: WaitingJob | undefined
  /** Set while it waits in the queue. */
  waiting: WaitingCall | undefined
  /** Created when something waits for its end. */
  ended: PromiseWithResolvers<void> | undefined
  readonly caller: AbortSource
}

/** What does the work of a call whose model cannot: its fallback. */
export interface Substitute {
  admitted: Admitted
  attempt: CallAttempt
  reason: FallbackReason
  /** What the organization may spend on the fallback in a month, millionths of the currency unit; null without a limit. */
  spendLimit: number | null
}

/** The fallbacks of the model of a call. None of them is asked once the caller has received a byte. */
export interface CallFallbacks {
  /** How long the call may wait for its model before a fallback is asked, milliseconds. */
  readonly waitMs: number
  /** Whether a fallback is asked as soon as the model cannot serve. */
  readonly whenFailed: boolean
  /** Returns the next fallback; undefined if none may do the work. `waited`: the call waits too long for its model. */
  next(failure: Failure, waited: boolean): Promise<Substitute | undefined>
}

/** The calls that run in other processes. Undefined: the organization has no such call there. */
export interface CallsElsewhere {
  /** Resolves when all calls there that began before are known here, and the ends of those that have ended. */
  known(): Promise<void> | undefined
  find(organizationId: string, id: string): JobRecord | undefined
  /** Resolves when the call has ended and its record was accepted here. */
  ended(organizationId: string, id: string): Promise<void> | undefined
  /** Ends the call for this reason. False: the organization has no such call there. */
  cancel(organizationId: string, id: string, reason: Failure): boolean
  /** Ends all calls of the organization. Returns how many. */
  cancelAll(organizationId: string, reason: Failure): number
  runningOf(organizationId: string): number
  /** How many requests are being answered there, as of `known`. */
  open(): number
  /** Those that wait for a slot, unordered, each with its waiting time in milliseconds. */
  waiting(): Iterable<{ job: JobRecord; waitedMs: number }>
}

/** Where there are no other processes. */
export const nowhere: CallsElsewhere = {
  known: () => undefined,
  find: () => undefined,
  ended: () => undefined,
  cancel: () => false,
  cancelAll: () => 0,
  runningOf: () => 0,
  open: () => 0,
  waiting: () => [],
}

/** Returns a call that has not begun. */
export const newCall = ({ admitted, createdAt, traceparent, caller }: CallOptions): RunningCall => ({
  setIndex: -1,
  id: newId('job'),
  organizationId: admitted.organizationId,
  tokenId: admitted.tokenId,
  task: admitted.task,
  traceparent,
  modelId: admitted.model.id,
  requestedModel: admitted.requestedModel,
  fallbackReason: null,
  createdAt,
  startedAt: null,
  engineId: null,
  queuedMs: 0,
  referenceQueuedMs: 0,
  hasReference: false,
  gpuMs: 0,
  unbilledGpuMs: 0,
  energyMj: 0,
  timeToFirstTokenMs: null,
  entry: undefined,
  waiting: undefined,
  ended: undefined,
  caller,
})

/** Runs one attempt on one slot. Resolves with how it ended; never throws for an engine's failure. */
export type CallAttempt = (lease: Lease, call: RunningCall) => Promise<CallEnd>

/** The job record of a call that waits or runs. */
export const runningRecord = (call: RunningCall): JobRecord => ({
  ...callRecordDefaults,
  id: call.id,
  task: call.task,
  modelId: call.modelId,
  requestedModel: call.requestedModel,
  traceparent: call.traceparent ?? null,
  fallbackReason: call.fallbackReason,
  organizationId: call.organizationId,
  tokenId: call.tokenId,
  createdAt: call.createdAt,
  startedAt: call.startedAt,
  referenceQueueMs: call.hasReference ? Math.round(call.referenceQueuedMs) : null,
  timeToFirstTokenMs: call.timeToFirstTokenMs,
  engineId: call.engineId,
  rank: call.entry?.rank ?? 0,
  // A call whose engine failed waits again.
  status: call.startedAt === null || call.waiting ? 'pending' : 'processing',
  error: null,
  usage: null,
  cost: null,
  expiresAt: null,
  notBefore: call.createdAt,
  updatedAt: call.startedAt ?? call.createdAt,
  finishedAt: null,
})
