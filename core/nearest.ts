/** The name that was meant, if one of those there are is written nearly so. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: { known: string; far: number } | undefined
  for (const known of names) {
    const far = distance(name.toLowerCase(), known.toLowerCase())
    if (!best || far < best.far) best = { known, far }
  }
  return best && best.far <= Math.max(1, name.length / 3) ? best.known : undefined
}

/**
 * The names of models that were probably meant, nearest first, `most` at most: written nearly so, with or without what
 * precedes the last slash, or a part of one.
 */
export function nearestModels(id: string, ids: Iterable<string>, most = 3): string[] {
  const wanted = lastPart(id.slice(0, 128).toLowerCase())
  const found: { known: string; far: number }[] = []
  if (wanted === '') return []
  for (const known of ids) {
    const part = lastPart(known.toLowerCase())
    const apart = Math.abs(part.length - wanted.length)
    const far = Math.max(1, Math.min(part.length, wanted.length) / 3)
    // A name of which the other is the beginning or the end: 'qwen3' for 'qwen3-8b-instruct'.
    const contained = Math.min(part.length, wanted.length) >= 3 && (part.includes(wanted) || wanted.includes(part))
    // Names of other lengths cannot be near, and need not be compared.
    const distant = apart > far && !contained ? Infinity : distance(wanted, part)
    if (distant <= far || contained) found.push({ known, far: distant })
  }
  return found
    .toSorted((a, b) => a.far - b.far || (a.known < b.known ? -1 : 1))
    .slice(0, most)
    .map(({ known }) => known)
}

const lastPart = (id: string): string => id.slice(id.lastIndexOf('/') + 1)

/** ` Did you mean 'a' or 'b'?` for such names; nothing where there are none. */
export function didYouMean(names: readonly string[]): string {
  return names.length === 0 ? '' : ` Did you mean ${names.map(name => `'${name}'`).join(' or ')}?`
}

/** How many letters must be added, removed, changed or swapped with their neighbour to get from one word to the other. */
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
