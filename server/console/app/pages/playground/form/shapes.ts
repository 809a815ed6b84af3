/** Widths and heights of sizes that have a name. */
const named: Readonly<Record<string, readonly [width: number, height: number]>> = {
  square_hd: [1, 1],
  square: [1, 1],
  portrait_4_3: [3, 4],
  portrait_16_9: [9, 16],
  landscape_4_3: [4, 3],
  landscape_16_9: [16, 9],
}

/** Pixels: the longer side of a drawn shape. */
const longest = 24

/** Returns the width and height of a shape as it is drawn, in pixels: of `16:9` or `portrait_4_3`; undefined for `auto`. */
export function drawnShape(value: string): { width: number; height: number } | undefined {
  const ratio = named[value] ?? /^(\d+):(\d+)$/.exec(value)?.slice(1).map(Number)
  if (!ratio) return undefined
  const [width, height] = ratio as [number, number]
  const scale = longest / Math.max(width, height)
  return { width: Math.round(width * scale), height: Math.round(height * scale) }
}
