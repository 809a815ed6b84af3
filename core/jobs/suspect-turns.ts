import type { Suspects } from './suspects.ts'

/** How long other requests first get no slot for a suspect, milliseconds. It doubles with each time that was too short. */
const firstStopMs = 250
/** How long they get none at most; longer only for a suspect that must run alone and has waited for ten times as long. */
const maxStopMs = 2_000
const stopShare = 10
/** For how many times as long they go first afterwards. */
const othersShare = 3
/** How long a suspect waits for an idle engine before it runs beside others, if it may. */
const patienceMs = 10_000

/** The suspects of one model that wait for an idle engine, or run. Times are monotonic milliseconds. */
interface ModelTurns {
  /** Since when each waits, by id. */
  readonly waiting: Map<string, number>
  /** Those that run alone, with the timers that end this. */
  readonly alone: Map<string, NodeJS.Timeout | undefined>
  /** The one that runs beside others because it has waited for long. */
  beside: string | undefined
  /** Since when the suspects go first; null while the others do. */
  stoppedAt: number | null
  stopMs: number
  /** Whether a suspect has run since then. */
  hasRun: boolean
  /** Until when the others go first. */
  othersUntil: number
  /** Since when a suspect runs that began in that time because nobody else waited; null without one. */
  freeSince: number | null
  wake: NodeJS.Timeout | undefined
}

/** How a suspect may run now. `holdMs`: without an idle engine, one may be held for so long. */
export type SuspectTurn = { how: 'alone'; holdMs: number } | { how: 'beside' | 'wait' }

/**
 * When suspects that find no idle engine run, and when others do. The suspects go first in at most a quarter of the time, in
 * short stretches: an engine then gives no slot until it is idle. Whoever may do so runs beside others after a while, one at
 * a time.
 */
export function openSuspectTurns(suspects: Pick<Suspects, 'aloneMs'>) {
  const models = new Map<string, ModelTurns>()

  function of(modelId: string): ModelTurns {
    let turns = models.get(modelId)
    if (!turns) {
      const stop = { stoppedAt: null, stopMs: firstStopMs, hasRun: false }
      const others = { othersUntil: Number.NEGATIVE_INFINITY, freeSince: null }
      turns = { waiting: new Map(), alone: new Map(), beside: undefined, ...stop, ...others, wake: undefined }
      models.set(modelId, turns)
    }
    return turns
  }

  const mustRunAlone = (id: string): boolean => suspects.aloneMs(id) === Number.POSITIVE_INFINITY
  const limitMs = ({ hasRun, stopMs }: ModelTurns): number => (hasRun ? Math.max(maxStopMs, stopMs) : stopMs)

  /** How much longer the suspects go first, milliseconds; 0: the others do. */
  function stopLeftMs(turns: ModelTurns, now: number): number {
    if (turns.alone.size > 0) return 0
    if (turns.stoppedAt === null) {
      if (turns.freeSince !== null) {
        turns.othersUntil = Math.max(turns.othersUntil, now + othersShare * (now - turns.freeSince))
        turns.freeSince = null
      }
      if (now < turns.othersUntil) return 0
      turns.stoppedAt = now
      turns.hasRun = false
    }
    const stoppedMs = now - turns.stoppedAt
    const leftMs = limitMs(turns) - stoppedMs
    if (leftMs > 0) return leftMs
    const since = Math.min(now, ...Array.from(turns.waiting).flatMap(([id, at]) => (mustRunAlone(id) ? at : [])))
    turns.stopMs = turns.hasRun
      ? firstStopMs
      : Math.min(2 * turns.stopMs, Math.max(maxStopMs, (now - since) / stopShare))
    turns.stoppedAt = null
    turns.othersUntil = now + othersShare * stoppedMs
    return 0
  }

  /** The time without suspects is nobody's, and a model without any is forgotten. */
  function forget(modelId: string, turns: ModelTurns): void {
    if (turns.waiting.size > 0 || turns.alone.size > 0) return
    Object.assign(turns, { stoppedAt: null, freeSince: null })
    if (turns.beside === undefined) models.delete(modelId)
  }

  return {
    /** The suspect waits for an idle engine from now on. */
    waits: (modelId: string, id: string, now: number): void => void of(modelId).waiting.set(id, now),
    /** The model has no engine: nothing is kept from others, and nobody waits for an idle one. */
    withoutEngine(modelId: string, now: number): void {
      const turns = models.get(modelId)
      if (!turns) return
      for (const id of turns.waiting.keys()) turns.waiting.set(id, now)
      Object.assign(turns, { stoppedAt: null, stopMs: firstStopMs, freeSince: null, othersUntil: now })
    },
    /** How this suspect may run now; `others`: other requests wait too. */
    turn(modelId: string, id: string, { now, others }: { now: number; others: boolean }): SuspectTurn {
      const turns = of(modelId)
      const holdMs = stopLeftMs(turns, now)
      if (holdMs > 0 || !others) return { how: 'alone', holdMs }
      if (!turns.waiting.has(id)) turns.waiting.set(id, now)
      const waitedMs = now - turns.waiting.get(id)!
      return { how: waitedMs >= patienceMs && turns.beside === undefined && !mustRunAlone(id) ? 'beside' : 'wait' }
    },
    /** The suspect has got a slot. `share`: lets others have the other slots of its engine; called once it was alone for long enough. */
    began(
      modelId: string,
      id: string,
      { now, how, share }: { now: number; how: 'alone' | 'beside'; share: () => void },
    ) {
      const turns = of(modelId)
      turns.waiting.delete(id)
      if (how === 'beside') return void (turns.beside = id)
      if (turns.stoppedAt === null) turns.freeSince ??= now
      turns.hasRun = true
      const shared = () => {
        turns.alone.delete(id)
        share()
      }
      const forMs = suspects.aloneMs(id)
      turns.alone.set(id, Number.isFinite(forMs) ? setTimeout(shared, forMs).unref() : undefined)
    },
    /** The request runs or waits no longer. Call it before its slot is free. Cheap. */
    left(modelId: string, id: string): void {
      const turns = models.size === 0 ? undefined : models.get(modelId)
      if (!turns) return
      clearTimeout(turns.alone.get(id))
      turns.alone.delete(id)
      turns.waiting.delete(id)
      if (turns.beside === id) turns.beside = undefined
      forget(modelId, turns)
    },
    /**
     * Calls `check` when it is time for others or for one of these suspects, all that still wait for the model. Replaces the call
     * before.
     */
    wakeBy(modelId: string, waiting: ReadonlySet<string>, now: number, check: () => void): void {
      const turns = models.get(modelId)
      if (!turns) return
      clearTimeout(turns.wake)
      for (const id of turns.waiting.keys()) if (!waiting.has(id)) turns.waiting.delete(id)
      forget(modelId, turns)
      if (turns.waiting.size === 0) return
      const times = [turns.stoppedAt === null ? turns.othersUntil : turns.stoppedAt + limitMs(turns)]
      if (turns.beside === undefined)
        for (const [id, at] of turns.waiting) if (!mustRunAlone(id)) times.push(at + patienceMs)
      const next = Math.min(...times.filter(at => at > now))
      if (Number.isFinite(next)) turns.wake = setTimeout(check, Math.ceil(next - now)).unref()
    },
    close(): void {
      for (const { wake, alone } of models.values()) for (const timer of [wake, ...alone.values()]) clearTimeout(timer)
    },
  }
}
export type SuspectTurns = ReturnType<typeof openSuspectTurns>
