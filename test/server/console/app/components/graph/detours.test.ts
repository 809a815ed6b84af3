import { expect, test } from 'vitest'
import { detourOf, detourPath } from '../../../../../../server/console/app/components/graph/detours.ts'

const box = (x: number, y: number, height = 100) => ({ x, y, width: 250, height })
const [from, to] = [
  { x: 0, y: 50 },
  { x: 1_000, y: 50 },
]

test.each([
  ['an empty way', [], undefined],
  ['a box above the line', [box(300, -200)], undefined],
  ['a box just below the line', [box(300, 54)], 38],
  ['a box on the line whose lower edge is nearer', [box(300, -20)], 96],
  ['a box on the line whose upper edge is nearer', [box(300, 40)], 24],
  // Just below the first is the second.
  ['two boxes with no space between', [box(300, 0, 70), box(500, 75, 60)], -16],
  ['a box behind the end', [box(1_100, 0)], undefined],
])('a line with %s', (_, boxes, height) => {
  expect(detourOf(from, to, boxes)).toBe(height)
})

test('a line to the left or to a near card has no detour', () => {
  expect(detourOf(to, from, [box(300, 0)])).toBeUndefined()
  expect(detourOf(from, { x: 90, y: 50 }, [box(-100, 0)])).toBeUndefined()
})

test('a detour begins and ends at its ports', () => {
  const path = detourPath(from, to, 200)
  expect([path.startsWith('M0,50 '), path.endsWith(' 1000,50'), path.includes('L952,200')]).toEqual([true, true, true])
})
