import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Failure } from '../../../../../core/failure.ts'
import { openLlama, openMatcher, origin, schemaGrammar } from './_grammar.ts'

let llama: Awaited<ReturnType<typeof openLlama>>
beforeAll(async () => {
  llama = await openLlama()
})
afterAll(() => llama.dispose())

const range = (count: number) => Array.from({ length: count }, (_, at) => at)
const to = (at: number) => ({ $ref: `#/$defs/d${at}` })
/** The first of `count` definitions, each created from its number, with a string as the last. */
const definitions = (count: number, make: (at: number) => unknown) => ({
  ...to(0),
  $defs: Object.fromEntries([...range(count).map(at => [`d${at}`, make(at)]), [`d${count}`, { type: 'string' }]]),
})
const named = (count: number, make: (at: number) => unknown) =>
  Object.fromEntries(range(count).map(at => [`property${at}`, make(at)]))
const nested = (depth: number, wrap: (inner: unknown) => unknown) => range(depth).reduce<unknown>(wrap, {})

/** Schemas that would take hours, gigabytes or the stack if they were expanded. */
const hostile: [what: string, schema: unknown][] = [
  ['50,000 nested arrays', nested(50_000, items => ({ items }))],
  ['allOf of the same schema twice, 60 levels deep', definitions(60, at => ({ allOf: [to(at + 1), to(at + 1)] }))],
  ['anyOf of the next two, 60 levels deep', definitions(60, at => ({ anyOf: [to(at + 1), to(Math.min(60, at + 2))] }))],
  ['choices of choices', { allOf: range(10).map(at => ({ anyOf: range(4).map(of => ({ const: [at, of] })) })) }],
  [
    'objects of choices',
    { allOf: range(9).map(at => ({ anyOf: range(4).map(of => ({ required: [`${at} ${of}`] })) })) },
  ],
  ['600 references in a row', definitions(600, at => to(at + 1))],
  ['600 nested objects', definitions(600, at => ({ properties: { next: to(at + 1) }, required: ['next'] }))],
  ['a oneOf of 300', { oneOf: range(300).map(at => ({ properties: { k: { const: at } }, required: ['k'] })) }],
  ['1500 optional properties', { properties: named(1500, () => ({ type: 'string' })), additionalProperties: true }],
  ['4000 values', { enum: range(4000).map(at => `value number ${(at * 7919) % 4001} of many`) }],
  ['200 long strings', { properties: named(200, at => ({ type: 'string', maxLength: 2000 - at })) }],
  ['60 large patterns', { properties: named(60, at => ({ type: 'string', pattern: `^[a-z]{${at},1500}$` })) }],
  ['arrays that repeat arrays', nested(40, items => ({ items, maxItems: 1999 }))],
  ['repetitions of repetitions', { type: 'string', pattern: '^(((a{50}){50}){50}){50}$' }],
  ['repetitions of nothing', { type: 'string', pattern: '^((?:){1000000000}){1000000000}$' }],
  ['a pattern with 2^20 cases', { type: 'string', pattern: '^(a|b)*a(a|b){20}$' }],
  [
    'a tree of lists of lists',
    {
      anyOf: [{ items: { $ref: '#' } }, { items: { $ref: '#' }, minItems: 2 }, { type: 'null' }],
    },
  ],
  [
    'lists that double 40 times',
    definitions(40, at => ({ anyOf: [{ items: to(at + 1) }, { items: to(at + 1), minItems: 2 }] })),
  ],
  [
    'objects that contain each other first',
    {
      anyOf: ['x', 'y'].map(other => ({ properties: { a: { $ref: '#' }, [other]: { const: 1 } } })),
    },
  ],
]

describe('a hostile schema is refused or compiled at bounded cost', () => {
  test.each(hostile)('%s', async (_, schema) => {
    const before = process.cpuUsage()
    let outcome: string | Failure
    try {
      outcome = schemaGrammar(schema, origin)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      outcome = error
    }
    const { user, system } = process.cpuUsage(before)
    // Some tenths of a second on any machine; anything that multiplies would take far longer.
    expect((user + system) / 1e6).toBeLessThan(5)
    if (outcome instanceof Failure) expect(outcome).toMatchObject({ status: 400, param: 'response_format' })
    else {
      expect(outcome.length).toBeLessThan(1_000_000)
      await openMatcher(llama, outcome)
    }
  })
})

