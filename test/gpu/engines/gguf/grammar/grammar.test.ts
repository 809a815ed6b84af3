import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runSteps } from '../../../../../core/time-slice.ts'
import { literal, openGrammar } from '../../../../../gpu/engines/gguf/grammar/grammar.ts'
import { objectGrammar, openLlama, openMatcher, origin, schemaGrammar } from './_grammar.ts'

let llama: Awaited<ReturnType<typeof openLlama>>
beforeAll(async () => {
  llama = await openLlama()
})
afterAll(() => llama.dispose())

type Row = [name: string, schema: unknown, matched: string[], notMatched: string[]]

const list = { $ref: '#', type: 'object' }
const rows: Row[] = [
  ['true', true, ['1', '"a"', '{"a":[null]}', '[]', '-1.5e-10'], ['', 'a', '01', '{a:1}', '1.', '"\n"', '1e999']],
  ['no keywords', {}, ['null', '[1, 2]', '{ }'], ['nul', '[1,]']],
  [
    'annotations',
    {
      title: 'x',
      description: 'y',
      default: 1,
      examples: [],
      $schema: 'z',
      $id: 'i',
      $comment: '',
      deprecated: true,
      readOnly: true,
      writeOnly: true,
      type: 'null',
    },
    ['null'],
    ['1'],
  ],
  ['type null', { type: 'null' }, ['null'], ['"null"']],
  ['type boolean', { type: 'boolean' }, ['true', 'false'], ['True', '1']],
  [
    'type integer',
    { type: 'integer' },
    ['0', '-7', '999999999999999'],
    ['-0', '007', '1.0', '1e3', '1000000000000000'],
  ],
  ['type number', { type: 'number' }, ['0', '-7.25', '6e-7', '1E+5'], ['.5', '+1', 'NaN', '0x1', '1e100']],
  [
    'type string',
    { type: 'string' },
    ['""', '"é😀"', '"\\u00e9\\n\\/\\ud83d\\ude00"'],
    ['"', "'a'", '"\\x"', '"\t"', '"\\ud83d"', '"\\ude00"'],
  ],
  ['type array', { type: 'array' }, ['[]', '[1,"a",[]]'], ['{}', '[1 2]']],
  ['type object', { type: 'object' }, ['{}', '{"a":1}', '{"a":{"b":[]}}'], ['[]', '{"a"}']],
  ['types', { type: ['string', 'null'], maxLength: 1 }, ['"a"', 'null'], ['"ab"', '1']],
  [
    'enum',
    { enum: ['a', 'ab', 1, 12, null, { x: [1, 'é'] }, 1.5e300] },
    ['"a"', '"ab"', '1', '12', 'null', '{"x":[1,"é"]}', '1.5e+300'],
    ['"b"', '2', '"'],
  ],
  [
    'enum with other keywords',
    { enum: ['a', 'abc', 3, 30], type: ['string', 'integer'], maxLength: 2, minimum: 10 },
    ['"a"', '30'],
    ['"abc"', '3'],
  ],
  ['const', { const: 'say "hi"\n' }, ['"say \\"hi\\"\\n"'], ['"say hi"']],
  ['const and enum', { const: 2, enum: [1, 2, 3] }, ['2'], ['1', '3']],
  [
    'minimum, maximum',
    { type: 'integer', minimum: -5, maximum: 120 },
    ['-5', '-1', '0', '9', '99', '120'],
    ['-6', '-10', '121', '200', '1000'],
  ],
  [
    'exclusive bounds',
    { type: 'integer', exclusiveMinimum: 8, exclusiveMaximum: 11 },
    ['9', '10'],
    ['8', '11', '1', '80'],
  ],
  ['fractions as bounds of integers', { type: 'integer', minimum: 0.5, maximum: 2.5 }, ['1', '2'], ['0', '3']],
  [
    'a long range',
    { type: 'integer', minimum: 8, maximum: 1234567 },
    ['8', '10', '999', '1000000', '1234567'],
    ['7', '1234568', '2000000', '10000000'],
  ],
  ['one bound', { type: 'integer', maximum: -3 }, ['-3', '-999999999999999'], ['-2', '3', '0']],
  [
    'numbers between',
    { type: 'number', minimum: 0, maximum: 1 },
    ['0', '0.5', '0.000001', '1'],
    ['-0.1', '1.01', '2', '1e-1', '0.'],
  ],
  [
    'numbers between fractions',
    { type: 'number', minimum: -1.5, exclusiveMaximum: 2.25 },
    ['-1.5', '-1.49', '0', '2', '2.2', '2.249'],
    ['-1.51', '2.25', '2.26', '-2', '2.3'],
  ],
  ['numbers above', { type: 'number', exclusiveMinimum: 0 }, ['0.001', '5.25', '100'], ['0', '0.0', '-1']],
  [
    'bounds in exponents',
    { type: 'number', minimum: 1e-7, maximum: 1e-6 },
    ['0.0000001', '0.00000055', '0.000001'],
    ['0.00000009', '0.0000011', '0'],
  ],
  [
    'minLength, maxLength',
    { type: 'string', minLength: 2, maxLength: 3 },
    ['"ab"', '"é😀"', '"\\ud83d\\ude00\\u0041\\n"'],
    ['"a"', '"abcd"', '"😀"'],
  ],
  [
    'a large maxLength',
    { type: 'string', maxLength: 3500 },
    ['""', `"${'a'.repeat(3500)}"`],
    [`"${'a'.repeat(3501)}"`],
  ],
  [
    'a large minLength',
    { type: 'string', minLength: 2500 },
    [`"${'a'.repeat(2500)}"`, `"${'a'.repeat(9000)}"`],
    [`"${'a'.repeat(2499)}"`],
  ],
  [
    'both bounds large',
    { type: 'string', minLength: 2100, maxLength: 5050 },
    [2100, 3000, 3100, 5050].map(n => `"${'é'.repeat(n)}"`),
    [2099, 5051].map(n => `"${'é'.repeat(n)}"`),
  ],
  [
    'pattern',
    { type: 'string', pattern: '^[a-c]{2,3}(?:-\\d+|\\.)?$' },
    ['"ab"', '"abc-12"', '"aa."'],
    ['"a"', '"abcd"', '"ab-"', '"ab-1."'],
  ],
  [
    'pattern anywhere',
    { type: 'string', pattern: 'fo+', maxLength: 5 },
    ['"foo"', '"xfooy"', '"fffoo"'],
    ['"ffff"', '"xxxxfo"'],
  ],
  [
    'pattern with escapes',
    { type: 'string', pattern: '^"\\\\\\n[^\\S\\t]$' },
    ['"\\"\\\\\\n "'],
    ['"\\"\\\\\\n\\t"', '"\\"\\\\\\u000a "'],
  ],
  [
    'patterns of allOf',
    { allOf: [{ pattern: '^a' }, { pattern: 'b$' }], type: 'string', maxLength: 3 },
    ['"ab"', '"axb"'],
    ['"ba"', '"a"'],
  ],
  [
    'format date',
    { type: 'string', format: 'date' },
    ['"2024-02-28"', '"1999-12-31"'],
    ['"2024-02-30"', '"2024-13-01"', '"24-1-1"'],
  ],
  [
    'format date-time',
    { type: 'string', format: 'date-time' },
    ['"2024-02-28T23:59:59Z"', '"2024-02-28T00:00:00.5+01:30"'],
    ['"2024-02-28"', '"2024-02-28T24:00:00Z"'],
  ],
  ['format time', { type: 'string', format: 'time' }, ['"10:00:00Z"'], ['"10:00"']],
  ['format uuid', { type: 'string', format: 'uuid' }, ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123e4567"']],
  ['format int32', { type: 'integer', format: 'int32' }, ['2147483647', '-2147483648'], ['2147483648', '-2147483649']],
  [
    'properties in order',
    { type: 'object', properties: { a: { type: 'string' }, b: { type: 'integer' } }, required: ['a'] },
    ['{"a":"x"}', '{"a": "x", "b": 3}', '{\n"a":"x",\n"b":3\n}'],
    ['{}', '{"b":3}', '{"b":3,"a":"x"}', '{"a":"x","c":1}', '{"a":"x"  }'],
  ],
  [
    'optional properties',
    { properties: { a: true, b: { type: 'integer' }, c: { type: 'null' } } },
    ['{}', '{"a":[]}', '{"c":null}', '{"a":1,"c":null}', '{"b":3,"c":null}'],
    ['{"c":null,"a":1}', '{"b":"x"}', '{"a":1,}', '{,"a":1}'],
  ],
  ['no properties', { type: 'object', properties: {} }, ['{}'], ['{"a":1}']],
  [
    'required only',
    { type: 'object', required: ['b', 'a'] },
    ['{"b":1,"a":[]}', '{"b":1,"a":2,"c":3}'],
    ['{"a":1}', '{}'],
  ],
  [
    'required but not declared',
    { properties: { a: { type: 'null' } }, required: ['b'], additionalProperties: { type: 'integer' } },
    ['{"b":1}', '{"a":null,"b":2,"z":3}'],
    ['{"b":null}', '{"a":null}'],
  ],
  ['additionalProperties false', { type: 'object', additionalProperties: false }, ['{}'], ['{"a":1}']],
  [
    'additionalProperties true',
    { properties: { a: { type: 'null' } }, additionalProperties: true },
    ['{"a":null,"z":[1]}', '{"z":1,"b":2}'],
    ['{"a":1}', '{"\\u0061":1}', '{"z":1,"a":null}'],
  ],
  [
    'additionalProperties',
    { properties: { a: { type: 'string' }, ab: { type: 'integer' } }, additionalProperties: { type: 'null' } },
    ['{}', '{"a":"x","z":null}', '{"abc":null}', '{"":null,"q\\n":null}'],
    ['{"a":null}', '{"ab":null}', '{"z":1}'],
  ],
  [
    'names that need escapes',
    {
      properties: { 'a"\n': { type: 'null' }, ['__proto__']: { type: 'null' }, é: { type: 'null' } },
      required: ['a"\n', 'é'],
    },
    ['{"a\\"\\n":null,"é":null}', '{"a\\"\\n":null,"__proto__":null,"é":null}'],
    ['{"é":null}'],
  ],
  ['items', { items: { type: 'integer' } }, ['[]', '[1]', '[1, 2,\n3]'], ['["a"]', '[1,]']],
  [
    'minItems, maxItems',
    { type: 'array', items: { type: 'integer' }, minItems: 2, maxItems: 3 },
    ['[1,2]', '[1,2,3]'],
    ['[]', '[1]', '[1,2,3,4]'],
  ],
  ['maxItems 0', { type: 'array', maxItems: 0 }, ['[]'], ['[1]']],
  [
    'prefixItems',
    { prefixItems: [{ type: 'integer' }, { type: 'string' }] },
    ['[1,"a"]'],
    ['[1]', '[]', '[1,"a",2]', '["a",1]'],
  ],
  [
    'prefixItems and items',
    { prefixItems: [{ type: 'integer' }, { type: 'string' }], items: { type: 'null' }, minItems: 1, maxItems: 4 },
    ['[1]', '[1,"a"]', '[1,"a",null,null]'],
    ['[]', '[1,"a",null,null,null]', '[1,null]'],
  ],
  ['items false', { prefixItems: [{ type: 'integer' }], items: false }, ['[1]'], ['[1,2]']],
  [
    'anyOf',
    { anyOf: [{ type: 'integer' }, { type: 'string', maxLength: 1 }, { type: 'string', minLength: 3 }] },
    ['1', '"a"', '"abc"'],
    ['"ab"', 'null'],
  ],
  [
    'anyOf with other keywords',
    {
      type: 'object',
      properties: { id: { type: 'integer' } },
      required: ['id'],
      anyOf: [
        { properties: { a: { const: 1 } }, required: ['a'] },
        { properties: { b: { const: 2 } }, required: ['b'] },
      ],
    },
    ['{"id":1,"a":1}', '{"id":1,"b":2}'],
    ['{"id":1}', '{"a":1}'],
  ],
  [
    'oneOf of types',
    { oneOf: [{ type: 'integer' }, { type: 'string' }, { type: 'null' }] },
    ['1', '"a"', 'null'],
    ['true'],
  ],
  [
    'oneOf distinguished by a constant',
    {
      oneOf: [
        { type: 'object', properties: { k: { const: 'a' }, x: { type: 'integer' } }, required: ['k', 'x'] },
        { type: 'object', properties: { k: { const: 'b' } }, required: ['k'] },
      ],
    },
    ['{"k":"a","x":1}', '{"k":"b"}'],
    ['{"k":"a"}', '{"k":"b","x":1}'],
  ],
  [
    'oneOf distinguished by required properties',
    {
      type: 'object',
      oneOf: [
        { properties: { a: true }, required: ['a'] },
        { properties: { b: true }, required: ['b'] },
      ],
    },
    ['{"a":1}', '{"b":1}'],
    ['{}', '{"a":1,"b":1}'],
  ],
  ['oneOf of values', { oneOf: [{ enum: [1, 2] }, { enum: [2, 3] }] }, ['1', '3'], ['2']],
  [
    'oneOf of ranges',
    { type: 'integer', oneOf: [{ maximum: 3 }, { minimum: 10, maximum: 12 }] },
    ['3', '-4', '11'],
    ['4', '9', '13'],
  ],
  [
    'allOf',
    { allOf: [{ type: ['string', 'null'] }, { minLength: 2 }, { maxLength: 2 }] },
    ['"ab"', 'null'],
    ['"a"', '"abc"'],
  ],
  [
    'allOf of objects',
    {
      allOf: [
        { properties: { a: { type: ['integer', 'null'] } }, required: ['a'] },
        { properties: { a: { minimum: 5 }, b: { type: 'null' } }, additionalProperties: false },
      ],
    },
    ['{"a":5}', '{"a":null,"b":null}'],
    ['{"a":4}', '{"b":null}'],
  ],
  [
    'keywords beside $ref',
    { $ref: '#/$defs/s', maxLength: 2, $defs: { s: { type: 'string', minLength: 2 } } },
    ['"ab"'],
    ['"a"', '"abc"'],
  ],
  [
    '$ref to a pointer with escapes',
    { type: 'array', items: { $ref: '#/definitions/a~1b%20c' }, definitions: { 'a/b c': { const: 1 } } },
    ['[1]'],
    ['[2]'],
  ],
  [
    'a recursive schema',
    {
      type: 'object',
      properties: { v: { type: 'integer' }, next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
      required: ['v', 'next'],
    },
    ['{"v":1,"next":null}', '{"v":1,"next":{"v":2,"next":null}}'],
    ['{"v":1}', '{"v":1,"next":{}}'],
  ],
  [
    'two definitions that refer to each other',
    {
      $ref: '#/$defs/a',
      $defs: {
        a: { type: 'array', items: { $ref: '#/$defs/b' } },
        b: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, required: ['a'] },
      },
    },
    ['[]', '[{"a":[{"a":[]}]}]'],
    ['[[]]', '[{}]'],
  ],
  [
    'branches that never end',
    { anyOf: [{ type: 'object', properties: { x: list }, required: ['x'] }, { type: 'null' }] },
    ['null'],
    ['{"x":null}', '{"x":{"x":null}}'],
  ],
  [
    'false inside a schema',
    { type: 'object', properties: { a: false, b: { type: 'null' } } },
    ['{}', '{"b":null}'],
    ['{"a":1}'],
  ],
]

describe('a grammar matches', () => {
  test.each(rows)('%s', async (_, schema, matched, notMatched) => {
    const matches = await openMatcher(llama, schemaGrammar(schema, origin))
    expect(matched.filter(text => !matches(text))).toEqual([])
    expect(notMatched.filter(matches)).toEqual([])
  })

  test('any JSON object, with bounded white space', async () => {
    const matches = await openMatcher(llama, objectGrammar())
    const deep = `${'{"a":['.repeat(200)}${']}'.repeat(200)}`
    expect(['{}', '{ "a": 1,\n"b": [{}, null ]}', '{"a":"}"}', deep].filter(text => !matches(text))).toEqual([])
    expect(['', '[]', '{"a":1', '{  }', '{"a":1}\n', '{"a":  1}', '{"a":1,}', '{1:2}'].filter(matches)).toEqual([])
  })
})

describe('rules and texts combined', () => {
  test('several schemas with marks around them', async () => {
    const grammar = openGrammar()
    const names = [
      runSteps(grammar.rule({ type: 'object', properties: { x: { type: 'integer' } }, required: ['x'] }, origin)),
      runSteps(grammar.rule({ type: 'object', properties: { x: { type: 'string' } }, required: ['x'] }, origin)),
      runSteps(grammar.object()),
    ]
    expect(new Set(names).size).toBe(3)
    const call = (name: string, at: number) => `${literal(`<call>\n${at} "é" `)} ${name} ${literal('\n</call>')}`
    const matches = await openMatcher(llama, runSteps(grammar.text(names.map(call).join(' | '))))
    const said = (at: number, json: string) => `<call>\n${at} "é" ${json}\n</call>`
    expect([said(0, '{"x":1}'), said(1, '{"x":"a"}'), said(2, '{"y":1}')].map(matches)).toEqual([true, true, true])
    expect([said(0, '{"x":"a"}'), said(1, '{"x":1}'), '{"x":1}', said(2, '1')].filter(matches)).toEqual([])
  })

  test('the same schema may be added twice', async () => {
    const grammar = openGrammar()
    const schema = { type: 'string', maxLength: 1 }
    const add = () => runSteps(grammar.rule(schema, origin))
    const matches = await openMatcher(llama, runSteps(grammar.text(`${add()} "," ${add()}`)))
    expect(['"a",""', '"a"', '"ab",""'].map(matches)).toEqual([true, false, false])
  })
})
