import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { objectOf } from '../core/json.ts'
import type { Log } from '../core/log.ts'
import { optionalJson } from '../core/optional-file.ts'
import type { Clock } from './clock.ts'
import {
  type CountedEngine,
  cardHoursOf,
  countUse,
  limitReached,
  type MonthlyLimits,
  type PoolUsed,
  untilLimit,
} from './pool-use.ts'

/** Milliseconds between two counts at most. One comes earlier where a limit is reached earlier. */
export const countMs = 10_000

/**
 * Counts what engines use of each pool in a month, and keeps it over restarts in `pool-use.json` of the data directory.
 * `changed`: a pool has reached a limit, or is open again.
 */
export function openPoolUse(options: {
  dataDir: string
  /** The limits of each pool in infer.yaml, by name. */
  settings: () => Readonly<Record<string, MonthlyLimits>>
  engines: (pool: string) => readonly CountedEngine[]
  clock: Pick<Clock, 'epoch' | 'after'>
  log: Log
  changed: () => void
}) {
  const { settings, engines, clock, log, changed } = options
  const path = join(options.dataDir, 'pool-use.json')
  const pools = new Map<string, PoolUsed>()
  for (const [name, value] of Object.entries(objectOf(optionalJson(path)))) {
    const known = usedOf(value)
    if (known) pools.set(name, known)
  }
  const closed = new Set<string>()
  let cancel = () => {}

  function write(): void {
    try {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(`${path}.new`, JSON.stringify(Object.fromEntries(pools)), { mode: 0o600 })
      renameSync(`${path}.new`, path)
    } catch (thrown) {
      log.warn('The use of the pools could not be stored', { path }, thrown)
    }
  }

  /** Counts until now. Returns milliseconds until the next count. */
  function countAll(): number {
    const now = clock.epoch()
    let nextMs = countMs
    let hasChanged = false
    let hasUse = false
    for (const [name, limits] of Object.entries(settings())) {
      const running = engines(name)
      const used = countUse(pools.get(name), running, { now, costPerHour: limits.cost_per_hour ?? 0 })
      hasUse ||= running.length > 0 || (pools.has(name) && pools.get(name)!.month !== used.month)
      pools.set(name, used)
      const cards = running.reduce((sum, one) => sum + one.cards, 0)
      const leftMs = untilLimit(limits, used, cards)
      if (leftMs > 0) nextMs = Math.min(nextMs, Math.max(100, leftMs))
      if (closed.has(name) === (leftMs === 0)) continue
      hasChanged = true
      if (leftMs > 0) closed.delete(name)
      else closed.add(name)
      log.info(leftMs > 0 ? 'A pool is open again' : 'A pool has reached its limit of this month', { pool: name })
    }
    if (hasUse) write()
    if (hasChanged) changed()
    return nextMs
  }

  function count(): void {
    cancel()
    cancel = () => {}
    if (Object.keys(settings()).length === 0) return
    cancel = clock.after(countAll(), count)
  }

  const usedNow = (name: string): PoolUsed => countUse(pools.get(name), [], { now: clock.epoch(), costPerHour: 0 })
  return {
    /** Counts until now, and from now on regularly: at the start, and after new settings. */
    count,
    /** The engine ends now. */
    ended(pool: string, engineId: string): void {
      countAll()
      const used = pools.get(pool)
      if (!used) return
      const { [engineId]: _ended, ...countedUntil } = used.countedUntil
      pools.set(pool, { ...used, countedUntil })
      write()
    },
    /** What was counted of the month. */
    of(name: string): { cardHours: number; cost: number } {
      const used = usedNow(name)
      return { cardHours: cardHoursOf(used), cost: used.cost }
    },
    /** Why the pool gets no engine, and for how many milliseconds; null if it may get one. */
    limitReached(name: string): { text: string; endsInMs: number } | null {
      if (!closed.has(name)) return null
      const reached = limitReached(settings()[name] ?? {}, usedNow(name))
      return reached && { text: reached.text, endsInMs: Math.max(0, reached.endsAt - clock.epoch()) }
    },
    close(): void {
      cancel()
      if (pools.size > 0) write()
    },
  }
}

/** What the file says of a pool; undefined if it is not that. */
function usedOf(value: unknown): PoolUsed | undefined {
  const { month, cardMs, cost, countedUntil } = objectOf(value)
  if (![month, cardMs, cost].every(one => Number.isFinite(one))) return undefined
  const until = Object.entries(objectOf(countedUntil)).filter(([, at]) => Number.isFinite(at))
  return {
    month: month as number,
    cardMs: cardMs as number,
    cost: cost as number,
    countedUntil: Object.fromEntries(until) as Record<string, number>,
  }
}
