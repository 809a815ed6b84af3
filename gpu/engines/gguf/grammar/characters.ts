/** Sorted, disjoint ranges of code points, both ends included. */
export type Ranges = readonly (readonly [low: number, high: number])[]

/** The highest code point, and the range of UTF-16 surrogates, which are no characters. */
const highest = 0x10ffff
export const everything: Ranges = [
  [0, 0xd7ff],
  [0xe000, highest],
]

/** Ranges as pairs of first and last character: `characters('09', 'af')`. */
export const characters = (...pairs: string[]): Ranges =>
  union(
    pairs.map(pair => {
      const [first, last = first] = Array.from(pair, character => character.codePointAt(0)!)
      return [first!, last!] as const
    }),
  )

/** Returns ranges, in any order and possibly overlapping, as sorted and disjoint ones. */
export function union(ranges: Ranges): Ranges {
  const merged: [number, number][] = []
  for (const [low, high] of ranges.toSorted(([a], [b]) => a - b)) {
    const last = merged.at(-1)
    if (last && low <= last[1] + 1) last[1] = Math.max(last[1], high)
    else merged.push([low, high])
  }
  return merged
}

export function intersection(left: Ranges, right: Ranges): Ranges {
  const both: [number, number][] = []
  for (let a = 0, b = 0; a < left.length && b < right.length; ) {
    const low = Math.max(left[a]![0], right[b]![0])
    const high = Math.min(left[a]![1], right[b]![1])
    if (low <= high) both.push([low, high])
    if (left[a]![1] < right[b]![1]) a++
    else b++
  }
  return both
}

/** Returns all characters that are not in the ranges. */
export function complement(ranges: Ranges): Ranges {
  const outside: [number, number][] = []
  let next = 0
  for (const [low, high] of union(ranges)) {
    if (low > next) outside.push([next, low - 1])
    next = high + 1
  }
  if (next <= highest) outside.push([next, highest])
  return intersection(outside, everything)
}

export const difference = (left: Ranges, right: Ranges): Ranges => intersection(left, complement(right))
