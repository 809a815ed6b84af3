/**
 * Bodies up to this size are processed in the event loop, where they take well under a millisecond. A thread processes
 * larger ones.
 */
export const inlineBytes = 32 << 10

/** Bodies of many small values take far longer to check than their size suggests: 10,000 empty messages are 30 KB. */
const inlineValues = 1_000

/** Larger bodies are processed one at a time, because each needs several times its size in memory. */
export const largeBytes = 1 << 20

/** The thread pool for a body that is not small. */
export const poolOfBody = (body: Buffer): 'requests' | 'bodies' => (body.length > largeBytes ? 'bodies' : 'requests')

/** Whether a JSON body can be checked in the event loop. */
export const isSmallBody = (body: Buffer): boolean =>
  body.length <= inlineBytes && (body.length <= 2 * inlineValues || !hasMoreThan(body, 0x2c, inlineValues))

/** Whether a byte occurs more than `max` times. */
export function hasMoreThan(body: Buffer, byte: number, max: number): boolean {
  let count = 0
  for (let at = body.indexOf(byte); at >= 0; at = body.indexOf(byte, at + 1)) if (++count > max) return true
  return false
}
