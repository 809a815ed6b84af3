import { type Alternatives, keyOfPlaces } from './alternatives.ts'
import type { Automata } from './automata.ts'
import { acceptsNothing } from './automaton.ts'
import type { Budget } from './budget.ts'
import { type Holds, kindOf } from './holds.ts'
import { integerRange } from './integers.ts'
import type { Kind } from './keywords.ts'
import { furtherProperties, namesOf } from './objects.ts'
import type { Place } from './schema.ts'
import { type Shape, shapeOf } from './shape.ts'

/**
 * Whether it is certain that no value satisfies schemas together. What is not certain counts as possible: a `oneOf`
 * is kept to only where its branches are certain to be apart.
 */
export function openApart({ read, ofAll }: Alternatives, holds: Holds, automata: Automata, budget: Budget) {
  const known = new Map<string, boolean>()

  const impossible = (places: readonly Place[]): boolean => {
    const key = keyOfPlaces(places)
    const found = known.get(key)
    if (found !== undefined) return found
    budget.steps(places.length + 1)
    // Until it is known, and where it depends on itself: not certain.
    known.set(key, false)
    const result = ofAll(places).every(one => contradictory(one.places, shapeOf(one.places, read).kinds, undefined))
    known.set(key, result)
    return result
  }

  /** Whether no value of these kinds can be what all of the schemas say by themselves, with no other names. */
  const contradictory = (
    places: readonly Place[],
    kinds: ReadonlySet<Kind>,
    names: ReadonlySet<string> | undefined,
  ): boolean => {
    budget.steps(20)
    const shape = shapeOf(places, read)
    if (shape.values)
      return !shape.values.some(value => kinds.has(kindOf(value)) && places.every(place => holds(value, place)))
    return [...kinds].every(kind => !shape.kinds.has(kind) || noneOf(kind, shape, names))
  }

  const noneOf = (kind: Kind, shape: Shape, names: ReadonlySet<string> | undefined): boolean => {
    const { low, high } = shape
    if (kind === 'integer') {
      const range = integerRange(low, high)
      return range !== undefined && range.from > range.to
    }
    if (kind === 'fraction')
      return (
        low !== undefined &&
        high !== undefined &&
        (low.value > high.value || (low.value === high.value && (low.open || high.open)))
      )
    if (kind === 'string') return shape.minLength > shape.maxLength || noText(shape)
    if (kind === 'array') {
      const least = shape.minItems ?? 0
      const looked = Math.min(least, shape.prefixLength + 1)
      return least > shape.maxItems || Array.from({ length: looked }, (_, at) => shape.item(at)).some(impossible)
    }
    return (
      kind === 'object' &&
      [...shape.required].some(name => (names && !names.has(name)) || impossible(shape.property(name)))
    )
  }

  const noText = (shape: Shape): boolean => {
    const texts = automata.patternsOf(shape)
    return texts !== undefined && acceptsNothing(texts)
  }

  return {
    impossible,
    /** Whether no value that is generated for `places`, of these kinds, satisfies the other schema. */
    apart: (places: readonly Place[], shape: Shape, kinds: ReadonlySet<Kind>, other: Place): boolean => {
      const names = furtherProperties(shape) ? undefined : new Set(namesOf(shape))
      return ofAll([other]).every(one => contradictory([...new Set([...places, ...one.places])], kinds, names))
    },
  }
}

export type Apart = ReturnType<typeof openApart>
