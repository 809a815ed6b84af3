import { characters, difference, everything } from './characters.ts'
import {
  type GrammarPart,
  type GrammarRules,
  type Ranges,
  repeat,
  rule,
  type Sequence,
  set,
  textPart,
} from './rules.ts'

/** The characters that a JSON string may have unescaped. */
export const plainCharacters: Ranges = difference(everything, characters('\u0000\u001f', '"', '\\'))
export const digit: Ranges = characters('09')
const hexDigit = characters('09', 'AF', 'af')

/** After `{`, `[` and `,` and before `}` and `]`: nothing, a space or a line break. More could be endless. */
export const gap: GrammarPart = repeat(set(characters('\n', ' ')), 0, 1)
export const colon: Sequence = [textPart(':'), repeat(set(characters(' ')), 0, 1)]
export const comma: Sequence = [textPart(','), gap]
export const closing = (bracket: '}' | ']'): Sequence => [gap, textPart(bracket)]

/**
 * The rules for any JSON, created on first use. Strings may use every escape except single surrogates. Numbers
 * have at most 16 digits before and after the point and two in the exponent: with more they could be read as infinite.
 */
export function openJson(rules: GrammarRules) {
  const character = () =>
    rules.once('json character', 'character', () => [[set(plainCharacters)], [textPart('\\'), rule(escape())]])

  const escape = () =>
    rules.once('json escape', 'escape', () => {
      const hex = set(hexDigit)
      const d = set(characters('D', 'd'))
      const secondHalf: Sequence = [textPart('\\u'), d, set(characters('CF', 'cf')), hex, hex]
      return [
        [set(characters('"', '\\', '/', 'b', 'f', 'n', 'r', 't'))],
        [textPart('u'), set(difference(hexDigit, characters('D', 'd'))), hex, hex, hex],
        [textPart('u'), d, set(characters('07')), hex, hex],
        [textPart('u'), d, set(characters('89', 'AB', 'ab')), hex, hex, ...secondHalf],
      ]
    })

  const string = () =>
    rules.once('json string', 'string', () => [
      [textPart('"'), repeat(rule(character()), 0, Number.POSITIVE_INFINITY), textPart('"')],
    ])

  const number = () =>
    rules.once('json number', 'number', () => {
      const whole = rules.define('number-whole', [[textPart('0')], [set(characters('19')), repeat(set(digit), 0, 15)]])
      const fraction = rules.define('number-fraction', [[textPart('.'), repeat(set(digit), 1, 16)]])
      const exponent = rules.define('number-exponent', [
        [set(characters('E', 'e')), repeat(set(characters('+', '-')), 0, 1), repeat(set(digit), 1, 2)],
      ])
      const unsigned: Sequence = [rule(whole), repeat(rule(fraction), 0, 1), repeat(rule(exponent), 0, 1)]
      return [[textPart('-'), ...unsigned], unsigned]
    })

  const array = (): string =>
    rules.once('json array', 'array', () => {
      const more = rules.define('array-item', [[...comma, rule(value())]])
      return [
        [textPart('['), gap, textPart(']')],
        [textPart('['), gap, rule(value()), repeat(rule(more), 0, Number.POSITIVE_INFINITY), ...closing(']')],
      ]
    })

  const object = (): string =>
    rules.once('json object', 'object', () => {
      const member: Sequence = [rule(string()), ...colon, rule(value())]
      const more = rules.define('object-member', [[...comma, ...member]])
      return [
        [textPart('{'), gap, textPart('}')],
        [textPart('{'), gap, ...member, repeat(rule(more), 0, Number.POSITIVE_INFINITY), ...closing('}')],
      ]
    })

  const value = (): string =>
    rules.once('json value', 'value', () => [
      [rule(object())],
      [rule(array())],
      [rule(string())],
      [rule(number())],
      [textPart('true')],
      [textPart('false')],
      [textPart('null')],
    ])

  return { character, string, number, value, array, object }
}

export type Json = ReturnType<typeof openJson>
