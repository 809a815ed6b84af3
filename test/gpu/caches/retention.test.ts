import { describe, expect, test } from 'vitest'
import { toDelete } from '../../../gpu/caches/retention.ts'

const now = 1_000_000
const rules = { now, maxAgeMs: 1_000, maxBytes: 100 }
/** `a9+5`: of the owner a, 9 bytes, used 5 ms ago. */
const saved = (texts: string) =>
  texts.split(' ').map(text => {
    const [, owner = '', bytes, age] = /^([a-z])(\d+)\+(\d+)$/.exec(text)!
    return { path: text, owner, bytes: Number(bytes), usedAt: now - Number(age) }
  })

describe('of saved conversations', () => {
  test.each<[rule: string, saved: string, deleted: string]>([
    ['nothing is deleted while there is room', 'a50+1 b50+2', ''],
    ['the old are deleted, whatever room there is', 'a1+1000 b1+1001', 'b1+1001'],
    ['the least recently used makes room', 'a50+3 a50+9 a50+6', 'a50+9'],
    [
      'the organization that has most makes room, also if another used its own longer ago',
      'a10+900 b60+5 b60+1',
      'b60+5',
    ],
    ['only as much is deleted as is needed', 'a40+9 a40+8 a40+7 a40+6', 'a40+9 a40+8'],
    ['organizations of equal use share', 'a60+9 b60+8 a30+7 b30+6', 'a60+9 b60+8'],
    ['what is larger than all room is deleted', 'a101+0', 'a101+0'],
    ['what was just used remains of one organization', 'a90+0 a90+5', 'a90+5'],
  ])('%s', (_rule, given, deleted) =>
    expect(
      toDelete(saved(given), rules)
        .map(({ path }) => path)
        .join(' '),
    ).toBe(deleted),
  )

  test('at most the limit remains, whatever there is', () => {
    let seed = 7
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below
    for (let round = 0; round < 500; round++) {
      const all = Array.from({ length: random(30) }, (_, at) => ({
        at,
        owner: 'abc'[random(3)]!,
        bytes: random(60),
        usedAt: now - random(1_500),
      }))
      const deleted = new Set(toDelete(all, rules))
      const rest = all.filter(one => !deleted.has(one))
      expect(rest.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(100)
      expect(rest.every(({ usedAt }) => now - usedAt <= 1_000)).toBe(true)
      // Nothing young was deleted that the organization with most would have had room for.
      const young = [...deleted].filter(({ usedAt }) => now - usedAt <= 1_000)
      const total = all.filter(({ usedAt }) => now - usedAt <= 1_000).reduce((sum, { bytes }) => sum + bytes, 0)
      if (total <= 100) expect(young).toEqual([])
    }
  })
})
