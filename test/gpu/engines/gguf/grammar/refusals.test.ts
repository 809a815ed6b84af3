import { expect, test } from 'vitest'
import { origin, refusal, schemaGrammar } from './_grammar.ts'

const inside = (schema: unknown) => ({ type: 'object', properties: { a: { type: 'array', items: schema } } })

/** Keywords of JSON Schema 2020-12 and older versions, and of OpenAPI, that grammars do not support. */
const unknown: [keyword: string, value: unknown][] = [
  ['not', {}],
  ['if', {}],
  ['then', {}],
  ['else', {}],
  ['uniqueItems', true],
  ['contains', {}],
  ['minContains', 1],
  ['maxContains', 1],
  ['minProperties', 1],
  ['maxProperties', 1],
  ['patternProperties', {}],
  ['propertyNames', {}],
  ['dependentRequired', {}],
  ['dependentSchemas', {}],
  ['dependencies', {}],
  ['unevaluatedItems', false],
  ['unevaluatedProperties', false],
  ['$dynamicRef', '#x'],
  ['$recursiveRef', '#'],
  ['$id', 'x'],
  ['typo', 1],
]
test.each(unknown)('%s is refused with its name and position', (keyword, value) => {
  const failure = refusal(inside({ type: 'string', [keyword]: value }))
  expect(failure).toMatchObject({ code: 'unsupported_parameter', status: 400, param: 'response_format' })
  expect(failure.message).toContain(`'schema.properties.a.items.${keyword}'`)
  expect(failure.message).toContain(`'${keyword}'`)
})

test('an unsupported keyword is named wherever it takes effect', () => {
  const not = { not: {} }
  const places: [unknown, string][] = [
    [{ $ref: '#/$defs/x', $defs: { x: not } }, 'schema.$defs.x.not'],
    [{ anyOf: [{}, { type: 'null' }, not] }, 'schema.anyOf[2].not'],
    [{ oneOf: [not] }, 'schema.oneOf[0].not'],
    [{ allOf: [{ type: 'array', prefixItems: [not] }] }, 'schema.allOf[0].prefixItems[0].not'],
    [{ additionalProperties: not }, 'schema.additionalProperties.not'],
    [{ oneOf: [{ const: 1 }, { properties: { a: not } }] }, 'schema.oneOf[1].properties.a.not'],
  ]
  expect(
    places.map(([schema, path]) => refusal(schema).message.includes(`'${path}'`) || refusal(schema).message),
  ).toEqual(places.map(() => true))
})

