interface Point {
  x: number
  y: number
}
export interface PlacedBox extends Point {
  width: number
  height: number
}

/** Pixels between a line and the boxes that it passes. */
const gap = 16
/** Pixels that a line needs to leave its height and to come back to it. */
const turn = 48
const samples = 24

/**
 * The height at which a line passes the boxes that stand between its ends; undefined if it passes none, or leads to the
 * left. The boxes at its ends are not among `boxes`.
 */
export function detourOf(from: Point, to: Point, boxes: readonly PlacedBox[]): number | undefined {
  if (to.x - from.x <= 2 * turn) return undefined
  const between = boxes.filter(({ x, width }) => x < to.x && x + width > from.x)
  if (!between.some(box => isCrossed(from, to, box))) return undefined
  // A box beside the turns of the line is passed too if it stands in its way.
  const isFree = (y: number) => between.every(box => y <= box.y - gap / 2 || y >= box.y + box.height + gap / 2)
  const middle = (from.y + to.y) / 2
  const heights = between
    .flatMap(box => [box.y - gap, box.y + box.height + gap])
    .filter(isFree)
    .sort((a, b) => Math.abs(a - middle) - Math.abs(b - middle))
  return heights[0]
}

/** Whether the curve between two points passes through a box, or close to it. */
function isCrossed(from: Point, to: Point, box: PlacedBox): boolean {
  const half = (to.x - from.x) / 2
  for (let sample = 1; sample < samples; sample++) {
    const t = sample / samples
    const rest = 1 - t
    // Of a cubic curve that leaves and arrives level, as the graph library draws it.
    const x =
      rest ** 3 * from.x + 3 * rest ** 2 * t * (from.x + half) + 3 * rest * t ** 2 * (to.x - half) + t ** 3 * to.x
    const y = (rest ** 3 + 3 * rest ** 2 * t) * from.y + (3 * rest * t ** 2 + t ** 3) * to.y
    const isBeside = x > box.x && x < box.x + box.width
    if (isBeside && y > box.y - gap / 2 && y < box.y + box.height + gap / 2) return true
  }
  return false
}

/** The path of a line that passes boxes at this height, as SVG. */
export function detourPath(from: Point, to: Point, y: number): string {
  const [begin, end] = [from.x + turn, to.x - turn]
  return [
    `M${from.x},${from.y}`,
    `C${begin},${from.y} ${from.x},${y} ${begin},${y}`,
    `L${end},${y}`,
    `C${to.x},${y} ${end},${to.y} ${to.x},${to.y}`,
  ].join(' ')
}
