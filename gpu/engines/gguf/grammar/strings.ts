import { type Automaton, automatonOf, bothOf, withLength } from './automaton.ts'
import { formats } from './formats.ts'
import type { Json } from './json.ts'
import { NotSimple, parsePattern } from './pattern.ts'
import { mostRepetitions, type Part, type Rules, repeat, rule, type Sequence, set, text } from './rules.ts'
import type { Place } from './schema.ts'
import type { Shape } from './shape.ts'
import { spell } from './spell.ts'

const longest = 1_000_000
/** Characters that are repeated as one, where there are more of them than llama.cpp repeats anything. */
const piece = 1000

/** The automaton of a pattern. Throws Failure that names the keyword when it is none or not simple enough. */
export const patternAutomaton = ({ source, place }: Shape['patterns'][number]): Automaton =>
  simple(place, 'pattern', () => automatonOf(parsePattern(source)))

const formatAutomata = new Map<string, Automaton>()

/** The automaton of a format. Throws Failure `unsupported_parameter` for one that is not known here. */
export function formatAutomaton({ name, place }: Shape['formats'][number]): Automaton {
  if (!Object.hasOwn(formats, name)) refuseFormat(name, place)
  const automaton = formatAutomata.get(name) ?? automatonOf(parsePattern(formats[name]!))
  formatAutomata.set(name, automaton)
  return automaton
}

export function refuseFormat(name: string, { document, path }: Place): never {
  const known = Object.keys(formats).join(', ')
  return document.unsupported(`${path}.format`, `the format '${name}' of strings is not among ${known}`)
}

function simple<T>({ document, path }: Place, keyword: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    const where = `${path}.${keyword}`
    if (error instanceof NotSimple) document.unsupported(where, `the pattern is not simple enough, ${error.message}`)
    if (error instanceof SyntaxError) document.invalid(where, `is no regular expression: ${error.message}`)
    throw error
  }
}

/** The strings of a shape. Throws Failure that names the keyword for what cannot be kept to. */
export function stringOf(shape: Shape, rules: Rules, json: Json): Sequence[] {
  const { minLength, maxLength } = shape
  if (minLength > maxLength) return []
  const machines = [...shape.patterns.map(patternAutomaton), ...shape.formats.map(formatAutomaton)]
  const [first, ...others] = machines
  if (!first) {
    if (minLength === 0 && maxLength === Number.POSITIVE_INFINITY) return [[rule(json.string())]]
    return [[text('"'), ...repeated(rule(json.character()), minLength, maxLength, shape, rules), text('"')]]
  }
  const keyword = shape.patterns.length ? 'pattern' : 'format'
  const whole = simple(shape.with(keyword), keyword, () => {
    const all = others.reduce(bothOf, first)
    return minLength > 0 || maxLength < Number.POSITIVE_INFINITY ? withLength(all, minLength, maxLength) : all
  })
  return [[text('"'), ...spell(whole, rules, 'text', [text('"')])]]
}

/** From `min` to `max` characters; `max` may be Infinity. */
function repeated(character: Part, min: number, max: number, shape: Shape, rules: Rules): Sequence {
  const bounded = max < Number.POSITIVE_INFINITY
  for (const [keyword, length] of [
    ['minLength', min],
    ['maxLength', bounded ? max : 0],
  ] as const)
    if (length > longest) {
      const { document, path } = shape.with(keyword)
      document.unsupported(`${path}.${keyword}`, `it is more than ${longest}`)
    }
  if ((bounded ? max : min) <= mostRepetitions) return [repeat(character, min, max)]
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
