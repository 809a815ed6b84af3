import type { Llama } from 'node-llama-cpp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runSteps } from '../../../../../core/time-slice.ts'
import { openGrammar } from '../../../../../gpu/engines/gguf/grammar/grammar.ts'
import { openLlama, openMatcher, origin, schemaGrammar } from './_grammar.ts'

let llama: Llama
beforeAll(async () => {
  llama = await openLlama()
})
afterAll(() => llama.dispose())

/** The grammar of a schema that only describes, and what it leaves out. */
function loosened(schema: unknown): { grammar: string; leftOut: string[] } {
  const grammar = openGrammar()
  const { rule, leftOut } = runSteps(grammar.looseRule(schema, origin))
  return { grammar: runSteps(grammar.text(rule)), leftOut }
}

const field = (schema: unknown, more: object = {}) => ({
  type: 'object',
  properties: { a: schema },
  required: ['a'],
  ...more,
})
const text = '{"a": "x"}'

const leftOut: [what: string, schema: object, paths: string[], matches: string, misses?: string][] = [
  ['a format', field({ type: 'string', format: 'uri' }), ['a.format'], text, '{"a": 1}'],
  ['a format of another maker', field({ type: 'integer', format: 'uint8' }), ['a.format'], '{"a": 1}', text],
  ['a step of many cases', field({ type: 'number', multipleOf: 4999 }), ['a.multipleOf'], '{"a": 1}', text],
  ['uniqueItems', field({ type: 'array', uniqueItems: true }), ['a.uniqueItems'], '{"a": [1, 1]}', text],
  ['contains', field({ type: 'array', contains: {} }), ['a.contains'], '{"a": []}', text],
  ['minProperties', field({ type: 'object', minProperties: 1 }), ['a.minProperties'], '{"a": {}}', text],
  ['not', field({ type: 'string', not: { const: 'x' } }), ['a.not'], text, '{"a": 1}'],
  ['if', field({ type: 'string', if: {}, else: {} }), ['a.if', 'a.else'], text, '{"a": 1}'],
  ['propertyNames', field({ type: 'object', propertyNames: {} }), ['a.propertyNames'], '{"a": {"b": 1}}', text],
  ['a lookahead', field({ type: 'string', pattern: '^(?!y).*$' }), ['a.pattern'], text, '{"a": 1}'],
  ['a class of Unicode', field({ type: 'string', pattern: '^\\p{L}+$' }), ['a.pattern'], text],
  ['a back reference', field({ type: 'string', pattern: '^(a)\\1$' }), ['a.pattern'], text],
  [
    'a broken pattern, keeping the length',
    field({ type: 'string', pattern: '(', maxLength: 1 }),
    ['a.pattern'],
    text,
    '{"a": "xy"}',
  ],
  ['a reference to nowhere', field({ $ref: '#/$defs/none' }), ['a.$ref'], '{"a": [1]}'],
  ['a reference to the web', field({ $ref: 'https://example.com/x' }), ['a.$ref'], text],
  ['a schema that is its own', field({ allOf: [{ $ref: '#/properties/a' }] }), ['a'], text],
  ['a step of nothing', field({ type: 'integer', multipleOf: 0 }), ['a.multipleOf'], '{"a": 1}', text],
  ['an unknown type', field({ type: 'text' }), ['a.type'], text],
  ['a property that is no schema', field('string'), ['a'], text],
  ['null for a keyword', field({ type: 'string', format: null }), ['a.format'], text],
  ['required of draft 3', field({ type: 'string', required: true }), ['a.required'], text],
  [
    'bounds of draft 4',
    field({ type: 'integer', minimum: 1, exclusiveMinimum: true }),
    ['a.exclusiveMinimum'],
    '{"a": 1}',
    '{"a": 0}',
  ],
  ['long strings', field({ type: 'string', maxLength: 2_000_000 }), ['a.maxLength'], text],
  [
    'branches that may both hold',
    field({ oneOf: [{ type: 'integer' }, { type: 'number' }] }),
    ['a.oneOf'],
    '{"a": 1.5}',
    text,
  ],
  [
    'all of several at once',
    { type: 'object', properties: { a: { type: 'string', format: 'iri' }, b: { not: {} } }, required: ['a', 'b'] },
    ['b.not', 'a.format'],
    '{"a": "x", "b": 1}',
    '{"a": 1, "b": 1}',
  ],
]
test.each(leftOut)('leaves out %s', async (_what, schema, paths, matches, misses) => {
  const { grammar, leftOut } = loosened(schema)
  expect(leftOut.toSorted()).toEqual(paths.map(path => `schema.properties.${path}`).toSorted())
  const accepts = await openMatcher(llama, grammar)
  expect(accepts(matches)).toBe(true)
  if (misses !== undefined) expect(accepts(misses)).toBe(false)
})

test('names that only patternProperties would allow are not refused', async () => {
  const { grammar, leftOut } = loosened({
    type: 'object',
    patternProperties: { '^x': { type: 'string' } },
    additionalProperties: false,
  })
  expect(leftOut).toEqual(['schema.patternProperties'])
  expect((await openMatcher(llama, grammar))('{"xy": "z"}')).toBe(true)
})

const hopeless: [what: string, schema: unknown][] = [
  ['no schema', 5],
  ['contradictions', { type: 'object', properties: { a: { enum: [] } }, required: ['a'] }],
  ['an infinite object', { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }],
  [
    'more parts than any grammar',
    { type: 'object', properties: Object.fromEntries(Array.from({ length: 6000 }, (_, at) => [`p${at}`, {}])) },
  ],
  ['a reference to itself', { $ref: '#' }],
]
test.each(hopeless)('%s is any object', async (_what, schema) => {
  const { grammar, leftOut } = loosened(schema)
  expect(leftOut).toEqual(['schema'])
  expect((await openMatcher(llama, grammar))('{"b": [1]}')).toBe(true)
})

test('a schema that failed leaves the others of the grammar as they are', async () => {
  const alone = schemaGrammar(field({ type: 'string', pattern: '^x+$' }), origin)
  const grammar = openGrammar()
  runSteps(grammar.looseRule(field({ type: 'string', pattern: '^x+(?=y)$', format: 'none' }), origin))
  runSteps(grammar.looseRule({ $ref: '#' }, origin))
  const rule = runSteps(grammar.rule(field({ type: 'string', pattern: '^x+$' }), origin))
  const accepts = await openMatcher(llama, runSteps(grammar.text(rule)))
  const same = await openMatcher(llama, alone)
  for (const value of ['{"a": "xx"}', '{"a": ""}', '{"a": "xy"}', '{}']) expect(accepts(value)).toBe(same(value))
})

describe('keywords that demand nothing', () => {
  test.each([
    [{ type: 'string', 'x-order': 1, discriminator: { propertyName: 'kind' }, example: 'x' }, '"x"', '1'],
    [{ type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png', $anchor: 'a' }, '"x"', '1'],
    [{ type: 'string', nullable: true }, 'null', '1'],
    [{ type: 'string', nullable: false }, '"x"', 'null'],
    [{ type: 'array', items: [{ type: 'integer' }, { type: 'string' }], additionalItems: false }, '[1, "x"]', '["x"]'],
  ])('%j', async (schema, matches, misses) => {
    const accepts = await openMatcher(llama, schemaGrammar(schema, origin))
    expect([accepts(matches), accepts(misses)]).toEqual([true, false])
    expect(loosened(schema).leftOut).toEqual([])
  })
})
