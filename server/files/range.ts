/** A part of a file: its first and its last byte, both included. */
export interface Range {
  first: number
  last: number
}

const form = /^bytes\s*=\s*(?:(\d{1,15})\s*-\s*(\d{1,15})?|-\s*(\d{1,15}))\s*$/i

/**
 * What a Range header asks for, of a file of `size` bytes. Undefined: everything, because there is no such header, it
 * is none (RFC 9110 wants it passed over then), or it names several parts, which may be answered with the whole.
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

/** Whether an If-None-Match header names this tag. Weak tags count: for reading, they are as good. */
export const noneMatch = (header: string | undefined, etag: string): boolean =>
  header !== undefined &&
  (header.trim() === '*' || header.split(',').some(tag => tag.trim().replace(/^W\//, '') === etag))

/** Whether a Range may be answered: without If-Range always, with it only where it is this very tag. */
export const rangeApplies = (ifRange: string | undefined, etag: string): boolean =>
  ifRange === undefined || ifRange.trim() === etag
