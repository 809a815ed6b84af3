import { expect, test } from 'vitest'
import { openForeignGrowth } from '../../../gpu/placement/foreign-growth.ts'

const GiB = 2 ** 30

/** The GiB that idle engines should free after these measurements of a card of 24 GiB, in use and by others. */
function needed(...measurements: [usedGiB: number | null, byOthersGiB: number][]) {
  const growth = openForeignGrowth()
  return measurements.map(([used, byOthers]) => {
    const found = growth(
      [{ id: 'gpu0', totalBytes: 24 * GiB, usedBytes: used === null ? null : used * GiB }],
      [{ id: 'gpu0', kind: 'gpu', capacity: 0, usedByOthers: byOthers * GiB }],
    )
    return (found.get('gpu0') ?? 0) / GiB
  })
}

test.each<[rule: string, measurements: [number | null, number][], needed: number[]]>([
  ['a card that is full of engines is', [[23.9, 0]], [0]],
  [
    'a program that takes some of much free memory',
    [
      [8, 0],
      [12, 4],
    ],
    [0, 0],
  ],
  [
    'one that takes nearly all that is free',
    [
      [20, 0],
      [23, 3],
    ],
    [0, 0.5],
  ],
  [
    'and more',
    [
      [20, 0],
      [23, 3],
      [23.5, 3.5],
    ],
    [0, 0.5, 1],
  ],
  [
    'no longer once it stops growing',
    [
      [20, 0],
      [23, 3],
      [23, 3],
    ],
    [0, 0.5, 0],
  ],
  [
    'nor when it shrinks',
    [
      [23, 5],
      [22.9, 4],
    ],
    [0, 0],
  ],
  ['what was there before infer is no growth', [[23.9, 20]], [0]],
  [
    'nothing where the use is not measured',
    [
      [null, 0],
      [null, 3],
    ],
    [0, 0],
  ],
])('%s', (_, measurements, expected) => {
  expect(needed(...measurements)).toEqual(expected)
})
