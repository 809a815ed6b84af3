import type { Automata } from './automata.ts'
import type { Json } from './json.ts'
import { type GrammarPart, type GrammarRules, maxRepetitions, repeat, rule, type Sequence, textPart } from './rules.ts'
import type { SchemaShape } from './shape.ts'
import { spell } from './spell.ts'

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
