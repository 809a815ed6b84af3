import type { Automata } from './automata.ts'
import type { Automaton } from './automaton.ts'
import { characters, intersection } from './characters.ts'
import { type Json, plainCharacters } from './json.ts'
import type { SchemaShape } from './keywords.ts'
import {
  type GrammarPart,
  type GrammarRules,
  maxRepetitions,
  type Ranges,
  repeat,
  rule,
  type Sequence,
  set,
  textPart,
} from './rules.ts'

const longest = 1_000_000
/** Characters per repeated group, for lengths above the maximum repetition of llama.cpp. */
const piece = 1000

/** Writes the strings of a shape. Throws Failure that names a keyword that cannot be satisfied. */
export function stringOf(shape: SchemaShape, rules: GrammarRules, json: Json, automata: Automata): Sequence[] {
  const { minLength, maxLength } = shape
  if (minLength > maxLength) return []
  const whole = automata.stringsOf(shape)
  if (whole) return [[textPart('"'), ...spell(whole, rules, 'text', [textPart('"')])]]
  if (minLength === 0 && maxLength === Number.POSITIVE_INFINITY) return [[rule(json.string())]]
  return [[textPart('"'), ...repeated(rule(json.character()), minLength, maxLength, shape, rules), textPart('"')]]
}

/** Writes `min` to `max` characters; `max` may be Infinity. */
function repeated(character: GrammarPart, min: number, max: number, shape: SchemaShape, rules: GrammarRules): Sequence {
  const bounded = max < Number.POSITIVE_INFINITY
  for (const [keyword, length] of [
    ['minLength', min],
    ['maxLength', bounded ? max : 0],
  ] as const)
    if (length > longest) {
      const { document, path } = shape.with(keyword)
      document.unsupported(`${path}.${keyword}`, `it is more than ${longest}`)
    }
  if ((bounded ? max : min) <= maxRepetitions) return [repeat(character, min, max)]
  const block = rule(rules.once('piece', 'characters', () => [[repeat(character, piece, piece)]]))
  const exactly = (count: number): Sequence => [
    ...(count >= piece ? [repeat(block, Math.floor(count / piece), Math.floor(count / piece))] : []),
    ...(count % piece ? [repeat(character, count % piece, count % piece)] : []),
  ]
  if (!bounded) return [...exactly(min), repeat(character, 0, max)]
  const [blocks, rest] = [Math.floor((max - min) / piece), (max - min) % piece]
  const upTo = rules.define('up-to', [
    ...(blocks > 0 ? [[repeat(block, 0, blocks - 1), repeat(character, 0, piece - 1)]] : []),
    [...(blocks > 0 ? [repeat(block, blocks, blocks)] : []), repeat(character, 0, rest)],
  ])
  return [...exactly(min), rule(upTo)]
}

interface Step {
  part: GrammarPart
  to: number
}

/**
 * Writes the texts of an automaton in JSON: each character in one way only, escaped if necessary, and `end` after the
 * last one. Creates a rule for each state, except those that only lead from one state to one other.
 */
export function spell(automaton: Automaton, rules: GrammarRules, hint: string, end: Sequence): Sequence {
  const steps = automaton.map(({ moves }) =>
    moves.flatMap(({ over, to }) => spellings(over, rules).map(part => ({ part, to }))),
  )
  const arrivals = automaton.map(() => 0)
  for (const { to } of steps.flat()) arrivals[to]!++
  arrivals[0]!++

  const names = new Map<number, string>()
  const pending: number[] = []
  const nameOf = (state: number): string => {
    const known = names.get(state)
    if (known !== undefined) return known
    const name = rules.reserve(hint)
    rules.distinct.add(name)
    names.set(state, name)
    pending.push(state)
    return name
  }
  /** Returns the step and those after it, as long as there is only one way to continue. */
  const along = (first: Step): Sequence => {
    const parts = [first.part]
    for (let at = first.to; ; ) {
      const [only, ...others] = steps[at]!
      const { ends } = automaton[at]!
      if (arrivals[at] !== 1 || others.length > 0 || (only && ends)) return [...parts, rule(nameOf(at))]
      if (!only) return [...parts, ...end]
      parts.push(only.part)
      at = only.to
    }
  }

  const start = rule(nameOf(0))
  for (let at = pending.pop(); at !== undefined; at = pending.pop())
    rules.fill(nameOf(at), [...steps[at]!.map(along), ...(automaton[at]!.ends ? [end] : [])])
  return [start]
}

/** Returns a set of characters as JSON writes them in strings. */
function spellings(over: Ranges, rules: GrammarRules): GrammarPart[] {
  const plain = intersection(over, plainCharacters)
  const others = intersection(over, mustBeEscaped)
  const escaped = () =>
    rules.once(`escaped ${others.join()}`, 'escaped', () =>
      others.flatMap(([low, high]) =>
        Array.from({ length: high - low + 1 }, (_, at) => [
          textPart(JSON.stringify(String.fromCodePoint(low + at)).slice(1, -1)),
        ]),
      ),
    )
  return [...(plain.length ? [set(plain)] : []), ...(others.length ? [rule(escaped())] : [])]
}

const mustBeEscaped = characters('\u0000\u001f', '"', '\\')
