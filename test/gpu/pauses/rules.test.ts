import { describe, expect, test } from 'vitest'
import {
  keptRules,
  nextChange,
  type PauseFacts,
  type PauseRule,
  pausedDevices,
  resumedRules,
  ruleState,
} from '../../../gpu/pauses/rules.ts'

const now = Date.parse('2026-11-28T20:00:00Z')
const hour = 3_600_000
const cards = [
  { id: 'gpu0', kind: 'nvidia' },
  { id: 'gpu1', kind: 'nvidia' },
  { id: 'cpu', kind: 'cpu' },
]
const facts = (of: Partial<PauseFacts> = {}): PauseFacts => ({ now, devices: cards, running: new Set(), ...of })
const rule = (of: Partial<PauseRule> = {}): PauseRule => ({
  id: 'pause_1',
  createdAt: now,
  isConfigured: false,
  devices: null,
  until: null,
  process: null,
  schedule: null,
  resumed: {},
  ...of,
})
const nights = { cron: '0 18 * * *', timezone: 'UTC', forMs: 12 * hour }

describe('what is paused', () => {
  test.each<[rule: string, rules: PauseRule[], facts: Partial<PauseFacts>, expected: Record<string, string>]>([
    [
      'every GPU and not the processor',
      [rule()],
      {},
      {
        gpu0: 'is paused until it is resumed',
        gpu1: 'is paused until it is resumed',
      },
    ],
    [
      'the processor where there is no GPU',
      [rule({ until: now + hour })],
      { devices: cards.slice(2) },
      { cpu: 'is paused until 2026-11-28T21:00:00Z' },
    ],
    [
      'the devices that are named',
      [rule({ devices: ['cpu', 'gone'], until: now + 1 })],
      {},
      { cpu: 'is paused until 2026-11-28T20:00:01Z' },
    ],
    ['nothing after its end', [rule({ until: now })], {}, {}],
    ['nothing while the program does not run', [rule({ process: 'game' })], { running: new Set(['other']) }, {}],
    [
      'while it runs; the program is not named',
      [rule({ process: 'game', devices: ['gpu1'] })],
      { running: new Set(['game']) },
      { gpu1: 'is paused while another program runs' },
    ],
    [
      'within the hours of a schedule',
      [rule({ schedule: nights, devices: ['gpu0'] })],
      {},
      { gpu0: 'is paused until 2026-11-29T06:00:00Z' },
    ],
    ['not beside them', [rule({ schedule: { ...nights, forMs: 2 * hour } })], {}, {}],
    [
      'a schedule that ends for good',
      [rule({ schedule: nights, devices: ['gpu0'], until: now + hour })],
      {},
      { gpu0: 'is paused until 2026-11-28T21:00:00Z' },
    ],
    [
      'of two pauses the longer one',
      [rule({ until: now + hour, devices: ['gpu0'] }), rule({ until: now + 2 * hour, devices: ['gpu0'] })],
      {},
      { gpu0: 'is paused until 2026-11-28T22:00:00Z' },
    ],
    [
      'of which one has no end',
      [rule({ devices: ['gpu0'] }), rule({ until: now + 2 * hour, devices: ['gpu0'] })],
      {},
      { gpu0: 'is paused until it is resumed' },
    ],
    [
      'not where it was ended by hand',
      [rule({ resumed: { gpu0: null }, until: now + hour })],
      {},
      { gpu1: 'is paused until 2026-11-28T21:00:00Z' },
    ],
    ['nor until a time', [rule({ devices: ['gpu0'], schedule: nights, resumed: { gpu0: now + 1 } })], {}, {}],
  ])('%s', (_, rules, of, expected) => {
    const found = pausedDevices(rules, facts(of))
    expect(Object.fromEntries([...found].map(([id, { text }]) => [id, text]))).toEqual(expected)
  })
})

describe('ended by hand', () => {
  test('a pause without a rule is forgotten once all of its devices are used again', () => {
    const [first] = resumedRules([rule()], ['gpu0'], facts())
    expect(keptRules([first!], facts())).toEqual([rule({ resumed: { gpu0: null } })])
    expect(keptRules(resumedRules([first!], ['gpu1'], facts()), facts())).toEqual([])
  })

  test('a schedule pauses again at its next time', () => {
    const [night] = resumedRules([rule({ schedule: nights })], ['gpu0', 'gpu1'], facts())
    expect(night!.resumed).toEqual({ gpu0: now + 10 * hour, gpu1: now + 10 * hour })
    expect(pausedDevices([night!], facts()).size).toBe(0)
    const next = facts({ now: now + 23 * hour })
    expect(pausedDevices(keptRules([night!], next), next).size).toBe(2)
  })

  test('a program pauses again when it is started again', () => {
    const running = new Set(['game'])
    const [game] = resumedRules([rule({ process: 'game' })], ['gpu0'], facts({ running }))
    expect([...pausedDevices([game!], facts({ running })).keys()]).toEqual(['gpu1'])
    expect(keptRules([game!], facts({ running }))).toEqual([game])
    const ended = keptRules([game!], facts())
    expect([...pausedDevices(ended, facts({ running })).keys()]).toEqual(['gpu0', 'gpu1'])
  })

  test('a pause that did not hold is not changed', () => {
    expect(resumedRules([rule({ process: 'game' })], ['gpu0'], facts())).toEqual([rule({ process: 'game' })])
  })
})

test('rules are kept until they end; a device that is missing for a moment keeps its pause', () => {
  const bound = rule({ devices: ['gpu1'] })
  expect(keptRules([bound, rule({ until: now })], facts({ devices: cards.slice(2) }))).toEqual([bound])
})

test.each<[rule: string, rules: PauseRule[], at: number]>([
  ['nothing', [rule()], Number.POSITIVE_INFINITY],
  ['the end', [rule({ until: now + hour })], now + hour],
  ['the earlier of two ends', [rule({ until: now + hour }), rule({ until: now + 5 })], now + 5],
  ['the end of the hours', [rule({ schedule: nights })], now + 10 * hour],
  ['the next hours', [rule({ schedule: { ...nights, forMs: hour } })], now + 22 * hour],
  ['the end of a rule about a program', [rule({ process: 'game', until: now + hour })], now + hour],
])('the time changes next: %s', (_, rules, at) => {
  expect(nextChange(rules, facts())).toBe(at)
})

test('a schedule ends and begins again at the same moment without a gap', () => {
  const always = rule({ schedule: { cron: '0 * * * *', timezone: 'UTC', forMs: hour } })
  for (const at of [now - 1, now, now + 1]) expect(ruleState(always, facts({ now: at })).isActive).toBe(true)
})
