import { type CallsElsewhere, runningRecord } from '../../core/jobs/call.ts'
import type { JobRecord } from '../../core/store/store.ts'
import type { LentSlots } from './lent-slots.ts'
import type { FromFront, ToFront } from './messages.ts'

/** One front, as its work is seen by control. */
export interface FrontLink {
  send: (message: ToFront) => void
  /** Ends it at once. */
  kill: () => void
}

/** Takes in what a front says. */
export interface FrontSession {
  received(message: FromFront): void
  /** The front has ended: what it had goes back, and what it was doing has failed. */
  ended(): void
}

/** A front and what control knows of it. */
export interface Session extends FrontLink {
  /** As credits name it. */
  id: string
  /** Slots that it has, by engine. */
  granted: Map<string, number>
  recalled: Set<string>
  /** Its calls that wait, or have run for a while. */
  calls: Map<string, { organizationId: string; record: () => JobRecord; ended: PromiseWithResolvers<void> | undefined }>
  slots: LentSlots
  /** How many requests it was answering when it last said so. */
  open: number
  records: number
  /** Of these, how many it knows, or will know, to be stored. */
  toldStored: number
  /** Resolved when it has done what it was told, by number. */
  answers: Map<number, () => void>
  drained: (() => void) | undefined
}

/** Finds and cancels the calls of fronts. `report` resolves when all fronts have told of theirs. */
export function callsInFronts(sessions: ReadonlySet<Session>, report: () => Promise<void>): CallsElsewhere {
  /** Those who ask at the same time get the same answer. */
  let asking: Promise<void> = Promise.resolve()
  let next: Promise<void> | undefined

  function* callsOf(organizationId: string) {
    for (const session of sessions)
      for (const [id, call] of session.calls) if (call.organizationId === organizationId) yield { session, id }
  }
  function callOf(organizationId: string, id: string) {
    for (const session of sessions) {
      const call = session.calls.get(id)
      if (call?.organizationId === organizationId) return { session, call }
    }
    return undefined
  }

  return {
    known() {
      next ??= asking.then(() => {
        next = undefined
        return (asking = report())
      })
      return next
    },
    find: (organizationId, id) => callOf(organizationId, id)?.call.record(),
    ended(organizationId, id) {
      const call = callOf(organizationId, id)?.call
      return call && (call.ended ??= Promise.withResolvers<void>()).promise
    },
    cancel(organizationId, id, reason) {
      const own = callOf(organizationId, id)
      own?.session.send({ kind: 'cancel', ids: [id], message: reason.message })
      return own !== undefined
    },
    cancelAll(organizationId, reason) {
      const own = [...callsOf(organizationId)]
      for (const { session, id } of own) session.send({ kind: 'cancel', ids: [id], message: reason.message })
      return own.length
    },
    runningOf: organizationId => [...callsOf(organizationId)].length,
    open: () => [...sessions].reduce((sum, { open }) => sum + open, 0),
    *waiting() {
      for (const session of sessions)
        for (const { call, waitedMs } of session.slots.waiting()) yield { job: runningRecord(call), waitedMs }
    },
  }
}
