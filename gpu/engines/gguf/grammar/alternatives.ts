import { type Keywords, readKeywords } from './keywords.ts'
import type { Budget } from './rules.ts'
import type { SchemaNode } from './schema.ts'

/** One way to satisfy a schema: satisfy the own keywords of all `schemaNodes`, and none of `excluded`. */
export interface Alternative {
  schemaNodes: readonly SchemaNode[]
  /** The branches that were not chosen of each `oneOf`. */
  excluded: readonly SchemaNode[]
}

const deepest = 100

/**
 * Splits schemas into alternatives: `$ref` and `allOf` are conjunctions, `anyOf` and `oneOf` are choices. Multiplied
 * out, they leave alternatives of schemas of which only their own keywords count.
 */
export function openAlternatives(budget: Budget) {
  const keywords = new Map<SchemaNode, Keywords>()
  const known = new Map<SchemaNode, readonly Alternative[]>()
  const open = new Set<SchemaNode>()

  const read = (schemaNode: SchemaNode): Keywords => {
    const found = keywords.get(schemaNode) ?? readKeywords(schemaNode)
    keywords.set(schemaNode, found)
    budget.steps(1)
    return found
  }

  /** Throws Failure `invalid_value` for a schema that refers to itself before any object or array begins. */
  const of = (schemaNode: SchemaNode): readonly Alternative[] => {
    const found = known.get(schemaNode)
    if (found) return found
    if (open.has(schemaNode)) schemaNode.document.invalid(schemaNode.path, 'refers to itself with nothing in between')
    if (open.size >= deepest) schemaNode.document.invalid(schemaNode.path, `is nested more than ${deepest} deep`)
    open.add(schemaNode)
    const made = alternativesIn(schemaNode)
    open.delete(schemaNode)
    known.set(schemaNode, made)
    return made
  }

  const alternativesIn = (schemaNode: SchemaNode): readonly Alternative[] => {
    if (typeof schemaNode.schema === 'boolean') return schemaNode.schema ? [{ schemaNodes: [], excluded: [] }] : []
    const { reference, allOf, anyOf, oneOf, asserts } = read(schemaNode)
    let result: readonly Alternative[] = [{ schemaNodes: asserts ? [schemaNode] : [], excluded: [] }]
    for (const part of reference ? [reference, ...allOf] : allOf) result = both(result, of(part))
    if (anyOf) result = both(result, anyOf.flatMap(of))
    if (oneOf)
      result = both(
        result,
        oneOf.flatMap((branch, at) =>
          of(branch).map(({ schemaNodes, excluded }) => ({
            schemaNodes,
            // Compared by index: two branches may be the same schema, and then no value satisfies the `oneOf`.
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
          schemaNodes: [...new Set([...a.schemaNodes, ...b.schemaNodes])],
          excluded: [...new Set([...a.excluded, ...b.excluded])],
        })),
      ),
    )
  }

  /** Removes alternatives that are another one with further conditions. */
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
    /** Returns the alternatives for satisfying all of the schemas at once. */
    ofAll: (schemaNodes: readonly SchemaNode[]): readonly Alternative[] =>
      schemaNodes.map(of).reduce(both, [{ schemaNodes: [], excluded: [] }]),
  }
}

export type Alternatives = ReturnType<typeof openAlternatives>

const sizeOf = (alternatives: readonly Alternative[]): number =>
  Math.max(0, ...alternatives.map(({ schemaNodes, excluded }) => schemaNodes.length + excluded.length))
const ids = (schemaNodes: readonly SchemaNode[]) => schemaNodes.map(({ id }) => id).toSorted((a, b) => a - b)
export const keyOfAlternative = ({ schemaNodes, excluded }: Alternative) =>
  `${ids(schemaNodes).join()}-${ids(excluded).join()}`
const conditionsOf = ({ schemaNodes, excluded }: Alternative): ReadonlySet<string> =>
  new Set([...schemaNodes.map(({ id }) => `is ${id}`), ...excluded.map(({ id }) => `is not ${id}`)])
export const keyOfSchemas = (schemaNodes: readonly SchemaNode[]): string => ids([...new Set(schemaNodes)]).join()
