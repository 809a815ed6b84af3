/** The limits of a size that people change, in pixels. */
export interface SizeLimits {
  least: number
  most: number
}

/** Pixels by which one press of an arrow key changes a size. */
const step = 32

export const withinLimits = (size: number, { least, most }: SizeLimits): number =>
  Math.round(Math.max(least, Math.min(Math.max(least, most), size)))

/**
 * The size after a key; undefined if the key means nothing. `grows` is the arrow key that points away from the panel, so
 * that the line goes where the arrow points.
 */
export function sizeAfterKey(
  key: string,
  size: number,
  limits: SizeLimits,
  grows: 'ArrowLeft' | 'ArrowUp',
): number | undefined {
  const shrinks = grows === 'ArrowLeft' ? 'ArrowRight' : 'ArrowDown'
  const next = { [grows]: size + step, [shrinks]: size - step, Home: limits.least, End: limits.most }[key]
  return next === undefined ? undefined : withinLimits(next, limits)
}
