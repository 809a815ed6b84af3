/** The name that was meant, if one of those there are is written nearly so. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: { known: string; far: number } | undefined
  for (const known of names) {
    const far = distance(name.toLowerCase(), known.toLowerCase())
    if (!best || far < best.far) best = { known, far }
  }
  return best && best.far <= Math.max(1, name.length / 3) ? best.known : undefined
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
