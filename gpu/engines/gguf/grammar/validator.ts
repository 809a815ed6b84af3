import type { Alternatives } from './alternatives.ts'
import { type Automata, formats } from './automata.ts'
import { accepts } from './automaton.ts'
import { equal, kindsOfFormat, unsupported, type ValueKind } from './keywords.ts'
import { isMultiple } from './multiples.ts'
import type { Budget } from './rules.ts'
import type { SchemaNode } from './schema.ts'

/** Checks exactly whether a value satisfies a schema, for values of `enum` and `const` with other keywords. */
export function openValidator({ read, of }: Alternatives, automata: Automata, budget: Budget) {
  const holds = (value: unknown, schemaNode: SchemaNode): boolean => {
    budget.steps(1)
    if (typeof schemaNode.schema === 'boolean') return schemaNode.schema
    // Refuses references that only lead to themselves, before they are followed.
    of(schemaNode)
    const { reference, allOf, anyOf, oneOf, ...own } = read(schemaNode)
    return (
      (own.kinds?.has(kindOf(value)) ?? true) &&
      (own.values?.some(one => equal(one, value)) ?? true) &&
      ownHolds(value, schemaNode) &&
      [...(reference ? [reference] : []), ...allOf].every(part => holds(value, part)) &&
      (anyOf?.some(part => holds(value, part)) ?? true) &&
      (!oneOf || oneOf.filter(part => holds(value, part)).length === 1)
    )
  }

  const ownHolds = (value: unknown, schemaNode: SchemaNode): boolean => {
    const { low, high, format, ...own } = read(schemaNode)
    if (format !== undefined && kindsOfFormat(format).includes(kindOf(value))) {
      // The pattern of a format leaves some values out: a match is certain, a mismatch is not.
      if (typeof value === 'string' && !accepts(automata.format({ name: format, schemaNode }), value))
        unsupported(
          schemaNode,
          'format',
          `it is not decided here whether ${JSON.stringify(value)} has the format '${format}'; leave the one or the other out`,
        )
      if (format === 'int32' && (value as number) !== ((value as number) | 0)) return false
    }
    if (typeof value === 'number')
      return (
        (!low || value > low.value || (value === low.value && !low.open)) &&
        (!high || value < high.value || (value === high.value && !high.open)) &&
        (own.step === undefined || isMultiple(value, own.step))
      )
    if (typeof value === 'string') {
      const length = Array.from(value).length
      if (length < (own.minLength ?? 0) || length > (own.maxLength ?? length)) return false
      return own.pattern === undefined || accepts(automata.pattern({ source: own.pattern, schemaNode }), value)
    }
    if (Array.isArray(value)) {
      if (value.length < (own.minItems ?? 0) || value.length > (own.maxItems ?? value.length)) return false
      return value.every((item, at) => {
        const schema = own.prefix[at] ?? own.items
        return !schema || holds(item, schema)
      })
    }
    if (typeof value !== 'object' || value === null) return true
    return (
      own.required.every(name => Object.hasOwn(value, name)) &&
      Object.entries(value).every(([name, entry]) => {
        const schema = own.properties?.get(name) ?? own.additional
        return !schema || holds(entry, schema)
      })
    )
  }
  return holds
}

export type Validator = ReturnType<typeof openValidator>

export function kindOf(value: unknown): ValueKind {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'fraction'
  return typeof value as 'boolean' | 'string' | 'object'
}

/** Whether the format is a known one, of strings or of numbers. */
export const isKnownFormat = (name: string): boolean =>
  Object.hasOwn(formats, name) || !kindsOfFormat(name).includes('string')
