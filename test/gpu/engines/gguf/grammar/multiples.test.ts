import type { Llama } from 'node-llama-cpp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isMultiple } from '../../../../../gpu/engines/gguf/grammar/multiples.ts'
import { openLlama, openMatcher, origin, schemaGrammar } from './_grammar.ts'

let llama: Llama
beforeAll(async () => {
  llama = await openLlama()
})
afterAll(() => llama.dispose())

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at)

test.each([
  [{ multipleOf: 7 }],
  [{ multipleOf: 7, minimum: -20, maximum: 50 }],
  [{ multipleOf: 10, exclusiveMinimum: 0 }],
  [{ multipleOf: 1 }],
  [{ multipleOf: 250, maximum: 1000 }],
  [{ allOf: [{ multipleOf: 4 }, { multipleOf: 6 }] }],
  [{ multipleOf: 0.5 }],
])('integers: %j', async schema => {
  const matches = await openMatcher(llama, schemaGrammar({ type: 'integer', ...schema }, origin))
  const steps = ('allOf' in schema ? schema.allOf : [schema]).map(({ multipleOf }) => multipleOf)
  const { minimum = -1e9, maximum = 1e9, exclusiveMinimum = -1e9 } = schema as Record<string, number>
  for (const value of range(-120, 1300))
    expect([value, matches(String(value))]).toEqual([
      value,
      steps.every(step => value % step === 0) && minimum <= value && value <= maximum && exclusiveMinimum < value,
    ])
})

test.each([
  [
    { multipleOf: 0.01 },
    ['0', '1', '0.01', '-0.01', '12.5', '12.50', '12345.67'],
    ['0.001', '0.125', '1e2', '-0', '.5'],
  ],
  [{ multipleOf: 0.25 }, ['0.25', '0.5', '0.50', '1.75', '-3', '100'], ['0.2', '0.75001', '0.1', '1.7']],
  [{ multipleOf: 5 }, ['0', '5', '-15', '1000'], ['5.0', '1', '2.5']],
  [{ multipleOf: 0.3, minimum: 0.5, maximum: 2 }, ['0.6', '1.8', '1.5'], ['0.3', '2.1', '0.5', '2']],
])('numbers: %j', async (schema, yes, no) => {
  const matches = await openMatcher(llama, schemaGrammar({ type: 'number', ...schema }, origin))
  expect(yes.filter(value => !matches(value))).toEqual([])
  expect(no.filter(matches)).toEqual([])
})

test('a step of many cases is refused with its name', () => {
  expect(() => schemaGrammar({ type: 'integer', multipleOf: 997 }, origin)).toThrow(
    "The built-in engine cannot keep to 'schema.multipleOf': it is not simple enough, it has too many cases.",
  )
})

test('a value of an enum counts as it is written', async () => {
  const matches = await openMatcher(llama, schemaGrammar({ enum: [0.3, 0.35, 3, 'x'], multipleOf: 0.1 }, origin))
  expect(['0.3', '0.35', '3', '"x"'].map(matches)).toEqual([true, false, true, true])
})

test.each([
  [0.3, 0.1, true],
  [1e21, 1e20, true],
  [-7, 7, true],
  [0, 3, true],
  [1e-7, 1e-8, true],
  [1.1, 0.25, false],
])('%d is a multiple of %d: %s', (value, step, expected) => {
  expect(isMultiple(value, step)).toBe(expected)
})

const formats: [format: string, yes: string[], no: string[]][] = [
  [
    'ipv6',
    ['::', '::1', '2001:db8::8a2e:370:7334', '1:2:3:4:5:6:7:8', 'fe80::', '1::8', '1:2:3:4:5:6:7::'],
    ['', '1', ':1', '1:2:3:4:5:6:7:8:9', '::1::', 'g::', '1:2:3'],
  ],
  ['hostname', ['a', 'example.com', 'a-b.example'], ['', '-a', 'a-', 'a..b', 'a_b']],
  ['duration', ['P1D', 'PT5M', 'P1Y2M3DT4H5M6S', 'P4W', 'PT1S'], ['', 'P', 'PT', '1D', 'P1DT', 'P1W2D', 'P1S']],
]
test.each(formats)('the format %s', async (format, yes, no) => {
  const matches = await openMatcher(llama, schemaGrammar({ type: 'string', format }, origin))
  expect(yes.filter(value => !matches(`"${value}"`))).toEqual([])
  expect(no.filter(value => matches(`"${value}"`))).toEqual([])
})
