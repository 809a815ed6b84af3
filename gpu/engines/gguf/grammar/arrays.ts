import { closing, comma, gap } from './json.ts'
import { type GrammarRules, maxRepetitions, repeat, rule, type Sequence, textPart } from './rules.ts'
import type { SchemaNode } from './schema.ts'
import type { SchemaShape } from './shape.ts'

export interface ArrayParts {
  shape: SchemaShape
  /** Identifies the shape. */
  key: string
  rules: GrammarRules
  /** Returns the rule of values that satisfy all the schemas. */
  node: (schemaNodes: readonly SchemaNode[]) => string
}

/**
 * Returns how many items generated arrays have. After `prefixItems`, JSON Schema by default allows any further items,
 * and arrays that end early. Authors of such a schema mean a tuple, so a tuple is generated, unless `items` or
 * `minItems` say otherwise.
 */
function lengthsOf(shape: SchemaShape): { min: number; max: number } {
  const { prefixLength, itemsGiven, maxItems } = shape
  const min = shape.minItems ?? Math.min(prefixLength, maxItems)
  return { min, max: prefixLength > 0 && !itemsGiven ? Math.min(maxItems, Math.max(prefixLength, min)) : maxItems }
}

/** Writes the arrays of a shape. Throws Failure `unsupported_parameter` for bounds that llama.cpp cannot count to. */
export function arrayOf({ shape, key, rules, node }: ArrayParts): Sequence[] {
  const { min, max } = lengthsOf(shape)
  for (const keyword of ['minItems', 'maxItems'] as const) {
    const bound = shape[keyword]
    if (bound === undefined || bound === Number.POSITIVE_INFINITY || bound <= maxRepetitions) continue
    const { document, path } = shape.with(keyword)
    document.unsupported(`${path}.${keyword}`, `it is more than ${maxRepetitions}`)
  }
  const prefix = shape.prefixLength
  const item = (at: number) => rule(node(shape.item(at)))

  /** What may follow `at` items, where `at` is at least 1. */
  const from = (at: number): Sequence => {
    if (at >= max) return closing(']')
    if (at >= prefix) {
      const more = rules.once(`${key} more`, 'more', () => [[...comma, item(prefix)]])
      return [repeat(rule(more), Math.max(0, min - at), max - at), ...closing(']')]
    }
    if (at < min) return [...comma, item(at), ...from(at + 1)]
    return [rule(rules.once(`${key} item ${at}`, 'items', () => [[...comma, item(at), ...from(at + 1)], closing(']')]))]
  }

  return [
    ...(min === 0 ? [[textPart('['), gap, textPart(']')]] : []),
    ...(max > 0 && min <= max ? [[textPart('['), gap, item(0), ...from(1)]] : []),
  ]
}
