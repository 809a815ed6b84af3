import fc from 'fast-check'
import { expect, test } from 'vitest'
import { argumentsOf } from '../../core/dialects/chat-terms.ts'
import { Failure } from '../../core/failure.ts'
import { boundedJsonOf, parseBoundedJson } from '../../core/json.ts'

const bounds = { depth: 8, keys: 20 }
const parse = (text: string | Buffer) => parseBoundedJson(Buffer.from(text), bounds)
const refusal = (text: string | Buffer) => {
  try {
    parse(text)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure)
    return (thrown as Failure).message
  }
  throw new Error('was taken')
}

test('within the bounds the result equals that of JSON.parse', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6, noUnicodeString: false }), value => {
      const text = JSON.stringify(value)
      const keys = (text.match(/"(?:[^"\\]|\\.)*":/g) ?? []).length
      fc.pre(keys <= bounds.keys)
      expect(parse(text)).toEqual(JSON.parse(text))
    }),
    { numRuns: 500 },
  )
})

test('an empty body is an empty object', () => expect(parse('')).toEqual({}))
test('depth is counted before parsing', () => expect(refusal('['.repeat(200_000))).toContain('deeper than 8'))
test('members are counted before parsing', () =>
  expect(refusal(`{${Array.from({ length: 21 }, (_, i) => `"k${i}":1`).join()}}`)).toContain('more than 20'))
test('brackets and colons inside strings are not counted', () =>
  expect(parse(JSON.stringify({ a: `${'[{:'.repeat(50)}\\"` }))).toEqual({ a: `${'[{:'.repeat(50)}\\"` }))
test('a quote or a backslash anywhere in a string does not change where it ends', () => {
  for (let length = 0; length < 140; length++)
    for (const inside of ['"', '\\', '\\"', '\\\\', '""', '"x\\']) {
      const value = ['x'.repeat(length) + inside + '[{'.repeat(20), '"']
      expect(parse(JSON.stringify(value))).toEqual(value)
    }
})
test('an unterminated string is refused', () => expect(refusal('{"a":"bc\\"')).toContain('not valid JSON'))
test('bytes that are not UTF-8 are harmless', () =>
  expect(refusal(Buffer.from([0x7b, 0xff, 0xfe]))).toContain('not valid JSON'))
test('own __proto__ members stay data', () => {
  const value = parse('{"__proto__":{"polluted":true}}') as Record<string, unknown>
  expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  expect(Object.hasOwn(value, '__proto__')).toBe(true)
})

test('a text inside a request that nests too deep has no value; arguments of a tool call become one text', () => {
  const nested = (levels: number) => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  expect(boundedJsonOf(nested(500))).toEqual(JSON.parse(nested(500)))
  expect(boundedJsonOf(nested(501))).toBeUndefined()
  expect(boundedJsonOf('')).toBeUndefined()
  expect(argumentsOf('')).toEqual({})
  expect(argumentsOf(nested(100_000))).toEqual({ arguments: nested(100_000) })
})
