import { describe, expect, test } from 'vitest'
import { Condition, ConditionFault, conditionFault, holds } from '../../../core/dag/condition.ts'
import { loadPatterns } from '../../../core/pattern.ts'

const values: Record<string, unknown> = {
  label: 'cat',
  score: 0.7,
  text: '0.7',
  tags: ['a', 'b'],
  none: null,
  n: [1, { k: 2 }],
}
const read = (value: unknown) => {
  if (typeof value !== 'string' || !value.startsWith('$')) return value
  if (!Object.hasOwn(values, value.slice(1))) throw new Error(`${value} does not exist`)
  return values[value.slice(1)]
}
const find = (value: unknown) => (typeof value === 'string' && value.startsWith('$') ? values[value.slice(1)] : value)
const pattern = await loadPatterns()
const check = (condition: object) => holds(Condition.parse(condition), { read, find, pattern })

test.for<[title: string, condition: object, holds: boolean]>([
  ['an equal text', { value: '$label', equals: 'cat' }, true],
  ['another text', { value: '$label', equals: 'Cat' }, false],
  ['a number is not equal to its text', { value: '$score', equals: '0.7' }, false],
  ['an equal list', { value: '$n', equals: [1, { k: 2 }] }, true],
  ['null is equal to null', { value: '$none', equals: null }, true],
  ['one of several', { value: '$label', in: ['dog', 'cat'] }, true],
  ['none of several', { value: '$label', in: ['dog'] }, false],
  ['a part of a text', { value: '$label', contains: 'at' }, true],
  ['a member of a list', { value: '$tags', contains: 'b' }, true],
  ['a part of a member is no member', { value: '$tags', contains: '' }, false],
  ['nothing is in null', { value: '$none', contains: 'a' }, false],
  ['a part of a text that matches', { value: '$label', matches: '^c.t$' }, true],
  ['a text that does not match', { value: '$label', matches: '^a' }, false],
  ['nothing matches in null', { value: '$none', matches: '' }, false],
  ['a smaller number', { value: '$score', less_than: 1 }, true],
  ['an equal number is not smaller', { value: '$score', less_than: 0.7 }, false],
  ['a text that is a number', { value: '$text', greater_than: 0.5 }, true],
  ['a text before another', { value: '2026-01', less_than: '2026-02' }, true],
  ['the other side may be a reference', { value: 0.5, less_than: '$score' }, true],
  ['a value that is there', { value: '$label', exists: true }, true],
  ['null is not there', { value: '$none', exists: true }, false],
  ['what does not exist is not there', { value: '$missing', exists: false }, true],
  ['not', { not: { value: '$label', equals: 'cat' } }, false],
  [
    'all',
    {
      all: [
        { value: '$label', equals: 'cat' },
        { value: '$score', less_than: 0.5 },
      ],
    },
    false,
  ],
  [
    'any',
    {
      any: [
        { value: '$label', equals: 'dog' },
        { value: '$score', greater_than: 0.5 },
      ],
    },
    true,
  ],
  ['all of nothing', { all: [] }, true],
  ['any of nothing', { any: [] }, false],
  [
    'what follows a false one is not read',
    {
      all: [
        { value: '$missing', exists: true },
        { value: '$missing', equals: 1 },
      ],
    },
    false,
  ],
])('%s', ([, condition, expected]) => {
  expect(check(condition)).toBe(expected)
})

describe('a value that cannot be tested', () => {
  test.for<[condition: object, message: string]>([
    [{ value: '$label', less_than: 1 }, '"cat" is not a number, so it cannot be compared.'],
    [{ value: '$score', matches: 'a' }, "'matches' looks at texts, not at 0.7."],
    [
      { value: 'a'.repeat(20_000), matches: 'a' },
      "'matches' looks at texts of up to 16384 characters, and this one has 20000. Refer to a smaller part.",
    ],
    [
      { value: 'a'.repeat(16_000), matches: '(ab?){400}' },
      'A text of 16000 characters is too long for this pattern. Refer to a smaller part, or use text/extract before.',
    ],
    [
      { value: Array.from({ length: 10_001 }, () => 0), contains: 1 },
      "'contains' looks at lists of up to 10000 items, and this one has 10001.",
    ],
    [{ value: '', less_than: 1 }, '"" is not a number, so it cannot be compared.'],
    [
      { value: '$score', contains: 'a' },
      "'contains' looks for a text in a text, or for a value in a list, not in 0.7.",
    ],
  ])('%j: %s', ([condition, message]) => {
    expect(() => check(condition)).toThrow(new ConditionFault(message))
  })

  test('a value that does not exist is an error, not a false condition', () => {
    expect(() => check({ value: '$missing', equals: 1 })).toThrow('$missing does not exist')
  })
})

const nested = (depth: number): object => (depth === 0 ? { value: 1, equals: 1 } : { not: nested(depth - 1) })
test.for<[condition: object, fault: string | undefined]>([
  [{ value: 1, equals: 1 }, undefined],
  [
    { value: 1 },
    'when: it tests nothing. Add one of equals, in, contains, matches, less_than, greater_than, exists, not, all, any',
  ],
  [
    {},
    'when: it tests nothing. Add one of equals, in, contains, matches, less_than, greater_than, exists, not, all, any',
  ],
  [{ equals: 1 }, "when: 'equals' has no 'value' to test"],
  [{ value: 1, equals: 1, in: [1] }, "when: 'equals' and 'in' stand side by side; use 'all'"],
  [{ value: 1, not: { value: 1, equals: 1 } }, "when: 'value' has no meaning beside 'not'"],
  [{ all: [{ value: 1, equals: 1 }, { any: [{ equals: 2 }] }] }, "when.all[1].any[0]: 'equals' has no 'value' to test"],
  [nested(7), undefined],
  [nested(8), `when${'.not'.repeat(8)}: conditions are nested more than 8 deep`],
  [
    { all: Array.from({ length: 64 }, () => ({ value: 1, equals: 1 })) },
    'when.all[63]: a node has more than 64 conditions',
  ],
])('%j: %s', ([condition, expected]) => {
  const found = conditionFault(Condition.parse(condition))
  expect(found && `${found.place}: ${found.message}`).toBe(expected)
})
