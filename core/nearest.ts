/** Returns the most similar of the names; undefined where none is similar. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: { known: string; edits: number } | undefined
  for (const known of names) {
    const edits = distance(name.toLowerCase(), known.toLowerCase())
    if (!best || edits < best.edits) best = { known, edits }
  }
  return best && best.edits <= Math.max(1, name.length / 3) ? best.known : undefined
}

/**
 * Returns at most `max` model ids that the caller probably meant, most similar first. Only the part after the last slash
 * is compared: it is similar, or one contains the other.
 */
export function nearestModels(id: string, ids: Iterable<string>, max = 3): string[] {
  const requested = lastPart(id.slice(0, 128).toLowerCase())
  const found: { known: string; edits: number }[] = []
  if (requested === '') return []
  for (const known of ids) {
    const part = lastPart(known.toLowerCase())
    const shorter = Math.min(part.length, requested.length)
    const maxEdits = Math.max(1, shorter / 3)
    // One name contains the other: 'qwen3' for 'qwen3-8b-instruct'.
    const contained = shorter >= 3 && (part.includes(requested) || requested.includes(part))
    // Names whose lengths differ by more than `maxEdits` need not be compared.
    const isFar = Math.abs(part.length - requested.length) > maxEdits && !contained
    const edits = isFar ? Infinity : distance(requested, part)
    if (edits <= maxEdits || contained) found.push({ known, edits })
  }
  return found
    .toSorted((a, b) => a.edits - b.edits || (a.known < b.known ? -1 : 1))
    .slice(0, max)
    .map(({ known }) => known)
}

const lastPart = (id: string): string => id.slice(id.lastIndexOf('/') + 1)

/** Returns ` Did you mean 'a' or 'b'?` for such names; an empty text without names. */
export function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? '' : ` Did you mean ${names.map(name => `'${name}'`).join(' or ')}?`
}

/** Returns how many letters must be added, removed, changed or swapped with their neighbour to turn one word into another. */
function distance(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let a = 1; a <= from.length; a++) {
    const next = [a]
    for (let b = 1; b <= to.length; b++) {
      const isSame = from[a - 1] === to[b - 1]
      next[b] = Math.min(row[b]! + 1, next[b - 1]! + 1, row[b - 1]! + (isSame ? 0 : 1))
      const isSwapped = a > 1 && b > 1 && from[a - 1] === to[b - 2] && from[a - 2] === to[b - 1]
      if (isSwapped) next[b] = Math.min(next[b]!, before[b - 2]! + 1)
    }
    before = row
    row = next
  }
  return row[to.length]!
}
