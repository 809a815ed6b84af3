import { expect, test } from 'vitest'
import { Parameter } from '../../../core/dag/definition.ts'
import type { Failure } from '../../../core/failure.ts'
import { absentParameters, fillParameters } from '../../../core/workflows/parameters.ts'

const declared = Object.fromEntries(
  Object.entries({
    topic: { type: 'string' },
    n: { type: 'integer', default: 3, minimum: 1, maximum: 5 },
    style: { type: 'string', required: false, enum: ['dry', 'wild'] },
    picture: { type: 'image', required: false },
    weight: { type: 'number', required: false },
  }).map(([name, parameter]) => [name, Parameter.parse(parameter)]),
)

test.for<[title: string, given: Record<string, unknown>, filled: Record<string, unknown>]>([
  ['defaults are filled in', { topic: 'cats' }, { topic: 'cats', n: 3 }],
  [
    'what is given goes before',
    { topic: '', n: 1, style: 'dry', weight: 2 },
    { topic: '', n: 1, style: 'dry', weight: 2 },
  ],
  ['what a reference names without a declaration passes', { topic: 'x', more: [1] }, { topic: 'x', more: [1], n: 3 }],
])('%s', ([, given, filled]) => {
  expect(fillParameters(given, declared, new Set('more' in given ? ['more'] : []))).toEqual(filled)
})

test('an execution is repeated with the names that it had', () => {
  const before = { topic: 'x', old: 1 }
  expect(fillParameters(before, declared, new Set(), before)).toEqual({ ...before, n: 3 })
})

test.for<[title: string, given: Record<string, unknown>, code: string, message: string]>([
  ['a required one', {}, 'missing_required_parameter', "Missing required parameter: 'input_params.topic'."],
  ['another type', { topic: 3 }, 'invalid_type', "'input_params.topic' is of type integer; expected string."],
  [
    'a misspelt one',
    { topic: 'x', stlye: 'dry' },
    'unknown_parameter',
    "Unknown parameter: 'input_params.stlye'. Did you mean 'style'?",
  ],
  ['a fraction', { topic: 'x', n: 2.5 }, 'invalid_type', "'input_params.n' is of type number; expected integer."],
  ['too little', { topic: 'x', n: 0 }, 'invalid_value', "'input_params.n' must be 1 or more."],
  ['too much', { topic: 'x', n: 6 }, 'invalid_value', "'input_params.n' must be 5 or less."],
  [
    'none of these',
    { topic: 'x', style: 'odd' },
    'invalid_value',
    `'input_params.style' must be one of "dry", "wild".`,
  ],
  [
    'null where it is required',
    { topic: null },
    'invalid_type',
    "'input_params.topic' is of type null; expected string.",
  ],
  [
    'an object for a picture',
    { topic: 'x', picture: {} },
    'invalid_type',
    "'input_params.picture' is of type object; expected image.",
  ],
])('refused: %s', ([, given, code, message]) => {
  expect(() => fillParameters(given, declared, new Set())).toThrow(expect.objectContaining({ code, message }))
})

test('an optional parameter that is not given is known as absent', () => {
  expect(absentParameters({ topic: 'x', n: 3, weight: null }, declared)).toEqual(new Set(['style', 'picture']))
  expect(absentParameters({ topic: 'x' }, null)).toEqual(new Set())
})

test('without a declaration every used parameter is required, and all missing ones are reported', () => {
  expect(fillParameters({ a: 1 }, null, new Set(['a']))).toEqual({ a: 1 })
  let failure: Failure | undefined
  try {
    fillParameters({}, null, new Set(['a', 'b']))
  } catch (thrown) {
    failure = thrown as Failure
  }
  expect(failure?.details?.map(({ path }) => path)).toEqual(['input_params.a', 'input_params.b'])
})
