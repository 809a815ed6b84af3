import { type Alternative, keyOfAlternative, keyOfSchemas, openAlternatives } from './alternatives.ts'
import { openAutomata, refuseFormat } from './automata.ts'
import { openDisjointness } from './disjointness.ts'
import { closing, comma, gap, type Json } from './json.ts'
import { higher, lower, meantKinds, type SchemaShape, shapeOf, unsupported, type ValueKind } from './keywords.ts'
import { decimals, integerRange, integers } from './numbers.ts'
import { objectOf } from './objects.ts'
import { type Budget, type GrammarRules, maxRepetitions, repeat, type Sequence } from './rules.ts'
import type { RuleOf } from './schema.ts'
import { spell, stringOf } from './strings.ts'
import { isKnownFormat, openValidator } from './validator.ts'

/** A way to write values: those of one kind, or the listed ones. */
interface Way {
  kind: ValueKind | 'value'
  key: string
  make: () => Sequence[]
}

const int32 = { value: 2 ** 31, open: true }

/** Converts schemas to rules. The function returns the rule of values that satisfy all of the schemas. */
export function openCompiler(rules: GrammarRules, json: Json, budget: Budget): RuleOf {
  const alternatives = openAlternatives(budget)
  const automata = openAutomata(budget)
  const { read, ofAll } = alternatives
  const holds = openValidator(alternatives, automata, budget)
  const { apart } = openDisjointness(alternatives, holds, automata, budget)

  const node: RuleOf = schemaNodes => {
    const all = ofAll(schemaNodes)
    if (all.length === 1 && all[0]!.schemaNodes.length === 0 && all[0]!.excluded.length === 0) return json.value()
    // References to the same schema share one rule, so that objects that begin with them have the same beginning.
    return rules.once(`schemas ${all.map(keyOfAlternative).join('|')}`, 'schema', () => {
      const ways = all.flatMap(waysOf)
      const alone = (kind: ValueKind | 'value') => ways.filter(way => way.kind === kind).length === 1
      return ways.flatMap(({ kind, key, make }) =>
        // Several objects or arrays are written inline, so that they share their common beginning.
        (kind === 'object' || kind === 'array' || kind === 'string') && alone(kind)
          ? [[rules.once(key, kind, make)]]
          : make(),
      )
    })
  }

  const waysOf = (alternative: Alternative): Way[] => {
    const { schemaNodes, excluded } = alternative
    const shape = shapeOf(schemaNodes, read)
    for (const { name, schemaNode } of shape.formats) if (!isKnownFormat(name)) refuseFormat(name, schemaNode)
    const key = keyOfSchemas(schemaNodes)
    if (shape.values) {
      const values = shape.values.filter(
        value =>
          schemaNodes.every(schemaNode => holds(value, schemaNode)) && !excluded.some(other => holds(value, other)),
      )
      return [{ kind: 'value', key, make: () => values.map(value => [JSON.stringify(value)]) }]
    }
    const meant = meantKinds(shape)
    const wanted = [...meant].filter(kind => shape.kinds.has(kind) && !(kind === 'integer' && meant.has('fraction')))
    for (const other of excluded)
      if (!apart(schemaNodes, shape, meant, other)) {
        const { leftOut } = other.document
        // Of a schema that only describes, the branches are read as those of anyOf.
        if (leftOut) leftOut.add(other.path.replace(/\[\d+\]$/, ''))
        else
          other.document.unsupported(
            other.path,
            'it is not certain that what satisfies another branch of the oneOf does not satisfy this one; ' +
              'tell them apart by a required property with a const, or use anyOf',
          )
      }
    return wanted.map(kind => ({ kind, key: `${kind} ${key}`, make: () => kindOf(kind, shape, `${kind} ${key}`) }))
  }

  const kindOf = (kind: ValueKind, shape: SchemaShape, key: string): Sequence[] => {
    if (kind === 'null') return [['null']]
    if (kind === 'boolean') return [['true'], ['false']]
    if (kind === 'string') return stringOf(shape, rules, json, automata)
    if (kind === 'array') return arrayOf(shape, key, rules, node)
    if (kind === 'object') return objectOf(shape, key, rules, json, node)
    const narrow = shape.formats.some(({ name }) => name === 'int32')
    const low = narrow ? higher(shape.low, { value: -int32.value, open: false }) : shape.low
    const high = narrow ? lower(shape.high, int32) : shape.high
    if (shape.steps.length === 0 && kind === 'fraction' && !low && !high) return [[json.number()]]
    const forms = (kind === 'integer' ? integersOf(low, high) : decimals(low, high)) ?? tooFar(shape)
    return shape.steps.length > 0 ? [[spell(automata.multiplesOf(shape, forms), rules, 'number', [])]] : forms
  }

  const integersOf = (low: SchemaShape['low'], high: SchemaShape['high']): Sequence[] | undefined => {
    const range = integerRange(low, high)
    return range && integers(range.from, range.to)
  }

  const tooFar = (shape: SchemaShape): never => {
    const keyword = ['minimum', 'exclusiveMinimum', 'maximum', 'exclusiveMaximum'].find(one =>
      Object.hasOwn(shape.with(one).schema as object, one),
    )!
    return unsupported(shape.with(keyword), keyword, 'a bound of a number has more than 15 digits')
  }

  return node
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
function arrayOf(shape: SchemaShape, key: string, rules: GrammarRules, node: RuleOf): Sequence[] {
  const { min, max } = lengthsOf(shape)
  for (const keyword of ['minItems', 'maxItems'] as const) {
    const bound = shape[keyword]
    if (bound !== undefined && bound !== Number.POSITIVE_INFINITY && bound > maxRepetitions)
      unsupported(shape.with(keyword), keyword, `it is more than ${maxRepetitions}`)
  }
  const prefix = shape.prefixLength
  const item = (at: number) => node(shape.item(at))

  /** What may follow `at` items, where `at` is at least 1. */
  const from = (at: number): Sequence => {
    if (at >= max) return closing(']')
    if (at >= prefix) {
      const more = rules.once(`${key} more`, 'more', () => [[...comma, item(prefix)]])
      return [repeat(more, Math.max(0, min - at), max - at), ...closing(']')]
    }
    if (at < min) return [...comma, item(at), ...from(at + 1)]
    return [rules.once(`${key} item ${at}`, 'items', () => [[...comma, item(at), ...from(at + 1)], closing(']')])]
  }

  return [...(min === 0 ? [['[', gap, ']']] : []), ...(max > 0 && min <= max ? [['[', gap, item(0), ...from(1)]] : [])]
}
