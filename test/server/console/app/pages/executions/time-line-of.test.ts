import { expect, test } from 'vitest'
import { marksOf, timeLineOf } from '../../../../../../server/console/app/pages/executions/time-line-of.ts'

const node = (node_id: string, startedAt: number | null, duration_ms: number | null) => ({
  node_id,
  status: 'completed' as const,
  started_at_ms: startedAt === null ? null : startedAt * 1_000,
  duration_ms,
})

test('bars begin where their nodes began, in that order, and the length is that of the last', () => {
  const { bars, seconds } = timeLineOf([node('b', 103, 2_500), node('waits', null, null), node('a', 100, 1_000)], 200)
  expect(bars.map(({ id, from, to }) => [id, from, to])).toEqual([
    ['a', 0, 1],
    ['b', 3, 5.5],
    ['waits', undefined, undefined],
  ])
  expect(seconds).toBe(5.5)
})

test('nodes within one second stand where they ran', () => {
  const { bars, seconds } = timeLineOf([node('a', 100.25, 125), node('b', 100.5, 250)], 200)
  expect(bars.map(({ id, from, to }) => [id, from, to])).toEqual([
    ['a', 0, 0.125],
    ['b', 0.25, 0.5],
  ])
  expect(seconds).toBe(0.5)
})

test('a node that runs reaches to now', () => {
  const { bars, seconds } = timeLineOf([node('a', 100, null)], 130)
  expect([bars[0]!.to, seconds]).toEqual([30, 30])
})

test('before any node has begun there is nothing to draw, and no NaN', () => {
  expect(timeLineOf([node('a', null, null)], 130)).toEqual({
    bars: [{ id: 'a', status: 'completed', from: undefined, to: undefined }],
    seconds: 0.01,
  })
})

test.each([
  [1, [0, 0.2, 0.4, 0.6, 0.8, 1]],
  [9, [0, 2, 4, 6, 8]],
  [61, [0, 20, 40, 60]],
  [3_600, [0, 1_000, 2_000, 3_000]],
])('a time line of %d s has marks at %j', (seconds, marks) => expect(marksOf(seconds)).toEqual(marks))
