import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { accepts, allBut, automatonOf, bothOf, withLength } from '../../../../../gpu/engines/gguf/grammar/automaton.ts'
import { NotSimple, parsePattern } from '../../../../../gpu/engines/gguf/grammar/pattern.ts'

const of = (source: string) => automatonOf(parsePattern(source))
/** Undefined for an expression that is refused, such as some that may match anywhere. */
const ofSimple = (source: string) => {
  try {
    return of(source)
  } catch (error) {
    if (error instanceof NotSimple) return undefined
    throw error
  }
}
const few = fc
  .array(fc.constantFrom(...Array.from('abAé😀0_ \n\t-."\\/^$\u2028')), { maxLength: 6 })
  .map(all => all.join(''))

/** Expressions with every supported construct. */
const { expression } = fc.letrec<{ expression: string; atom: string }>(tie => ({
  atom: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'nested' },
    fc.constantFrom(
      'a',
      'b',
      'é',
      '😀',
      '.',
      '\\.',
      '\\d',
      '\\w',
      '\\s',
      '\\D',
      '\\W',
      '\\S',
      '\\n',
      '\\u0061',
      '\\x41',
    ),
    fc.constantFrom(
      '[ab]',
      '[^ab]',
      '[a-z0-9]',
      '[\\s\\d]',
      '[^\\w-]',
      '[é😀]',
      '[-a]',
      '\\u{1f600}',
      '\\ud83d\\ude00',
      '[\\]\\\\^]',
    ),
    fc.tuple(fc.constantFrom('(', '(?:', '(?<n>'), tie('expression')).map(([open, inner]) => `${open}${inner})`),
  ),
  expression: fc
    .array(
      fc
        .array(fc.tuple(tie('atom'), fc.constantFrom('', '', '?', '*', '+', '{2}', '{1,}', '{0,2}', '*?', '{0}')), {
          maxLength: 3,
        })
        .map(parts => parts.flat().join('')),
      { minLength: 1, maxLength: 2 },
    )
    .map(all => all.join('|')),
}))

describe('the automaton of a pattern', () => {
  test('accepts what the regular expression matches', () => {
    fc.assert(
      fc.property(
        expression,
        fc.boolean(),
        fc.boolean(),
        fc.array(few, { minLength: 5 }),
        (inner, begun, ended, texts) => {
          const source = `${begun ? '^' : ''}${inner}${ended ? '$' : ''}`
          const names = source.match(/\(\?<n>/g) ?? []
          fc.pre(names.length < 2)
          const expected = new RegExp(source, 'u')
          const automaton = ofSimple(source)
          fc.pre(automaton !== undefined)
          for (const text of texts)
            expect([source, text, accepts(automaton, text)]).toEqual([source, text, expected.test(text)])
        },
      ),
      { numRuns: 300, interruptAfterTimeLimit: 20_000 },
    )
  })

  test('an intersection accepts what both accept, and within a length limit', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('^a', '[ab]+$', 'é|0'),
        fc.constantFrom('b', '^.{2,3}$', '^[^0]*$'),
        few,
        (one, other, text) => {
          const both = bothOf(of(one), of(other))
          const matches = new RegExp(one, 'u').test(text) && new RegExp(other, 'u').test(text)
          const length = Array.from(text).length
          expect(accepts(both, text)).toBe(matches)
          expect(accepts(withLength(both, 1, 3), text)).toBe(matches && length >= 1 && length <= 3)
          expect(accepts(withLength(both, 2, Number.POSITIVE_INFINITY), text)).toBe(matches && length >= 2)
        },
      ),
    )
  })

  test('the complement of some texts accepts all others', () => {
    fc.assert(
      fc.property(fc.uniqueArray(few, { maxLength: 5 }), few, (names, text) => {
        const automaton = allBut(names)
        expect([...names, text].map(one => accepts(automaton, one))).toEqual([
          ...names.map(() => false),
          !names.includes(text),
        ])
      }),
    )
  })
})
