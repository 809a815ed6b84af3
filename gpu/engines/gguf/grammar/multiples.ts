import { type Automaton, automatonOf, bothOf, explore, smallest } from './automaton.ts'
import { characters } from './characters.ts'
import { plain } from './numbers.ts'
import { NotSimple, type Pattern } from './pattern.ts'
import type { GrammarPart, Sequence } from './rules.ts'

/** A place in a decimal form, with the remainder of its digits divided by the step. */
interface Place {
  at: 'start' | 'minus' | 'zero' | 'whole' | 'fraction'
  rest: number
  /** Digits after the point. */
  places: number
}
const begin: Place = { at: 'start', rest: 0, places: 0 }

const exactDigits = 15

/**
 * Returns those of the decimal forms of numbers that are multiples of each step, exactly as they are written. Throws
 * NotSimple for a step of too many digits, or if the automaton would be too large.
 */
export const multiplesAmong = (forms: readonly Sequence[], steps: readonly number[]): Automaton =>
  steps.map(step => smallest(multiples(step))).reduce(bothOf, automatonOf(patternOf(forms)))

/** Whether a number is a multiple of the step, both as they are written. */
export function isMultiple(value: number, step: number): boolean {
  const [a, b] = [digitsOf(value), digitsOf(step)]
  const places = Math.max(a.places, b.places)
  const scaled = ({ digits, places: own }: { digits: bigint; places: number }) => digits * 10n ** BigInt(places - own)
  return scaled(a) % scaled(b) === 0n
}

/** The decimal forms without exponents of all multiples of a step. */
function multiples(step: number): Automaton {
  const { digits: divisor, places: most } = digitsOf(step)
  if (String(divisor).length > exactDigits) throw new NotSimple(`the step has more than ${exactDigits} digits`)
  /** Whether digits of this remainder, with so many more zeros, are a multiple. */
  const ends = (rest: number, zeros: number) => (BigInt(rest) * 10n ** BigInt(zeros)) % divisor === 0n
  const digits = (from: number, { at, rest, places }: Place) =>
    Array.from({ length: 10 - from }, (_, more) => {
      const value = from + more
      const to: Place = { at, rest: Number((BigInt(rest) * 10n + BigInt(value)) % divisor), places }
      return { over: characters(String(value)), to }
    })
  const first = [
    { over: characters('0'), to: { ...begin, at: 'zero' } as Place },
    ...digits(1, { ...begin, at: 'whole' }),
  ]

  return explore<Place>(begin, {
    keyOf: ({ at, rest, places }) => `${at} ${rest} ${places}`,
    ends: ({ at, rest, places }) =>
      at === 'zero' || (at === 'whole' && ends(rest, most)) || (places > 0 && ends(rest, most - places)),
    movesOf(place) {
      const point = most > 0 ? [{ over: characters('.'), to: { ...place, at: 'fraction' } as Place }] : []
      if (place.at === 'start') return [{ over: characters('-'), to: { ...begin, at: 'minus' } }, ...first]
      if (place.at === 'minus') return first
      if (place.at === 'zero') return point
      if (place.at === 'whole') return [...digits(0, place), ...point]
      return place.places < most ? digits(0, { ...place, places: place.places + 1 }) : []
    },
  })
}

/** A number as an integer and a power of ten: 0.25 is 25 with two places. */
function digitsOf(value: number): { digits: bigint; places: number } {
  const [whole = '', fraction = ''] = plain(Math.abs(value)).split('.')
  return { digits: BigInt(whole + fraction), places: fraction.length }
}

function patternOf(forms: readonly Sequence[]): Pattern {
  return { kind: 'any', parts: forms.map(form => ({ kind: 'all', parts: form.map(partOf) })) }
}

function partOf(part: GrammarPart): Pattern {
  if (typeof part === 'string')
    return { kind: 'all', parts: Array.from(part, one => ({ kind: 'one', of: characters(one) })) }
  if (part.kind === 'set') return { kind: 'one', of: part.set }
  if (part.kind === 'repeat') return { ...part, of: partOf(part.of) }
  throw new Error('The decimal forms of numbers have no rules.')
}
