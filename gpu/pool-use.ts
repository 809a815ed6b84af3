import { monthOf } from '../core/month.ts'

const hourMs = 3_600_000

/** What engines of this server have used of a pool in a calendar month. */
export interface PoolUsed {
  /** The month: its first millisecond, epoch. */
  month: number
  /** Milliseconds that engines had GPUs, for each GPU. */
  cardMs: number
  /** The same at the price that the pool had then, in currency units. */
  cost: number
  /** Until when each engine is counted, epoch milliseconds, by its id: after a restart it is counted from there. */
  countedUntil: Readonly<Record<string, number>>
}

/** An engine in a pool. */
export interface CountedEngine {
  engineId: string
  /** Its GPUs. One that engines share is divided among them, so that it counts once. */
  cards: number
  /** When its launch began, epoch milliseconds; null while it waits for a machine, which is not counted. */
  since: number | null
}

export interface MonthlyLimits {
  monthly_card_hours_limit?: number | undefined
  monthly_cost_limit?: number | undefined
  cost_per_hour?: number | undefined
}

/** Counts what engines have used until `now`, epoch milliseconds. Time before the month of `now` is not part of it. Pure. */
export function countUse(
  before: PoolUsed | undefined,
  engines: readonly CountedEngine[],
  { now, costPerHour }: { now: number; costPerHour: number },
): PoolUsed {
  const { start } = monthOf(now)
  const used = before?.month === start ? before : { month: start, cardMs: 0, cost: 0 }
  const counted = before?.countedUntil ?? {}
  // Engines that ended while no server ran are forgotten with the next month.
  const known = Object.entries(counted).filter(([, until]) => until >= start)
  const countedUntil: Record<string, number> = Object.fromEntries(known)
  let cardMs = 0
  for (const { engineId, cards, since } of engines) {
    const from = Math.max(start, counted[engineId] ?? since ?? now)
    if (since !== null) cardMs += cards * Math.max(0, now - from)
    countedUntil[engineId] = now
  }
  const cost = used.cost + (cardMs / hourMs) * costPerHour
  return { month: start, cardMs: used.cardMs + cardMs, cost, countedUntil }
}

export const cardHoursOf = ({ cardMs }: Pick<PoolUsed, 'cardMs'>): number => cardMs / hourMs

/** Milliseconds until engines with so many GPUs reach a limit of the pool: 0 if one is reached, Infinity without limits. */
export function untilLimit(limits: MonthlyLimits, { cardMs, cost }: PoolUsed, cards: number): number {
  const { monthly_card_hours_limit: hours = Infinity, monthly_cost_limit: most = Infinity, cost_per_hour = 0 } = limits
  const left = [hours * hourMs - cardMs, most === Infinity ? Infinity : ((most - cost) * hourMs) / cost_per_hour]
  if (cardMs >= hours * hourMs || cost >= most) return 0
  return cards === 0 ? Infinity : Math.min(...left) / cards
}

/** What the pool has used up, and until when it gets no engine, as a sentence without its subject; null if it has not. */
export function limitReached(limits: MonthlyLimits, used: PoolUsed): { text: string; endsAt: number } | null {
  if (untilLimit(limits, used, 0) > 0) return null
  const { monthly_card_hours_limit: hours, monthly_cost_limit: most } = limits
  const isHours = hours !== undefined && used.cardMs >= hours * hourMs
  const endsAt = monthOf(used.month).end
  const what = isHours
    ? `${rounded(cardHoursOf(used))} of its ${hours} GPU hours`
    : `${rounded(used.cost)} of its ${most} currency units`
  const key = isHours ? 'monthly_card_hours_limit' : 'monthly_cost_limit'
  const day = new Date(endsAt).toISOString().slice(0, 10)
  return {
    endsAt,
    text: `It has used ${what} of this month, and opens again on ${day} at 00:00 UTC. To open it now, raise '${key}' of the pool.`,
  }
}

const rounded = (value: number): number => Math.round(value * 100) / 100
