import { allBut } from './automaton.ts'
import { closing, colon, comma, gap, type Json } from './json.ts'
import type { SchemaShape } from './keywords.ts'
import { type GrammarRules, repeat, rule, type Sequence, textPart } from './rules.ts'
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
  if (names.length === 0 && further?.length === 0) return [[rule(json.object())]]
  const required = names.map(name => shape.required.has(name))
  const lastRequired = required.lastIndexOf(true)
  const member = (at: number): Sequence => {
    const name = names[at]!
    return [textPart(JSON.stringify(name)), ...colon, rule(node(shape.property(name)))]
  }

  /** What follows the decided properties before `at`: required properties inline, the rest as a rule. */
  const from = (at: number, first: boolean): Sequence => {
    if (required[at]) return [...(first ? [] : comma), ...member(at), ...from(at + 1, false)]
    if (at === names.length && !further) return first ? [textPart('}')] : closing('}')
    return [rule(rules.once(`${key} rest ${at} ${first}`, 'rest', () => restFrom(at, first)))]
  }
  const restFrom = (at: number, first: boolean): Sequence[] => [
    [...(first ? [] : comma), rule(nextFrom(at))],
    ...(at > lastRequired ? [first ? [textPart('}')] : closing('}')] : []),
  ]
  /** One of the properties from `at` on and everything after it. */
  const nextFrom = (at: number): string => {
    const name = rules.once(`${key} next ${at}`, 'next', () => {
      if (at < names.length) {
        const one: Sequence = [...member(at), ...from(at + 1, false)]
        return required[at] || (at + 1 === names.length && !further) ? [one] : [one, [rule(nextFrom(at + 1))]]
      }
      const one = rule(furtherMember())
      const more = rules.define('further-more', [[...comma, one]])
      return [[one, repeat(rule(more), 0, Number.POSITIVE_INFINITY), ...closing('}')]]
    })
    rules.distinct.add(name)
    return name
  }
  const furtherMember = (): string =>
    rules.once(`${key} further`, 'further', () => {
      const end: Sequence = [textPart('"'), ...colon, rule(node(further!))]
      return [[textPart('"'), ...spell(allBut(names), rules, 'name', end)]]
    })

  return [[textPart('{'), gap, ...from(0, true)]]
}