const unsupported: [what: string, schema: unknown, part: string][] = [
  ['an unknown format', { type: 'string', format: 'uri' }, "'schema.format': the format 'uri'"],
  ['an unknown format of numbers', { type: 'integer', format: 'uint8' }, "'schema.format': the format 'uint8'"],
  ['a remote reference', { $ref: 'https://example.com/x' }, "'schema.$ref': 'https://example.com/x' is outside"],
  ['a reference to an anchor', { $ref: '#x' }, "'schema.$ref': '#x' is no JSON Pointer"],
  ['a lookahead', { pattern: '(?=a)b' }, "'schema.pattern': the pattern is not simple enough"],
  ['a lookbehind', { pattern: '(?<!a)b' }, "'schema.pattern'"],
  ['a back reference', { pattern: '(a)\\1' }, "it uses '\\1'"],
  ['a word boundary', { pattern: '\\bx' }, "it uses '\\b'"],
  ['a Unicode property', { pattern: '\\p{L}' }, "it uses '\\p'"],
  ['an anchor in the middle', { pattern: 'a^b' }, "'^' stands elsewhere"],
  ['an anchor in a group', { pattern: '^(a$|b)' }, "'$' stands elsewhere"],
  ['half a surrogate pair', { pattern: '\\ud800' }, 'half of a surrogate pair'],
  ['overlapping branches of oneOf', { oneOf: [{ type: 'integer' }, { type: 'number' }] }, "'schema.oneOf[1]'"],
  [
    'branches that only an optional property distinguishes',
    { oneOf: ['a', 'b'].map(k => ({ type: 'object', properties: { k: { const: k } } })) },
    "'schema.oneOf[1]'",
  ],
  [
    'branches that may both be required',
    { type: 'object', properties: { a: true, b: true }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    "'schema.oneOf[1]'",
  ],
  ['a value with an ambiguous format', { format: 'date', enum: ['2024-02-29'] }, 'whether "2024-02-29" has the format'],
  ['many items', { type: 'array', minItems: 2001 }, "'schema.minItems': it is more than 2000"],
  ['long strings', { type: 'string', maxLength: 1_000_001 }, "'schema.maxLength': it is more than 1000000"],
  ['a bound with many digits', { type: 'number', minimum: 0.1234567890123456 }, "'schema.minimum'"],
  ['integers that are not exact', { type: 'integer', minimum: 1e17 }, "'schema.minimum'"],
]
test.each(unsupported)('%s is refused', (_, schema, part) => {
  const failure = refusal(schema)
  expect(failure).toMatchObject({ code: 'unsupported_parameter', param: 'response_format' })
  expect(failure.message).toContain(part)
})

const invalid: [what: string, schema: unknown, part: string][] = [
  ['not an object', 5, "'schema' is no JSON Schema"],
  ['null', null, "'schema' is no JSON Schema"],
  ['a list', [], "'schema' is no JSON Schema"],
  ['a property that is not a schema', { properties: { a: 'string' } }, "'schema.properties.a' is no JSON Schema"],
  ['an unknown type', { type: 'text' }, '\'schema.type\' holds "text"'],
  ['no types', { type: [] }, "'schema.type' is empty"],
  ['an enum that is not a list', { enum: 'a' }, "'schema.enum' is no array"],
  ['an empty anyOf', { anyOf: [] }, "'schema.anyOf' is empty"],
  ['a negative length', { minLength: -1 }, "'schema.minLength'"],
  ['a length that is not a whole number', { type: 'string', maxLength: 1.5 }, "'schema.maxLength'"],
  ['a bound of draft 4', { minimum: 1, exclusiveMinimum: true }, "'schema.exclusiveMinimum' is no number"],
  ['required of draft 3', { required: true }, "'schema.required' is no array"],
  ['an invalid pattern', { pattern: '(' }, "'schema.pattern' is no regular expression"],
  ['a dangling reference', { $ref: '#/$defs/x' }, "'schema.$ref' refers to '#/$defs/x', which is not there"],
  ['a reference to itself', { $ref: '#' }, "'schema' refers to itself"],
  ['a cycle of references', { anyOf: [{ allOf: [{ $ref: '#' }] }, { type: 'null' }] }, 'refers to itself'],
  ['false', false, "No finite value satisfies the schema at 'schema'"],
  ['contradictions', { type: 'string', const: 1 }, 'No finite value'],
  ['a minimum above the maximum', { type: 'integer', minimum: 2, maximum: 1 }, 'No finite value'],
  ['required but not allowed', { required: ['a'], properties: {}, additionalProperties: false }, 'No finite value'],
  ['an infinite object', { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }, 'No finite value'],
]
test.each(invalid)('%s is invalid', (_, schema, part) => {
  const failure = refusal(schema)
  expect(failure).toMatchObject({ code: 'invalid_value', param: 'response_format' })
  expect(failure.message).toContain(part)
})

test('unused definitions and keywords without effect are ignored', () => {
  const schemas = [
    { $defs: { x: { not: {} } }, type: 'null' },
    { type: 'null', properties: { a: { not: {} } } },
    { type: 'integer', format: 'date', pattern: '(?=a)' },
  ]
  expect(schemas.map(schema => schemaGrammar(schema, origin).length > 0)).toEqual([true, true, true])
})

test('the parameter that contains the schema is named', () => {
  const tool = { param: 'tools', path: 'tools[3].function.parameters' }
  expect(() => schemaGrammar({ properties: { a: { not: {} } } }, tool)).toThrow(
    expect.objectContaining({
      param: 'tools',
      message: expect.stringContaining("'tools[3].function.parameters.properties.a.not'"),
    }),
  )
})