/** Schemas that client libraries generate, with their annotations; none of them may be refused. */
const usual: [what: string, schema: unknown, text: string][] = [
  [
    'steps of a calculation',
    {
      type: 'object',
      properties: {
        steps: {
          type: 'array',
          items: {
            type: 'object',
            properties: { explanation: { type: 'string' }, output: { type: 'string' } },
            required: ['explanation', 'output'],
            additionalProperties: false,
          },
        },
        final_answer: { type: 'string' },
      },
      required: ['steps', 'final_answer'],
      additionalProperties: false,
      $schema: 'http://json-schema.org/draft-07/schema#',
    },
    '{"steps": [{"explanation": "2x", "output": "x"}], "final_answer": "x"}',
  ],
  [
    'a tree of widgets',
    {
      type: 'object',
      properties: {
        type: { type: 'string', enum: ['div', 'button', 'form'] },
        label: { type: 'string' },
        children: { type: 'array', items: { $ref: '#' } },
        attributes: { type: 'array', items: { $ref: '#/$defs/attribute' } },
      },
      $defs: {
        attribute: {
          type: 'object',
          properties: { name: { type: 'string' }, value: { type: 'string' } },
          required: ['name', 'value'],
          additionalProperties: false,
        },
      },
      required: ['type', 'label', 'children', 'attributes'],
      additionalProperties: false,
    },
    '{"type":"form","label":"","children":[{"type":"div","label":"a","children":[],"attributes":[{"name":"a","value":"b"}]}],"attributes":[]}',
  ],
  [
    'a schema of Pydantic',
    {
      $defs: { Color: { enum: ['red', 'green'], title: 'Color', type: 'string' } },
      properties: {
        name: { title: 'Name', type: 'string', minLength: 1, maxLength: 40 },
        age: {
          anyOf: [{ type: 'integer', minimum: 0, exclusiveMaximum: 150 }, { type: 'null' }],
          default: null,
          title: 'Age',
        },
        confidence: { title: 'Confidence', type: 'number', minimum: 0.0, maximum: 1.0 },
        color: { allOf: [{ $ref: '#/$defs/Color' }], default: 'red', description: 'favourite' },
        born: { format: 'date', title: 'Born', type: 'string' },
        scores: { additionalProperties: { type: 'number' }, title: 'Scores', type: 'object' },
        pair: { maxItems: 2, minItems: 2, prefixItems: [{ type: 'integer' }, { type: 'string' }], type: 'array' },
      },
      required: ['name', 'confidence', 'born'],
      title: 'Person',
      type: 'object',
    },
    '{"name": "A", "age": 149, "confidence": 0.75, "color": "green", "born": "1990-01-31", "scores": {"x": 1.5}, "pair": [1, "a"]}',
  ],
  [
    'an expression tree distinguished by its operator',
    {
      $ref: '#/$defs/expression',
      $defs: {
        expression: {
          anyOf: [
            {
              type: 'object',
              properties: {
                op: { const: 'add' },
                left: { $ref: '#/$defs/expression' },
                right: { $ref: '#/$defs/expression' },
              },
              required: ['op', 'left', 'right'],
            },
            {
              type: 'object',
              properties: { op: { const: 'neg' }, of: { $ref: '#/$defs/expression' } },
              required: ['op', 'of'],
            },
            {
              type: 'object',
              properties: { op: { const: 'value' }, value: { type: 'number' } },
              required: ['op', 'value'],
            },
          ],
        },
      },
    },
    '{"op":"add","left":{"op":"neg","of":{"op":"value","value":1}},"right":{"op":"value","value":2.5}}',
  ],
  [
    'operands before the operator',
    {
      $defs: { leaf: { type: 'integer' } },
      anyOf: ['+', '-'].map(op => ({
        type: 'object',
        properties: { left: { anyOf: [{ $ref: '#' }, { $ref: '#/$defs/leaf' }] }, op: { const: op } },
        required: ['left', 'op'],
      })),
    },
    '{"left":{"left":1,"op":"-"},"op":"+"}',
  ],
  ['a function without parameters', { type: 'object', properties: {}, additionalProperties: false }, '{}'],
  [
    '60 optional filters',
    { type: 'object', properties: named(60, () => ({ type: ['string', 'null'], default: null })) },
    '{"property3": "a", "property59": null}',
  ],
  ['300 values', { type: 'string', enum: range(300).map(at => `country ${at}`) }, '"country 123"'],
]
test.each(usual)('%s has a grammar', async (_, schema, text) => {
  expect((await openMatcher(llama, schemaGrammar(schema, origin)))(text)).toBe(true)
})
