import { digit } from './json.ts'
import type { Bound } from './keywords.ts'
import { repeat, type Sequence, set } from './rules.ts'

/**
 * Every JSON parser reads integers of up to 15 digits exactly, and decimal numbers with this many significant digits stay
 * distinct when they are read as binary numbers. Bounds of integers may be slightly larger.
 */
const exact = 15
const furthest = 10 ** exact - 1

/** Returns the integers between the bounds; undefined if the bounds are where integers are not exact. */
export function integerRange(low: Bound | undefined, high: Bound | undefined) {
  const lowest = low && (Number.isInteger(low.value) && low.open ? low.value + 1 : Math.ceil(low.value))
  const highest = high && (Number.isInteger(high.value) && high.open ? high.value - 1 : Math.floor(high.value))
  const from = lowest === undefined ? Math.min(-furthest, highest ?? 0) : Math.max(lowest, Number.MIN_SAFE_INTEGER)
  const to = highest === undefined ? Math.max(furthest, lowest ?? 0) : Math.min(highest, Number.MAX_SAFE_INTEGER)
  // A lower bound above the exact range, or an upper bound below it, leaves no number that can be written exactly.
  if ((lowest ?? 0) > Number.MAX_SAFE_INTEGER || (highest ?? 0) < Number.MIN_SAFE_INTEGER) return undefined
  return { from, to }
}

const prefixed = (text: string, sequences: readonly Sequence[]): Sequence[] =>
  sequences.map(sequence => [text, ...sequence])

/** Returns the decimal forms of the integers from `from` to `to`, each once. */
export const integers = (from: number, to: number): Sequence[] => [
  ...(from < 0 ? prefixed('-', positive(Math.max(1, -to), -from)) : []),
  ...(from <= 0 && to >= 0 ? [['0']] : []),
  ...positive(Math.max(1, from), to),
]

/** The same for numbers from 1: those of one length, or of all lengths of which every number is meant. */
function positive(from: number, to: number): Sequence[] {
  if (from > to) return []
  const { length } = String(from)
  const longest = 10 ** length - 1
  if (to > longest && from === 10 ** (length - 1)) {
    const whole = String(to + 1).length - 1
    return [[set('19'), repeat(digit, length - 1, whole - 1)], ...positive(10 ** whole, to)]
  }
  const [low, high] = [from, Math.min(to, longest)].map(number => ({ digits: String(number), open: false }))
  return [...digitsBetween(low, high, length, length), ...positive(longest + 1, to)]
}

/** A bound as digits after a point, with or without zeros at the end. */
interface Fraction {
  digits: string
  /** Whether the bound itself is excluded. */
  open: boolean
}

/** Returns `least` to `most` digits that, as digits after a point, are between the bounds. */
function digitsBetween(low: Fraction | undefined, high: Fraction | undefined, least: number, most: number): Sequence[] {
  if (most < least) return []
  const [from, to] = [lowBound(low), highBound(high, most)]
  if (!from && !to) return [[repeat(digit, least, most)]]
  const result: Sequence[] = []
  // Ending here is as if zeros followed.
  if (least === 0 && !from && (to?.digits !== '' || !to.open)) result.push([])
  if (most === 0 || to?.digits === '') return result
  const [first, last] = [Number(from?.digits[0] ?? 0), Number(to?.digits[0] ?? 9)]
  if (first > last) return result
  const [above, below] = [lowBound(afterFirst(from)), highBound(afterFirst(to), most - 1)]
  const rest = Math.max(0, least - 1)
  if (from && to && first === last)
    return [...result, ...prefixed(String(first), digitsBetween(above, below, rest, most - 1))]
  const [start, end] = [above ? first + 1 : first, below ? last - 1 : last]
  if (above) result.push(...prefixed(String(first), digitsBetween(above, undefined, rest, most - 1)))
  if (start <= end) result.push([set(`${start}${end}`), repeat(digit, rest, most - 1)])
  if (below) result.push(...prefixed(String(last), digitsBetween(undefined, below, rest, most - 1)))
  return result
}

