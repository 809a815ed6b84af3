/** A part of a file: its first and its last byte, both included. */
export interface Range {
  first: number
  last: number
}

const form = /^bytes\s*=\s*(?:(\d{1,15})\s*-\s*(\d{1,15})?|-\s*(\d{1,15}))\s*$/i

/**
 * Returns the range that a Range header requests of a file of `size` bytes. Undefined means the whole file: without the
 * header, with a malformed one (ignored, as RFC 9110 requires), or with several ranges, for which the whole is allowed.
 */
export function rangeOf(header: string | undefined, size: number): Range | 'unsatisfiable' | undefined {
  const match = header === undefined ? null : form.exec(header)
  if (!match) return undefined
  const [, from, to, suffix] = match
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size)
    return length === 0 ? 'unsatisfiable' : { first: size - length, last: size - 1 }
  }
  const first = Number(from)
  const last = to === undefined ? size - 1 : Math.min(Number(to), size - 1)
  if (to !== undefined && Number(to) < first) return undefined
  return first >= size ? 'unsatisfiable' : { first, last }
}

/** Whether an If-None-Match header has this tag. Weak tags match too, as RFC 9110 requires. */
export const noneMatch = (header: string | undefined, etag: string): boolean =>
  header !== undefined &&
  (header.trim() === '*' || header.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag))

/** Whether a Range may be answered: always without If-Range, and with it only if it is exactly this tag. */
export const rangeApplies = (ifRange: string | undefined, etag: string): boolean =>
  ifRange === undefined || ifRange.trim() === etag
