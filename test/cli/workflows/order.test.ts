import fc from 'fast-check'
import { expect, test } from 'vitest'
import { crossings, ordered, successorsById } from '../../../cli/workflows/layout.ts'

/** Two ranks, and the lines between them as pairs of positions. */
const ranksOf = (lines: readonly (readonly [number, number])[]) => {
  const names = (of: string, places: number[]) => Array.from({ length: Math.max(0, ...places) + 1 }, (_, at) => of + at)
  const ranks = [
    names(
      'a',
      lines.map(([from]) => from),
    ),
    names(
      'b',
      lines.map(([, to]) => to),
    ),
  ]
  return { ranks, edges: lines.map(([from, to]) => ({ from: `a${from}`, to: `b${to}` })) }
}

test('two lines cross when one starts before the other and ends after it', () => {
  const place = fc.nat(12)
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(place, place), { selector: String, maxLength: 40 }), lines => {
      const { ranks, edges } = ranksOf(lines)
      const pairs = lines.flatMap(([from, to]) => lines.filter(other => from < other[0] && to > other[1]))
      expect(crossings(ranks, successorsById(edges))).toBe(pairs.length)
    }),
  )
})

test('each node is placed at the middle of its predecessors, and equal positions keep their order', () => {
  const { ranks, edges } = ranksOf([
    [0, 3],
    [1, 2],
    [2, 1],
    [2, 0],
  ])
  expect(ordered(ranks, edges)).toEqual([
    ['a0', 'a1', 'a2'],
    ['b3', 'b2', 'b0', 'b1'],
  ])
})