/** The bound, if it excludes any digits. */
const lowBound = (low: Fraction | undefined) => (low && (low.open || /[^0]/.test(low.digits)) ? low : undefined)
const highBound = (high: Fraction | undefined, most: number) =>
  high && (high.open || high.digits.length < most || /[^9]/.test(high.digits)) ? high : undefined
const afterFirst = (bound: Fraction | undefined) => bound && { ...bound, digits: bound.digits.slice(1) }

interface Decimal extends Fraction {
  whole: number
}

/**
 * Returns the decimal forms, without exponents, of the numbers between two bounds, one of which may be missing. Each
 * form has at most 15 digits on either side of the point. A form within closed bounds is also within them when it is
 * read as a binary number, because reading keeps the order. Next to an open bound, forms have so few digits that none is
 * read as the bound itself. Undefined for bounds of more than 15 digits, for which this does not hold.
 */
export function decimals(low: Bound | undefined, high: Bound | undefined): Sequence[] | undefined {
  const from = low ?? { value: Math.min(-furthest, high?.value ?? 0), open: false }
  const to = high ?? { value: Math.max(furthest, low?.value ?? 0), open: false }
  const [lowest, highest] = [magnitude(from), magnitude(to)]
  if (!lowest || !highest) return undefined
  const opens = [lowest, highest].filter(({ open }) => open)
  const places = Math.min(exact, ...opens.map(({ whole }) => exact - String(whole).length))
  if (opens.some(({ digits }) => digits.length > places)) return undefined
  if (from.value > to.value) return []
  const zero: Decimal = { whole: 0, digits: '', open: false }
  return [
    ...(from.value < 0
      ? prefixed('-', magnitudes(to.value < 0 ? highest : { ...zero, open: true }, lowest, places))
      : []),
    ...(to.value >= 0 ? magnitudes(from.value < 0 ? zero : lowest, highest, places) : []),
  ]
}

function magnitude({ value, open }: Bound): Decimal | undefined {
  const [whole, digits = ''] = plain(Math.abs(value)).split('.')
  const significant = `${whole}${digits}`.replace(/^0+/, '')
  return significant.length > exact || digits.length > exact ? undefined : { whole: Number(whole), digits, open }
}

/** Returns the shortest decimal form of this number, without an exponent. */
export function plain(value: number): string {
  const [digits = '', exponent] = String(value).split('e')
  if (exponent === undefined) return digits
  const [whole = '', fraction = ''] = digits.split('.')
  const shift = Number(exponent)
  return shift > 0
    ? (whole + fraction).padEnd(whole.length + shift, '0')
    : `0.${'0'.repeat(-shift - 1)}${whole}${fraction}`
}

function magnitudes(low: Decimal, high: Decimal, places: number): Sequence[] {
  const at = (whole: number, from?: Fraction, to?: Fraction) => prefixed(String(whole), fractions(from, to, places))
  if (low.whole === high.whole) return at(low.whole, low, high)
  const anyFraction = fractions(undefined, undefined, places)
  const between = integers(low.whole + 1, high.whole - 1)
  return [
    ...at(low.whole, low),
    ...between.flatMap(whole => anyFraction.map(fraction => [...whole, ...fraction])),
    ...at(high.whole, undefined, high),
  ]
}

/** Returns what may follow an integer so that the fraction is between the two: nothing, or a point and digits. */
function fractions(low: Fraction | undefined, high: Fraction | undefined, places: number): Sequence[] {
  // Without any digits the fraction is zero.
  const mayBeZero = !lowBound(low) && (!high || high.digits !== '' || !high.open)
  return [...(mayBeZero ? [[]] : []), ...prefixed('.', digitsBetween(low, high, 1, places))]
}
