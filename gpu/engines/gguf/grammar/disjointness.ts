import { type Alternatives, keyOfSchemas } from './alternatives.ts'
import type { Automata } from './automata.ts'
import { acceptsNothing } from './automaton.ts'
import { type SchemaShape, shapeOf, type ValueKind } from './keywords.ts'
import { integerRange } from './numbers.ts'
import { furtherProperties, memberNames } from './objects.ts'
import type { Budget } from './rules.ts'
import type { SchemaNode } from './schema.ts'
import { kindOf, type Validator } from './validator.ts'

/**
 * Decides whether it is certain that no value satisfies several schemas together. Uncertain cases count as possible: a
 * `oneOf` is supported only if its branches are certainly disjoint.
 */
export function openDisjointness({ read, ofAll }: Alternatives, holds: Validator, automata: Automata, budget: Budget) {
  const known = new Map<string, boolean>()

  const impossible = (schemaNodes: readonly SchemaNode[]): boolean => {
    const key = keyOfSchemas(schemaNodes)
    const found = known.get(key)
    if (found !== undefined) return found
    budget.steps(schemaNodes.length + 1)
    // Not certain until it is known, or if it depends on itself.
    known.set(key, false)
    const result = ofAll(schemaNodes).every(one =>
      contradictory(one.schemaNodes, shapeOf(one.schemaNodes, read).kinds, undefined),
    )
    known.set(key, result)
    return result
  }

  /** Whether no value of these kinds can satisfy the own keywords of all schemas, without other property names. */
  const contradictory = (
    schemaNodes: readonly SchemaNode[],
    kinds: ReadonlySet<ValueKind>,
    names: ReadonlySet<string> | undefined,
  ): boolean => {
    budget.steps(20)
    const shape = shapeOf(schemaNodes, read)
    if (shape.values)
      return !shape.values.some(
        value => kinds.has(kindOf(value)) && schemaNodes.every(schemaNode => holds(value, schemaNode)),
      )
    return [...kinds].every(kind => !shape.kinds.has(kind) || noneOf(kind, shape, names))
  }

  const noneOf = (kind: ValueKind, shape: SchemaShape, names: ReadonlySet<string> | undefined): boolean => {
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

  const noText = (shape: SchemaShape): boolean => {
    const texts = automata.patternsOf(shape)
    return texts !== undefined && acceptsNothing(texts)
  }

  return {
    impossible,
    /** Whether no value that is generated for `schemaNodes`, of these kinds, satisfies the other schema. */
    apart: (
      schemaNodes: readonly SchemaNode[],
      shape: SchemaShape,
      kinds: ReadonlySet<ValueKind>,
      other: SchemaNode,
    ): boolean => {
      const names = furtherProperties(shape) ? undefined : new Set(memberNames(shape))
      return ofAll([other]).every(one =>
        contradictory([...new Set([...schemaNodes, ...one.schemaNodes])], kinds, names),
      )
    },
  }
}
