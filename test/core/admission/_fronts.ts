import { openLimiter } from '../../../core/accounts/limiter.ts'
import type { Plans } from '../../../core/accounts/plans.ts'
import { openTokenLimiter } from '../../../core/accounts/token-limiter.ts'
import { openCredits } from '../../../core/admission/credits.ts'
import { type FrontLimits, openFrontLimits } from '../../../core/admission/front-limits.ts'
import { openSpend } from '../../../core/admission/spend.ts'
import type { Store } from '../../../core/store/store.ts'
import { keptLog } from '../store/_store.ts'

/** 30 November 2026, 12:00 UTC. */
const startOfTime = Date.UTC(2026, 10, 30, 12)

/** The same numbers from 0 to 1 for the same seed. */
function numbersOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const nothingSpent = { spend: { read: async () => [], held: async () => [] } } as unknown as Pick<
  Store,
  'spend' | 'organizations' | 'tokens'
>

/** Fulfills after everything that was waiting for a fulfilled promise. */
const settled = (): Promise<void> =>
  new Promise(resolve => queueMicrotask(() => queueMicrotask(() => queueMicrotask(() => queueMicrotask(resolve)))))

interface TestFront {
  id: string
  limits: FrontLimits
  alive: boolean
  /** The record of a call has ended since its last message. */
  hasRecords: boolean
}

/** A control process and its fronts on one fake clock, with messages that take time and may get lost. */
export async function openProcesses({
  seed = 1,
  fronts: count = 4,
  delayMs = 10,
  loss = 0,
  alone = false,
  maxAccounts,
}: {
  seed?: number
  fronts?: number
  /** The longest way of a message. */
  delayMs?: number
  /** The part of the messages of credits that gets lost. */
  loss?: number
  /** No message about calls takes along what credits have to tell. */
  alone?: boolean
  maxAccounts?: number
} = {}) {
  const random = numbersOf(seed)
  let now = 0
  const events: { at: number; order: number; run: () => void }[] = []
  let order = 0
  const clock = () => now
  const limiter = openLimiter(clock)
  const tokenLimiter = openTokenLimiter({ now: clock })
  const spend = await openSpend({
    store: nothingSpent,
    plans: {} as Plans,
    currency: 'EUR',
    log: keptLog().log,
    clock: { now: () => startOfTime + now },
  })
  const messages = { toFronts: 0, toControl: 0 }
  const fronts = new Map<string, TestFront>()
  /** When the last message to or from a front arrives: none overtakes another. */
  const lastArrival = new Map<string, number>()

  function at(time: number, run: () => void): void {
    const event = { at: Math.max(time, now), order: order++, run }
    let [low, high] = [0, events.length]
    while (low < high) {
      const middle = (low + high) >> 1
      const other = events[middle]!
      if (other.at > event.at || (other.at === event.at && other.order > event.order)) low = middle + 1
      else high = middle
    }
    events.splice(low, 0, event)
  }
  const after = (ms: number, run: () => void): void => at(now + ms, run)

  /** Runs it when a message that is sent now would arrive, unless the front has ended. */
  function carry(way: string, front: TestFront, run: () => void): void {
    const time = Math.max(now + random() * delayMs, lastArrival.get(way) ?? 0)
    lastArrival.set(way, time)
    at(time, () => front.alive && run())
  }

  const credits = openCredits({
    limiter,
    tokenLimiter,
    spend,
    now: clock,
    changed: id =>
      after(0, () => {
        const front = fronts.get(id)
        if (!front?.alive) return
        const message = credits.pending(id)
        if (!message) return
        messages.toFronts++
        if (random() >= loss)
          carry(`to ${id}`, front, () => {
            front.limits.apply(message)
            // Requests wait for the answer to a recall.
            send(front)
          })
      }),
  })

  function join(id: string): void {
    const limits = openFrontLimits({ now: clock, ...(maxAccounts === undefined ? {} : { maxAccounts }) })
    const front: TestFront = { id, limits, alive: true, hasRecords: false }
    fronts.set(id, front)
    credits.join(id)
    const poll = () => {
      if (!front.alive) return
      send(front)
      after(50, poll)
    }
    after(random() * 50, poll)
  }

  function send(front: TestFront): void {
    const message = front.limits.pending(front.hasRecords && !alone)
    if (message && (alone || !front.hasRecords)) messages.toControl++
    front.hasRecords = false
    if (message && random() >= loss) carry(`from ${front.id}`, front, () => credits.apply(front.id, message))
  }

  for (let index = 0; index < count; index++) join(`front_${index}`)
  const tick = () => {
    credits.tick()
    after(250, tick)
  }
  after(250, tick)

  return {
    random,
    clock,
    limiter,
    tokenLimiter,
    spend,
    credits,
    fronts,
    messages,
    at,
    after,
    carry,
    join,
    /** Tells control of an ended call before the next message of the front's credits. */
    record(front: TestFront, run: () => void): void {
      front.hasRecords = true
      const way = `from ${front.id}`
      // Records of a front that has ended are written by control.
      lastArrival.set(way, Math.max(now, lastArrival.get(way) ?? 0))
      at(lastArrival.get(way)!, run)
    },
    /** Lets time pass. */
    async run(untilMs: number): Promise<void> {
      for (let next = events.at(-1); next && next.at <= untilMs; next = events.at(-1)) {
        events.pop()
        now = next.at
        next.run()
        // Requests that wait for credits go on.
        await settled()
      }
      now = untilMs
    },
  }
}
export type Processes = Awaited<ReturnType<typeof openProcesses>>
