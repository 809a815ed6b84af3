/**
 * Bytes up to which a body is worked on in the event loop: it takes well under a millisecond there. Larger ones go to a
 * thread.
 */
export const inlineBytes = 32 << 10

/** Bodies of many small values take far longer to check than their size suggests: 10,000 empty messages are 30 KB. */
const inlineValues = 1_000

/** Larger bodies are worked on one at a time, because each takes several times its size of memory meanwhile. */
const largeBytes = 1 << 20

/** The pool of threads for a body that is not small. */
export const poolOfBody = (body: Buffer): 'requests' | 'bodies' => (body.length > largeBytes ? 'bodies' : 'requests')

/** Whether a JSON body can be checked in the event loop. */
export const isSmallBody = (body: Buffer): boolean =>
  body.length <= inlineBytes && (body.length <= 2 * inlineValues || !hasMore(body, 0x2c, inlineValues))

/** Whether a byte occurs more than `most` times. */
export function hasMore(body: Buffer, byte: number, most: number): boolean {
  let count = 0
  for (let at = body.indexOf(byte); at >= 0; at = body.indexOf(byte, at + 1)) if (++count > most) return true
  return false
}
