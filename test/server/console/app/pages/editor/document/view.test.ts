import { expect, test } from 'vitest'
import { viewOf } from '../../../../../../../server/console/app/pages/editor/document/view.ts'

const free = { left: 16, top: 64, right: 616, bottom: 464 }
const limits = { minZoom: 0.5, maxZoom: 1 }

test.each([
  [
    'a small graph is in the middle, not enlarged',
    [{ x: 0, y: 0, width: 200, height: 100 }],
    { x: 216, y: 214, zoom: 1 },
  ],
  [
    'a wide one is made smaller',
    [
      { x: -100, y: 0, width: 200, height: 100 },
      { x: 700, y: 0, width: 300, height: 100 },
    ],
    { x: 16 + 100 * (600 / 1_100), y: 64 + (400 - 100 * (600 / 1_100)) / 2, zoom: 600 / 1_100 },
  ],
  [
    'one that is too wide shows its beginning',
    [{ x: 10, y: 0, width: 3_000, height: 100 }],
    { x: 11, y: 239, zoom: 0.5 },
  ],
  [
    'one that is too high shows its middle',
    [{ x: 0, y: 0, width: 100, height: 2_000 }],
    { x: 291, y: -236, zoom: 0.5 },
  ],
] as const)('%s', (_, boxes, expected) => {
  const view = viewOf(boxes, free, limits)
  for (const name of ['x', 'y', 'zoom'] as const) expect(view[name]).toBeCloseTo(expected[name])
})
