import { expect, test } from 'vitest'
import {
  type CountedEngine,
  cardHoursOf,
  countUse,
  limitReached,
  type PoolUsed,
  untilLimit,
} from '../../gpu/pool-use.ts'

const hour = 3_600_000
const november = Date.UTC(2026, 10, 1)
const december = Date.UTC(2026, 11, 1)
const at = november + 100 * hour

const used = (of: Partial<PoolUsed> = {}): PoolUsed => ({
  month: november,
  cardMs: 0,
  cost: 0,
  countedUntil: {},
  ...of,
})
const engine = (of: Partial<CountedEngine> = {}): CountedEngine => ({
  engineId: 'a',
  cards: 1,
  since: at - hour,
  ...of,
})

test.each<[string, PoolUsed | undefined, CountedEngine[], number, { hours: number; cost: number }]>([
  ['nothing', undefined, [], at, { hours: 0, cost: 0 }],
  ['an engine from its launch', undefined, [engine({ cards: 2 })], at, { hours: 2, cost: 4 }],
  ['not the wait for a machine', undefined, [engine({ since: null })], at, { hours: 0, cost: 0 }],
  [
    'a known one from its last count',
    used({ countedUntil: { a: at - hour / 2 } }),
    [engine()],
    at,
    { hours: 0.5, cost: 1 },
  ],
  ['onto what was used', used({ cardMs: 3 * hour, cost: 9 }), [engine()], at, { hours: 4, cost: 11 }],
  [
    'shared GPUs once',
    used(),
    [engine({ cards: 0.5 }), engine({ engineId: 'b', cards: 0.5 })],
    at,
    { hours: 1, cost: 2 },
  ],
  [
    'nothing twice if the clock is set back',
    used({ countedUntil: { a: at + hour } }),
    [engine()],
    at,
    { hours: 0, cost: 0 },
  ],
  [
    'a new month from its first millisecond',
    used({ cardMs: 9 * hour, cost: 9, countedUntil: { a: december - hour } }),
    [engine()],
    december + hour,
    { hours: 1, cost: 2 },
  ],
])('counts %s', (_name, before, engines, now, { hours, cost }) => {
  const after = countUse(before, engines, { now, costPerHour: 2 })
  expect({ hours: cardHoursOf(after), cost: after.cost }).toEqual({ hours, cost })
  expect(after.countedUntil).toEqual(Object.fromEntries(engines.map(({ engineId }) => [engineId, now])))
})

test.each([
  ['no limits', {}, used({ cardMs: 1e12 }), 1, Infinity],
  ['hours', { monthly_card_hours_limit: 10 }, used({ cardMs: 8 * hour }), 2, hour],
  ['cost', { monthly_cost_limit: 10, cost_per_hour: 2 }, used({ cost: 8 }), 2, hour / 2],
  ['nothing that runs', { monthly_card_hours_limit: 10 }, used(), 0, Infinity],
  ['a limit that is reached', { monthly_card_hours_limit: 10 }, used({ cardMs: 10 * hour }), 0, 0],
])('the time until a limit: %s', (_name, limits, so, cards, ms) => {
  expect(untilLimit(limits, so, cards)).toBe(ms)
})

test('a limit that is reached is a sentence, with its end', () => {
  const both = { monthly_card_hours_limit: 100, monthly_cost_limit: 120, cost_per_hour: 1.2 }
  expect(limitReached(both, used({ cardMs: 99 * hour, cost: 118.8 }))).toBeNull()
  expect(limitReached(both, used({ cardMs: 100.5 * hour, cost: 119 }))).toEqual({
    endsAt: december,
    text: "It has used 100.5 of its 100 GPU hours of this month, and opens again on 2026-12-01 at 00:00 UTC. To open it now, raise 'monthly_card_hours_limit' of the pool.",
  })
  expect(limitReached(both, used({ cost: 120 }))?.text).toMatch(
    /^It has used 120 of its 120 currency units .*'monthly_cost_limit'/,
  )
})
