import { setFlagsFromString } from 'node:v8'

/** A start is over so long after the server is ready: what it left behind has been collected by then. */
const settledMs = 1_000

const growBy = (factor: 1 | 2): void => setFlagsFromString(`--semi-space-growth-factor=${factor}`)

/**
 * Keeps V8's young generation as small as it is. Nearly all that a start allocates stays, so V8 would let it grow, and
 * an idle server never gives that back: 5 MB. V8 reads this flag only when the young generation is about to grow.
 */
export const startSmall = (): void => growBy(1)

/** From soon on it grows as usual, by V8's own factor: under load it must. */
export const growAsNeeded = (): void => void setTimeout(growBy, settledMs, 2).unref()
