import { characters } from './characters.ts'
import { anyDigits, unsigned } from './integers.ts'
import type { Bound } from './keywords.ts'
import { type Sequence, set, textPart } from './rules.ts'

/** Decimal numbers with this many significant digits stay distinct when they are read as binary numbers. */
const exact = 15
const furthest = 10 ** exact - 1

interface Decimal {
  whole: number
  /** Digits after the point without zeros at the end. */
  fraction: string
  open: boolean
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
  if (opens.some(({ fraction }) => fraction.length > places)) return undefined
  if (from.value > to.value) return []
  const zero: Decimal = { whole: 0, fraction: '', open: false }
  const negative = from.value < 0 ? magnitudes(to.value < 0 ? highest : { ...zero, open: true }, lowest, places) : []
  const positive = to.value >= 0 ? magnitudes(from.value < 0 ? zero : lowest, highest, places) : []
  return [...negative.map(sequence => [textPart('-'), ...sequence]), ...positive]
}

function magnitude({ value, open }: Bound): Decimal | undefined {
  const [whole, fraction = ''] = plain(Math.abs(value)).split('.')
  const digits = `${whole}${fraction}`.replace(/^0+/, '')
  if (digits.length > exact || fraction.length > exact) return undefined
  return { whole: Number(whole), fraction, open }
}

/** Returns the shortest decimal form of this number, without an exponent. */
function plain(value: number): string {
  const [digits = '', exponent] = String(value).split('e')
  if (exponent === undefined) return digits
  const [whole = '', fraction = ''] = digits.split('.')
  const shift = Number(exponent)
  return shift > 0
    ? (whole + fraction).padEnd(whole.length + shift, '0')
    : `0.${'0'.repeat(-shift - 1)}${whole}${fraction}`
}

function magnitudes(low: Decimal, high: Decimal, places: number): Sequence[] {
  if (low.whole === high.whole) return fractions(low, high, places).map(rest => [textPart(String(low.whole)), ...rest])
  const between = low.whole + 1 <= high.whole - 1 ? unsigned(low.whole + 1, high.whole - 1) : []
  return [
    ...fractions(low, undefined, places).map(rest => [textPart(String(low.whole)), ...rest]),
    ...between.flatMap(whole => anyFraction(whole, places)),
    ...fractions(undefined, high, places).map(rest => [textPart(String(high.whole)), ...rest]),
  ]
}

const anyFraction = (whole: Sequence, places: number): Sequence[] =>
  places > 0 ? [whole, [...whole, textPart('.'), ...anyDigits(1, places)]] : [whole]

/** Returns what may follow an integer so that the fraction is between the two: nothing, or a point and digits. */
function fractions(low: Decimal | undefined, high: Decimal | undefined, places: number): Sequence[] {
  const result: Sequence[] = []
  // Without any digits the fraction is zero.
  if ((!low || (low.fraction === '' && !low.open)) && (!high || high.fraction !== '' || !high.open)) result.push([])
  return [...result, ...digitsBetween(low, high, places, 1).map(digits => [textPart('.'), ...digits])]
}

interface Rest {
  fraction: string
  open: boolean
}

/** Returns `least` to `places` digits that, as digits after a point, are between the two. */
function digitsBetween(low: Rest | undefined, high: Rest | undefined, places: number, least = 0): Sequence[] {
  const bound = low && (low.fraction !== '' || low.open) ? low : undefined
  if (places < least) return []
  if (!bound && !high) return [anyDigits(least, places)]
  const result: Sequence[] = []
  // Ending here is as if zeros followed.
  if (least === 0 && !bound && (high?.fraction !== '' || !high.open)) result.push([])
  if (places === 0 || high?.fraction === '') return result
  const first = bound ? Number(bound.fraction[0] ?? 0) : 0
  const last = high ? Number(high.fraction[0] ?? 0) : 9
  if (first > last) return result
  const after = (rest: Rest | undefined): Rest | undefined =>
    rest && { fraction: rest.fraction.slice(1), open: rest.open }
  if (bound && high && first === last)
    return [
      ...result,
      ...digitsBetween(after(bound), after(high), places - 1).map(tail => [textPart(String(first)), ...tail]),
    ]
  if (bound)
    result.push(...digitsBetween(after(bound), undefined, places - 1).map(tail => [textPart(String(first)), ...tail]))
  const [start, end] = [bound ? first + 1 : first, high ? last - 1 : last]
  if (start <= end) result.push([set(characters(`${start}${end}`)), ...anyDigits(0, places - 1)])
  if (high)
    result.push(...digitsBetween(undefined, after(high), places - 1).map(tail => [textPart(String(last)), ...tail]))
  return result
}
