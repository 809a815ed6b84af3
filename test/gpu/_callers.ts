import type { Failure } from '../../core/failure.ts'
import { waitedTooLong } from '../../core/jobs/waiting-calls.ts'
import type { SlotQueue } from '../../core/models/fleet.ts'
import { type ModelState, notOffered, type Resident } from '../../gpu/residency/model-state.ts'
import type { Residency } from '../../gpu/residency/residency.ts'

interface Caller {
  since: number
  deadline: number
  background: boolean
  /** When the reference order began it. */
  begun: number | null
  grant(resident: Resident, waitedMs: number, loadedMs: number): void
  refuse(failure: Failure): void
}

const ageingMs = 30_000

/** The simplest queue that a residency can serve: first come, first served, each until its deadline. */
export function openCallers(now: () => number) {
  const waiting = new Map<string, Caller[]>()
  let residency: Residency
  let next: { modelId: string; caller: Caller } | undefined
  const of = (modelId: string): Caller[] => {
    const own = waiting.get(modelId) ?? []
    waiting.set(modelId, own)
    return own
  }
  const changed = (modelId: string): void => {
    const state = residency.find(modelId)
    if (state) residency.demandChanged(state)
  }
  function leave(modelId: string, caller: Caller): boolean {
    const at = of(modelId).indexOf(caller)
    if (at >= 0) of(modelId).splice(at, 1)
    return at >= 0
  }
  function late(modelId: string, caller: Caller): void {
    if (!leave(modelId, caller)) return
    const state = residency.find(modelId)
    // As seen by a caller that waited until now.
    of(modelId).push(caller)
    const activity = residency.activity(state!)
    leave(modelId, caller)
    caller.refuse(waitedTooLong(modelId, activity))
    changed(modelId)
  }

  const queue: SlotQueue = {
    waits: modelId => of(modelId).length > 0,
    demand(modelId) {
      const [first] = of(modelId)
      if (!first) return undefined
      const background = of(modelId).filter(caller => caller.background).length
      const interactive = of(modelId).length - background
      return {
        interactive,
        background,
        oldestWaitMs: now() - first.since,
        expectedWorkMs: null,
        referenceStart: first.begun,
      }
    },
    reference: {
      next() {
        const all = [...waiting].flatMap(([modelId, own]) => own.map(caller => ({ modelId, caller })))
        const left = all.filter(({ caller }) => caller.begun === null)
        // As in the queue of the product, whoever has waited long belongs to the highest class.
        const isLow = ({ background, since }: Caller) => Number(background && now() - since < ageingMs)
        const order = (a: Caller, b: Caller) => isLow(a) - isLow(b) || a.since - b.since
        next = left.sort((a, b) => order(a.caller, b.caller))[0]
        return next?.modelId
      },
      begin: at => void (next && (next.caller.begun = at)),
      reset() {
        for (const caller of [...waiting.values()].flat()) caller.begun = null
      },
    },
    serve(modelId) {
      for (let [caller] = of(modelId); caller; [caller] = of(modelId)) {
        const resident = residency.take(modelId)
        if (!resident) return
        leave(modelId, caller)
        const waitedMs = now() - caller.since
        caller.grant(resident, waitedMs, residency.loadedMs(resident, waitedMs))
      }
    },
    refuse(modelId, failure, withinMs, waitedMs = 0) {
      const due = of(modelId).filter(({ deadline, since }) => deadline <= now() + withinMs && since <= now() - waitedMs)
      for (const caller of due) if (leave(modelId, caller)) caller.refuse(failure())
    },
  }

  return {
    queue,
    attach: (attached: Residency): void => void (residency = attached),
    /** Waits for a slot; once answered, the caller leaves the queue. */
    ask(state: ModelState, waitMs: number, caller: Pick<Caller, 'grant' | 'refuse'>, background = false): () => void {
      const modelId = state.model.id
      const one: Caller = { ...caller, background, begun: null, since: now(), deadline: now() + waitMs }
      of(modelId).push(one)
      if (residency.find(modelId)) changed(modelId)
      else queue.refuse(modelId, () => notOffered(modelId), Number.POSITIVE_INFINITY)
      if (waitMs <= 0 && of(modelId).includes(one)) late(modelId, one)
      return () => {
        if (leave(modelId, one)) changed(modelId)
      }
    },
    /** The time at which the next caller reaches its deadline. */
    nextDeadline: (): number => Math.min(...[...waiting.values()].flat().map(({ deadline }) => deadline)),
    refuseLate(): void {
      for (const [modelId, own] of waiting)
        for (const caller of own.filter(({ deadline }) => deadline <= now())) late(modelId, caller)
    },
    waiting: (modelId: string): number => of(modelId).length,
  }
}
