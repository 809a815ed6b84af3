import { Failure } from '../failure.ts'
import type { Fleet, Lease } from '../fleet.ts'
import type { Log } from '../log.ts'
import type { Model } from '../models/model.ts'
import type { Queue, Turn } from './queue.ts'
import type { Refill } from './refill.ts'
import { coolingMs } from './retry.ts'

/** Why a model is left alone, and for how much longer. */
export interface Cooling {
  readonly failure: Failure
  readonly forMs: number
}

/** What is done for one model. */
interface Desk {
  /** Leases that were asked for and have not come. */
  readonly asked: Set<AbortController>
  /** Slots that are held. */
  held: number
  cooling: { failure: Failure; until: number; timer: NodeJS.Timeout } | undefined
}

export interface DispatchWish {
  fleet: Pick<Fleet, 'lease' | 'spare'>
  /** As configured now, disabled ones too. */
  find: (modelId: string) => Model | undefined
  queue: Queue
  refill: Refill
  log: Log
  /** Runs the job of the turn, and calls `freed` once. Without a lease: its model is gone, and that is its end. */
  begin: (turn: Turn, lease: Lease | undefined) => void
  /** How many jobs have run whose end is not written yet. */
  unwritten: () => number
  /** Slots held at once, in all and of one model. */
  slots: number
  slotsPerModel: number
}

/**
 * How many leases of one model are asked for ahead. More would be of no use: the next is asked for in the turn in which
 * one comes, and those who wait in the fleet can no longer be put into another order.
 */
const ahead = 2
/** The jobs stay here in order; the slot is waited for there for as long as it takes. */
const leaseWaitMs = 3_600_000

/**
 * Pairs the jobs that wait with free slots. The slot comes first: only when it is held is it said whose turn it is, so
 * that a job waits under the fair order until the last moment. Woken by every change; `look` may be called at any time.
 */
export function openDispatch({
  fleet,
  find,
  queue,
  refill,
  log,
  begin,
  unwritten,
  slots,
  slotsPerModel,
}: DispatchWish) {
  const desks = new Map<string, Desk>()
  let held = 0
  let closed = false

  function deskOf(modelId: string): Desk {
    let desk = desks.get(modelId)
    if (!desk) desks.set(modelId, (desk = { asked: new Set(), held: 0, cooling: undefined }))
    return desk
  }

  const room = (desk: Desk): number =>
    unwritten() >= slots ? 0 : Math.max(0, Math.min(slotsPerModel - desk.held, slots - held))

  /** Asks for as many slots of the model as it has use for, and takes back what was asked for too much. */
  function look(modelId: string): void {
    if (closed) return
    const waiting = queue.waiting(modelId)
    if (waiting === 0 && !desks.has(modelId)) return
    const model = find(modelId)
    const desk = deskOf(modelId)
    if (!model && waiting > 0) return sendAway(modelId, desk)
    const wanted = model?.enabled && !desk.cooling ? Math.min(waiting, room(desk), ahead) : 0
    if (model) for (let missing = wanted - desk.asked.size; missing > 0; missing--) ask(model, desk)
    for (const one of [...desk.asked].slice(wanted)) {
      desk.asked.delete(one)
      one.abort()
    }
    if (waiting === 0 && desk.held === 0 && !desk.cooling) desks.delete(modelId)
  }

  function ask(model: Model, desk: Desk): void {
    const one = new AbortController()
    desk.asked.add(one)
    fleet.lease(model, { waitMs: leaseWaitMs, signal: one.signal, background: true }).then(
      lease => {
        desk.asked.delete(one)
        return serve(model.id, lease)
      },
      (thrown: unknown) => {
        if (desk.asked.delete(one) && !closed) refused(model.id, Failure.from(thrown))
      },
    )
  }

  /** No job has begun, so none is charged: the model is left alone, and those who wait are told why. */
  function refused(modelId: string, failure: Failure): void {
    if (failure.code === 'internal_error') log.error('A slot could not be had', { model: modelId }, failure.cause)
    const desk = deskOf(modelId)
    const forMs = coolingMs(failure)
    clearTimeout(desk.cooling?.timer)
    const warm = () => {
      desk.cooling = undefined
      look(modelId)
    }
    desk.cooling = { failure, until: performance.now() + forMs, timer: setTimeout(warm, forMs).unref() }
    look(modelId)
  }

  /** The slot goes to the job whose turn it is, or back. */
  async function serve(modelId: string, lease: Lease | undefined): Promise<void> {
    try {
      for (;;) {
        const desk = deskOf(modelId)
        const next = closed || room(desk) === 0 ? undefined : queue.next(modelId)
        if (!next) break
        if ('turn' in next) {
          desk.held++
          held++
          begin(next.turn, lease)
          refill.wake()
          return look(modelId)
        }
        await refill.now(next)
      }
    } catch (thrown) {
      lease?.release()
      return refused(modelId, Failure.from(thrown))
    }
    lease?.release()
    look(modelId)
  }

  /** The model is not configured any more, and may never be again: its jobs are taken as if to run, and fail. */
  function sendAway(modelId: string, desk: Desk): void {
    for (const one of desk.asked) one.abort()
    desk.asked.clear()
    if (room(desk) > 0) void serve(modelId, undefined)
  }

  function lookAtAll(): void {
    for (const modelId of new Set([...desks.keys(), ...queue.models()])) look(modelId)
  }

  function give(modelId: string): void {
    deskOf(modelId).held--
    held--
  }

  return {
    look,
    /** The slot may serve another job: the one that it was for does not wait any more. */
    passOn(modelId: string, lease: Lease | undefined): void {
      give(modelId)
      void serve(modelId, lease)
    },
    /** A slot for a job that is not there yet: one that nobody else has a use for now. It goes back by `freed`. */
    spare(modelId: string): Lease | undefined {
      if (closed || queue.waiting(modelId) > 0 || !find(modelId)?.enabled) return undefined
      const desk = deskOf(modelId)
      const lease = desk.cooling || room(desk) === 0 ? undefined : fleet.spare(modelId)
      if (!lease) return undefined
      desk.held++
      held++
      return lease
    },
    /** A slot that was held is given back. */
    freed(modelId: string): void {
      const full = held >= slots
      give(modelId)
      if (full) lookAtAll()
      else look(modelId)
    },
    refused,
    cooling(modelId: string): Cooling | undefined {
      const cooling = desks.get(modelId)?.cooling
      return cooling && { failure: cooling.failure, forMs: Math.max(0, Math.ceil(cooling.until - performance.now())) }
    },
    lookAtAll,
    /** How many slots of the model are asked for. */
    asked: (modelId: string): number => desks.get(modelId)?.asked.size ?? 0,
    held: (modelId?: string): number => (modelId === undefined ? held : (desks.get(modelId)?.held ?? 0)),
    /** Asks for nothing more; what comes all the same goes back. */
    close(): void {
      closed = true
      for (const desk of desks.values()) {
        clearTimeout(desk.cooling?.timer)
        for (const one of desk.asked) one.abort()
        desk.asked.clear()
      }
    },
  }
}
export type Dispatch = ReturnType<typeof openDispatch>
