import type { Budget } from './budget.ts'
import { type Keywords, readKeywords } from './keywords.ts'
import type { Place } from './schema.ts'

/** One way to satisfy a schema: everything that `places` say by themselves, and none of `excluded`. */
export interface Alternative {
  places: readonly Place[]
  /** The other branches of each `oneOf` that was decided. */
  excluded: readonly Place[]
}

const deepest = 100

/**
 * Takes schemas apart: `$ref` and `allOf` are conjunctions, `anyOf` and `oneOf` are choices, and multiplied out they
 * leave alternatives of schemas that are read for what they say by themselves.
 */
export function openAlternatives(budget: Budget) {
  const keywords = new Map<Place, Keywords>()
  const known = new Map<Place, readonly Alternative[]>()
  const open = new Set<Place>()

  const read = (place: Place): Keywords => {
    const found = keywords.get(place) ?? readKeywords(place)
    keywords.set(place, found)
    budget.steps(1)
    return found
  }

  /** Throws Failure `invalid_value` for a schema that is itself before any object or array begins. */
  const of = (place: Place): readonly Alternative[] => {
    const found = known.get(place)
    if (found) return found
    if (open.has(place)) place.document.invalid(place.path, 'refers to itself with nothing in between')
    if (open.size >= deepest) place.document.invalid(place.path, `is nested more than ${deepest} deep`)
    open.add(place)
    const made = takeApart(place)
    open.delete(place)
    known.set(place, made)
    return made
  }

  const takeApart = (place: Place): readonly Alternative[] => {
    if (typeof place.schema === 'boolean') return place.schema ? [{ places: [], excluded: [] }] : []
    const { reference, allOf, anyOf, oneOf, asserts } = read(place)
    let result: readonly Alternative[] = [{ places: asserts ? [place] : [], excluded: [] }]
    for (const part of reference ? [reference, ...allOf] : allOf) result = both(result, of(part))
    if (anyOf) result = both(result, anyOf.flatMap(of))
    if (oneOf)
      result = both(
        result,
        oneOf.flatMap((branch, at) =>
          of(branch).map(({ places, excluded }) => ({
            places,
            // By its number: two branches may be the same schema, which nothing satisfies then.
            excluded: [...excluded, ...oneOf.filter((_, other) => other !== at)],
          })),
        ),
      )
    return result
  }

  const both = (left: readonly Alternative[], right: readonly Alternative[]): Alternative[] => {
    budget.steps(left.length * right.length * (1 + sizeOf(left) + sizeOf(right)))
    return distinct(
      left.flatMap(a =>
        right.map(b => ({
          places: [...new Set([...a.places, ...b.places])],
          excluded: [...new Set([...a.excluded, ...b.excluded])],
        })),
      ),
    )
  }

  /** Without those that are another one with further conditions. */
  const distinct = (all: readonly Alternative[]): Alternative[] => {
    const byKey = [...new Map(all.map(one => [keyOfAlternative(one), one])).values()]
    budget.steps(byKey.length ** 2)
    const sets = byKey.map(conditionsOf)
    const contains = (whole: number, part: number) =>
      sets[part]!.size < sets[whole]!.size && [...sets[part]!].every(condition => sets[whole]!.has(condition))
    return byKey.filter((_, at) => !byKey.some((_other, part) => part !== at && contains(at, part)))
  }

  return {
    read,
    of,
    /** The alternatives of satisfying all of the schemas at once. */
    ofAll: (places: readonly Place[]): readonly Alternative[] =>
      places.map(of).reduce(both, [{ places: [], excluded: [] }]),
  }
}

export type Alternatives = ReturnType<typeof openAlternatives>

const sizeOf = (alternatives: readonly Alternative[]): number =>
  Math.max(0, ...alternatives.map(({ places, excluded }) => places.length + excluded.length))
const ids = (places: readonly Place[]) => places.map(({ id }) => id).toSorted((a, b) => a - b)
/** Tells alternatives apart. */
export const keyOfAlternative = ({ places, excluded }: Alternative) => `${ids(places).join()}-${ids(excluded).join()}`
const conditionsOf = ({ places, excluded }: Alternative): ReadonlySet<string> =>
  new Set([...places.map(({ id }) => `is ${id}`), ...excluded.map(({ id }) => `is not ${id}`)])
/** Tells conjunctions of schemas apart. */
export const keyOfPlaces = (places: readonly Place[]): string => ids([...new Set(places)]).join()
