import type { Automata } from './automata.ts'
import type { Automaton } from './automaton.ts'
import { intersection, type Ranges } from './characters.ts'
import { type Json, mustBeEscaped, plainCharacters } from './json.ts'
import { type SchemaShape, unsupported } from './keywords.ts'
import {
  type GrammarPart,
  type GrammarRules,
  maxRepetitions,
  type RulePart,
  repeat,
  type Sequence,
  setOf,
} from './rules.ts'

const longest = 1_000_000
/** Characters per repeated group, for lengths above the maximum repetition of llama.cpp. */
const piece = 1000

/** Writes the strings of a shape. Throws Failure that names a keyword that cannot be satisfied. */
export function stringOf(shape: SchemaShape, rules: GrammarRules, json: Json, automata: Automata): Sequence[] {
  const { minLength, maxLength } = shape
  if (minLength > maxLength) return []
  const whole = automata.stringsOf(shape)
  if (whole) return [['"', spell(whole, rules, 'text', ['"'])]]
  if (minLength === 0 && maxLength === Number.POSITIVE_INFINITY) return [[json.string()]]
  return [['"', ...repeated(json.character(), minLength, maxLength, shape, rules), '"']]
}

/** Writes `min` to `max` characters; `max` may be Infinity. */
function repeated(character: GrammarPart, min: number, max: number, shape: SchemaShape, rules: GrammarRules): Sequence {
  const bounded = max < Number.POSITIVE_INFINITY
  for (const keyword of ['minLength', 'maxLength'] as const)
    if (shape[keyword] > longest && Number.isFinite(shape[keyword]))
      unsupported(shape.with(keyword), keyword, `it is more than ${longest}`)
  if ((bounded ? max : min) <= maxRepetitions) return [repeat(character, min, max)]
  const block = rules.once('piece', 'characters', () => [[repeat(character, piece, piece)]])
  const divided = (count: number) => [Math.floor(count / piece), count % piece] as const
  const [least, more] = divided(min)
  const exactly = [repeat(block, least, least), repeat(character, more, more)]
  if (!bounded) return [...exactly, repeat(character)]
  const [blocks, rest] = divided(max - min)
  const upTo = rules.define('up-to', [
    ...(blocks > 0 ? [[repeat(block, 0, blocks - 1), repeat(character, 0, piece - 1)]] : []),
    [repeat(block, blocks, blocks), repeat(character, 0, rest)],
  ])
  return [...exactly, upTo]
}

/**
 * Writes the texts of an automaton in JSON: each character in one way only, escaped if necessary, and `end` after the
 * last one. Creates a rule for each state, except those that only lead from one state to one other.
 */
export function spell(automaton: Automaton, rules: GrammarRules, hint: string, end: Sequence): RulePart {
  const steps = automaton.map(({ moves }) =>
    moves.flatMap(({ over, to }) => spellings(over, rules).map(part => ({ part, to }))),
  )
  const arrivals = automaton.map(() => 0)
  for (const { to } of steps.flat()) arrivals[to]!++
  arrivals[0]!++

  const known = new Map<number, RulePart>()
  const ruleOf = (state: number): RulePart => {
    const found = known.get(state)
    if (found) return found
    const rule = rules.reserve(hint)
    rules.distinct.add(rule)
    known.set(state, { kind: 'rule', rule })
    return { kind: 'rule', rule }
  }
  /** Returns the step and those after it, as long as there is only one way to continue. */
  const along = (first: (typeof steps)[number][number]): Sequence => {
    const parts = [first.part]
    for (let at = first.to; ; ) {
      const [only, ...others] = steps[at]!
      const { ends } = automaton[at]!
      if (arrivals[at] !== 1 || others.length > 0 || (only && ends)) return [...parts, ruleOf(at)]
      if (!only) return [...parts, ...end]
      parts.push(only.part)
      at = only.to
    }
  }

  const start = ruleOf(0)
  // Iteration over a Map includes entries that are added meanwhile.
  for (const [at, { rule }] of known)
    rules.fill(rule, [...steps[at]!.map(along), ...(automaton[at]!.ends ? [end] : [])])
  return start
}

/** Returns a set of characters as JSON writes them in strings. */
function spellings(over: Ranges, rules: GrammarRules): GrammarPart[] {
  const plain = intersection(over, plainCharacters)
  const others = intersection(over, mustBeEscaped)
  const escaped = () =>
    rules.once(`escaped ${others.join()}`, 'escaped', () =>
      others.flatMap(([low, high]) =>
        Array.from({ length: high - low + 1 }, (_, at) => [
          JSON.stringify(String.fromCodePoint(low + at)).slice(1, -1),
        ]),
      ),
    )
  return [...(plain.length ? [setOf(plain)] : []), ...(others.length ? [escaped()] : [])]
}
