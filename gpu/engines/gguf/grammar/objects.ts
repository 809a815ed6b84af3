import { allBut } from './automaton.ts'
import { closing, colon, comma, gap, type Json } from './json.ts'
import type { SchemaShape } from './keywords.ts'
import { type GrammarRules, type RulePart, repeat, type Sequence } from './rules.ts'
import type { RuleOf, SchemaNode } from './schema.ts'
import { spell } from './strings.ts'

/**
 * Returns the schemas for undeclared properties of generated objects; undefined if there are none. By default JSON
 * Schema allows any further properties. A schema without declared properties keeps that default; authors of a schema
 * with declared ones mean only those.
 */
export const furtherProperties = ({ additional, propertiesGiven }: SchemaShape): readonly SchemaNode[] | undefined =>
  additional ?? (propertiesGiven ? undefined : [])

/** Returns all names that an object may or must have: declared ones in their order, then those only required. */
export const memberNames = ({ properties, required }: SchemaShape): string[] => [
  ...new Set([...properties, ...required]),
]

/**
 * Writes the objects of a shape: declared properties in their order, optional ones present or not, then further ones.
 * Each place between two properties is a rule, so that the grammar grows with the number of properties only.
 */
export function objectOf(shape: SchemaShape, key: string, rules: GrammarRules, json: Json, node: RuleOf): Sequence[] {
  const names = memberNames(shape)
  const further = furtherProperties(shape)
  if (names.length === 0 && further?.length === 0) return [[json.object()]]
  const required = names.map(name => shape.required.has(name))
  const lastRequired = required.lastIndexOf(true)
  const member = (at: number): Sequence => {
    const name = names[at]!
    return [JSON.stringify(name), ...colon, node(shape.property(name))]
  }

  /** What follows the decided properties before `at`: required properties inline, the rest as a rule. */
  const from = (at: number, first: boolean): Sequence => {
    if (required[at]) return [...(first ? [] : comma), ...member(at), ...from(at + 1, false)]
    if (at === names.length && !further) return first ? ['}'] : closing('}')
    return [rules.once(`${key} rest ${at} ${first}`, 'rest', () => restFrom(at, first))]
  }
  const restFrom = (at: number, first: boolean): Sequence[] => [
    [...(first ? [] : comma), nextFrom(at)],
    ...(at > lastRequired ? [first ? ['}'] : closing('}')] : []),
  ]
  /** One of the properties from `at` on and everything after it. */
  const nextFrom = (at: number): RulePart => {
    const next = rules.once(`${key} next ${at}`, 'next', () => {
      if (at < names.length) {
        const one: Sequence = [...member(at), ...from(at + 1, false)]
        return required[at] || (at + 1 === names.length && !further) ? [one] : [one, [nextFrom(at + 1)]]
      }
      const one = furtherMember()
      const more = rules.define('further-more', [[...comma, one]])
      return [[one, repeat(more), ...closing('}')]]
    })
    rules.distinct.add(next.rule)
    return next
  }
  const furtherMember = (): RulePart =>
    rules.once(`${key} further`, 'further', () => [
      ['"', spell(allBut(names), rules, 'name', ['"', ...colon, node(further!)])],
    ])

  return [['{', gap, ...from(0, true)]]
}
