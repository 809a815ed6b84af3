/** A part of two values that is not the same in both. A part that one of them lacks is undefined there. */
export interface ValueDifference {
  /** Names of members and positions in lists; empty for the whole value. */
  path: readonly (string | number)[]
  before: unknown
  after: unknown
}

/** Most differences that are found: more than that nobody reads. */
const maxFound = 100
/** A list of more plain values than this, such as a vector, is one value. */
const maxPlain = 16

/** What differs between two JSON values, as deep as it can be told; `more`: there are further differences. */
export function valueDifferences(before: unknown, after: unknown): { found: ValueDifference[]; more: boolean } {
  const found: ValueDifference[] = []
  const isFull = (): boolean => found.length > maxFound
  function visit(a: unknown, b: unknown, path: readonly (string | number)[]): void {
    if (isFull() || a === b) return
    if (isRecord(a) && isRecord(b)) {
      for (const name of new Set([...Object.keys(a), ...Object.keys(b)]))
        visit(own(a, name), own(b, name), [...path, name])
    } else if (Array.isArray(a) && Array.isArray(b) && !(isLongPlain(a) || isLongPlain(b))) {
      for (let at = 0; at < Math.max(a.length, b.length) && !isFull(); at++) visit(a[at], b[at], [...path, at])
    } else if (!(Array.isArray(a) && Array.isArray(b) && isSameList(a, b))) found.push({ path, before: a, after: b })
  }
  visit(before, after, [])
  return { found: found.slice(0, maxFound), more: isFull() }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
const own = (record: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined

const isPlain = (value: unknown): boolean => value === null || typeof value !== 'object'
const isLongPlain = (list: readonly unknown[]): boolean => list.length > maxPlain && list.every(isPlain)
const isSameList = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((value, at) => value === b[at])
