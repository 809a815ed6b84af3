/** The name that was meant, if one of those there are is written nearly so. */
export function nearest(name: string, names: Iterable<string>): string | undefined {
  let best: { known: string; far: number } | undefined
  for (const known of names) {
    const far = distance(name.toLowerCase(), known.toLowerCase())
    if (!best || far < best.far) best = { known, far }
  }
  return best && best.far <= Math.max(1, name.length / 3) ? best.known : undefined
}

/** How many letters must be put in, taken out or changed to get from one word to the other. */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at)
  for (let a = 1; a <= from.length; a++) {
    const next = [a]
    for (let b = 1; b <= to.length; b++)
      next[b] = Math.min(row[b]! + 1, next[b - 1]! + 1, row[b - 1]! + (from[a - 1] === to[b - 1] ? 0 : 1))
    row = next
  }
  return row[to.length]!
}
