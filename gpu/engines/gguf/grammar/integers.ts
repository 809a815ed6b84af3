import { characters } from './characters.ts'
import { digit } from './json.ts'
import type { Bound } from './keywords.ts'
import { repeat, type Sequence, set, textPart } from './rules.ts'

/** Every JSON parser reads integers of up to 15 digits exactly. Bounds may be slightly larger. */
const maxDigits = 15
const furthest = 10 ** maxDigits - 1

/** Returns the integers between the bounds; undefined if the bounds are where integers are not exact. */
export function integerRange(
  low: Bound | undefined,
  high: Bound | undefined,
): { from: number; to: number } | undefined {
  const lowest = low && (Number.isInteger(low.value) && low.open ? low.value + 1 : Math.ceil(low.value))
  const highest = high && (Number.isInteger(high.value) && high.open ? high.value - 1 : Math.floor(high.value))
  const from = lowest === undefined ? Math.min(-furthest, highest ?? 0) : Math.max(lowest, Number.MIN_SAFE_INTEGER)
  const to = highest === undefined ? Math.max(furthest, lowest ?? 0) : Math.min(highest, Number.MAX_SAFE_INTEGER)
  // A lower bound above the exact range, or an upper bound below it, leaves no number that can be written exactly.
  if ((lowest ?? 0) > Number.MAX_SAFE_INTEGER || (highest ?? 0) < Number.MIN_SAFE_INTEGER) return undefined
  return { from, to }
}

/** Returns the decimal forms of the integers from `from` to `to`, each once. */
export function integers(from: number, to: number): Sequence[] {
  if (from > to) return []
  const negative = from < 0 ? unsigned(Math.max(1, -to), -from) : []
  return [
    ...negative.map(sequence => [textPart('-'), ...sequence]),
    ...(to >= 0 ? unsigned(Math.max(0, from), to) : []),
  ]
}

/** The same for numbers from 0, by number of digits. */
export function unsigned(from: number, to: number): Sequence[] {
  const result: Sequence[] = []
  if (from === 0) result.push([textPart('0')])
  for (let digits = String(Math.max(from, 1)).length; digits <= String(to).length; digits++) {
    const low = Math.max(from, 10 ** (digits - 1))
    const high = Math.min(to, Number('9'.repeat(digits)))
    if (low > high) continue
    const whole = low === 10 ** (digits - 1) && high === Number('9'.repeat(digits)) && digits < String(to).length
    const until = whole ? Math.max(digits, fullLengths(to)) : digits
    if (whole) {
      result.push([set(characters('19')), repeat(set(digit), digits - 1, until - 1)])
      digits = until
    } else result.push(...between(String(low), String(high)))
  }
  return result
}

/** Returns the largest number of digits for which all numbers are at most `to`. */
const fullLengths = (to: number) => (/^9+$/.test(String(to)) ? String(to).length : String(to).length - 1)

/** Returns the digit strings from `low` to `high`, which have the same length. */
function between(low: string, high: string): Sequence[] {
  if (low === '') return [[]]
  const rest = low.length - 1
  const [first, last] = [Number(low[0]), Number(high[0])]
  if (first === last) return between(low.slice(1), high.slice(1)).map(tail => [textPart(low[0]!), ...tail])
  const lowOpen = /[^0]/.test(low.slice(1))
  const highOpen = /[^9]/.test(high.slice(1))
  const result: Sequence[] = []
  if (lowOpen) result.push(...between(low.slice(1), '9'.repeat(rest)).map(tail => [textPart(low[0]!), ...tail]))
  const [start, end] = [lowOpen ? first + 1 : first, highOpen ? last - 1 : last]
  if (start <= end) result.push([set(characters(`${start}${end}`)), ...anyDigits(rest, rest)])
  if (highOpen) result.push(...between('0'.repeat(rest), high.slice(1)).map(tail => [textPart(high[0]!), ...tail]))
  return result
}

export const anyDigits = (min: number, max: number): Sequence => (max > 0 ? [repeat(set(digit), min, max)] : [])
