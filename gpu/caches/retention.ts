/** A saved conversation, as a file. */
export interface SavedConversation {
  path: string
  /** Opaque name of its organization. */
  owner: string
  bytes: number
  /** When it was saved or last restored, epoch milliseconds. */
  usedAt: number
}

export interface RetentionRules {
  now: number
  /** Milliseconds since it was last used. */
  maxAgeMs: number
  /** Bytes of all that is kept. */
  maxBytes: number
}

/**
 * Returns the conversations to delete: those that are too old, and then, until the rest has at most `maxBytes`, the least
 * recently used one of the organization that has the most. So no organization loses its own to another that saves more.
 */
export function toDelete<Saved extends Omit<SavedConversation, 'path'>>(
  saved: readonly Saved[],
  { now, maxAgeMs, maxBytes }: RetentionRules,
): Saved[] {
  const isOld = ({ usedAt }: Saved) => now - usedAt > maxAgeMs
  const deleted = saved.filter(isOld)
  const byOwner = new Map<string, { bytes: number; oldestFirst: Saved[] }>()
  let total = 0
  for (const one of saved.filter(other => !isOld(other)).toSorted((a, b) => a.usedAt - b.usedAt)) {
    const of = byOwner.get(one.owner) ?? { bytes: 0, oldestFirst: [] }
    of.bytes += one.bytes
    of.oldestFirst.push(one)
    byOwner.set(one.owner, of)
    total += one.bytes
  }
  while (total > maxBytes) {
    const largest = [...byOwner.values()].reduce((most, of) => (of.bytes > most.bytes ? of : most))
    const one = largest.oldestFirst.shift()
    if (!one) break
    largest.bytes -= one.bytes
    total -= one.bytes
    deleted.push(one)
  }
  return deleted
}
