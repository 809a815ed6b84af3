import { expect, test } from 'vitest'
import { loadPatterns } from '../../../core/pattern.ts'
import { schemaFault, schemaFaults } from '../../../core/schemas/json-schema.ts'

const compile = await loadPatterns()
const faults = (schema: unknown, value: unknown) => {
  expect(schemaFault(schema)).toBeUndefined()
  return schemaFaults(schema, value, compile)
}

const tree = {
  $ref: '#/$defs/node',
  $defs: { node: { properties: { next: { $ref: '#/$defs/node' }, n: { type: 'number' } } } },
}

test.each<[object | boolean, unknown, string[]]>([
  [true, 1, []],
  [false, 1, ['value must not be there']],
  [{ description: 'anything', format: 'email', 'x-own': 1 }, 'no address', []],
  [{ type: 'integer' }, 1, []],
  [{ type: 'integer' }, 1.5, ['value must be integer, and is 1.5']],
  [{ type: 'number' }, 1, []],
  [{ type: ['string', 'null'] }, null, []],
  [{ type: 'string', nullable: true }, null, []],
  [{ type: 'string' }, [1, 2], ['value must be string, and is a list of 2']],
  [{ enum: ['a', { b: 1 }] }, { b: 1 }, []],
  [{ enum: ['a', 'b'] }, 'c', ['value must be one of "a", "b", and is "c"']],
  [{ const: null }, 0, ['value must be null, and is 0']],
  [{ minimum: 1, exclusiveMaximum: 3 }, 3, ['value must be less than 3, and is 3']],
  [{ multipleOf: 0.1 }, 0.3, []],
  [{ multipleOf: 5 }, 12, ['value must be a multiple of 5, and is 12']],
  [{ minLength: 2 }, '😀', ['value must have at least 2 characters, and has 1']],
  [{ pattern: '^a' }, 'ba', ['value must match ^a, and is "ba"']],
  [
    { items: { type: 'string' }, maxItems: 1 },
    ['a', 2],
    ['value must have at most 1 items, and has 2', 'value[1] must be string, and is 2'],
  ],
  [{ prefixItems: [{ type: 'string' }], items: false }, ['a', 1], ['value[1] must not be there']],
  [{ uniqueItems: true }, [1, 2, 1], ['value must not have an item twice']],
  [
    { required: ['a'], additionalProperties: false, properties: { a: true } },
    { b: 1 },
    ['value.a is missing', 'value.b must not be there'],
  ],
  [{ additionalProperties: { type: 'number' } }, { a: 'x' }, ['value.a must be number, and is "x"']],
  [
    { allOf: [{ minimum: 1 }, { maximum: 0 }] },
    0.5,
    ['value must be at least 1, and is 0.5', 'value must be at most 0, and is 0.5'],
  ],
  [{ anyOf: [{ type: 'string' }, { type: 'number', minimum: 2 }] }, 1, ['value must be string, and is 1']],
  [{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }, 3, ["value must fit only one schema of 'oneOf', and fits 2"]],
  [{ not: { type: 'string' } }, 'a', ["value must not fit the schema of 'not'"]],
  [tree, { n: 1, next: { next: { n: 'x' } } }, ['value.next.next.n must be number, and is "x"']],
])('%j of %j', (schema, value, expected) => {
  expect(faults(schema, value)).toEqual(expected)
})

test('at most five faults are listed', () => {
  expect(faults({ items: { type: 'string' } }, [1, 2, 3, 4, 5, 6, 7])).toHaveLength(5)
})

test.each<[unknown, string]>([
  ['object', 'schema must be a JSON Schema: an object, true or false.'],
  [{ properties: { a: { if: {} } } }, "schema.properties.a has the keyword 'if', which is not supported."],
  [{ items: { $ref: '#/$defs/none' } }, 'schema.items refers to "#/$defs/none", which is not in the schema.'],
  [{ $ref: 'https://example.com/schema' }, 'which is not in the schema'],
])('%j is refused', (schema, fault) => {
  expect(schemaFault(schema)).toContain(fault)
})

test.each<[string, object, unknown]>([
  ['a schema that is itself', { $ref: '#' }, 1],
  [
    'alternatives that double with each level',
    {
      $ref: '#/$defs/a',
      $defs: { a: { anyOf: [1, 2].map(n => ({ properties: { x: { $ref: '#/$defs/a' } }, required: [`no${n}`] })) } },
    },
    JSON.parse(`${'{"x":'.repeat(40)}1${'}'.repeat(40)}`),
  ],
])('%s ends with a sentence', (_, schema, value) => {
  expect(() => faults(schema, value)).toThrow('The check by this schema takes too long')
})
