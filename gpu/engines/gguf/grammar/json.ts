import { characters, difference, everything, type Ranges } from './characters.ts'
import {
  type GrammarPart,
  type GrammarRules,
  optional,
  type RulePart,
  repeat,
  type Sequence,
  set,
  setOf,
} from './rules.ts'

/** The characters that a JSON string must escape, and those that it may have unescaped. */
export const mustBeEscaped: Ranges = characters('\u0000\u001f', '"', '\\')
export const plainCharacters: Ranges = difference(everything, mustBeEscaped)
export const digit: GrammarPart = set('09')
const hexDigit = characters('09', 'AF', 'af')

/** After `{`, `[` and `,` and before `}` and `]`: nothing, a space or a line break. More could be endless. */
export const gap: GrammarPart = optional(set('\n', ' '))
export const colon: Sequence = [':', optional(set(' '))]
export const comma: Sequence = [',', gap]
export const closing = (bracket: '}' | ']'): Sequence => [gap, bracket]

/**
 * The rules for any JSON, created on first use. Strings may use every escape except single surrogates. Numbers
 * have at most 16 digits before and after the point and two in the exponent: with more they could be read as infinite.
 */
export function openJson({ once, define }: Pick<GrammarRules, 'once' | 'define'>) {
  const character = () => once('json character', 'character', () => [[setOf(plainCharacters)], ['\\', escape()]])

  const escape = () =>
    once('json escape', 'escape', () => {
      const [hex, d] = [setOf(hexDigit), set('D', 'd')]
      return [
        [set('"', '\\', '/', 'b', 'f', 'n', 'r', 't')],
        ['u', setOf(difference(hexDigit, characters('D', 'd'))), hex, hex, hex],
        ['u', d, set('07'), hex, hex],
        // Two halves of a surrogate pair.
        ['u', d, set('89', 'AB', 'ab'), hex, hex, '\\u', d, set('CF', 'cf'), hex, hex],
      ]
    })

  const string = () => once('json string', 'string', () => [['"', repeat(character()), '"']])

  const number = () =>
    once('json number', 'number', () => {
      const whole = define('number-whole', [['0'], [set('19'), repeat(digit, 0, 15)]])
      const fraction = define('number-fraction', [['.', repeat(digit, 1, 16)]])
      const exponent = define('number-exponent', [[set('E', 'e'), optional(set('+', '-')), repeat(digit, 1, 2)]])
      const unsigned: Sequence = [whole, optional(fraction), optional(exponent)]
      return [['-', ...unsigned], unsigned]
    })

  const array = (): RulePart =>
    once('json array', 'array', () => {
      const more = define('array-item', [[...comma, value()]])
      return [
        ['[', gap, ']'],
        ['[', gap, value(), repeat(more), ...closing(']')],
      ]
    })

  const object = (): RulePart =>
    once('json object', 'object', () => {
      const member: Sequence = [string(), ...colon, value()]
      const more = define('object-member', [[...comma, ...member]])
      return [
        ['{', gap, '}'],
        ['{', gap, ...member, repeat(more), ...closing('}')],
      ]
    })

  const value = (): RulePart =>
    once('json value', 'value', () => [[object()], [array()], [string()], [number()], ['true'], ['false'], ['null']])

  return { character, string, number, value, array, object }
}

export type Json = ReturnType<typeof openJson>
