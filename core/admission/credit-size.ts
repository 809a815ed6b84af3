/**
 * How much of a limit one front process may hold ahead of time. Together they hold little enough that what is left in the
 * control process is enough for all requests until the credits are recalled. Each function returns 0 near the limit.
 */

/** A credit so small that most of its requests would have to ask again is worth no message. */
const leastPart = 200

/**
 * Permits of a bucket of which `level` are left, wherever they are: a quarter of the limit among all `fronts` while the
 * bucket is full, nothing once it is half empty.
 */
export function permitsFor(level: number, perMinute: number, fronts: number): number {
  const each = Math.floor((level - perMinute / 2) / 2 / fronts)
  return each >= Math.max(2, perMinute / leastPart) ? each : 0
}

/** Requests that a front may open beyond those that it has open, while `open` are in all processes. */
export const openFor = (open: number, max: number, fronts: number): number =>
  open > (max * 3) / 4 ? 0 : Math.max(0, Math.floor((max - open) / 2 / fronts))

/** The amount for the calls of a front while `left` of a limit is neither spent nor held by calls. */
export const amountFor = (left: number, limit: number, fronts: number): number =>
  left < limit / 10 ? 0 : Math.floor(left / 4 / fronts)
