import { expect, test } from 'vitest'
import { step } from './_step.ts'

const extract = async (text: string, inputs: object = {}) =>
  (await step<{ value: unknown }>('text/extract', { text, ...inputs })).value

const fence = '```'

test.each<[string, string, unknown]>([
  ['the whole text', ' {"a": 1}\n', { a: 1 }],
  ['a number', '42', 42],
  ['a block of code', `Here:\n${fence}json\n{"a": 1}\n${fence}\nDone {b}.`, { a: 1 }],
  ['a block goes before prose', `{"long": "object here"}\n${fence}\n[1]\n${fence}`, [1]],
  ['prose', 'The answer is {"name": "Ada", "tags": ["x"]}. Ask again.', { name: 'Ada', tags: ['x'] }],
  ['the longest in prose', 'See [1] and {"n": [2, 3]}.', { n: [2, 3] }],
  ['brackets within a text', 'So: {"a": "}]\\"{"}', { a: '}]"{' }],
  ['a bracket that is not closed', 'An open { and then {"a": 1}', { a: 1 }],
  ['commas before closing brackets', '{"a": [1, 2, ], "b": ",]",\n}', { a: [1, 2], b: ',]' }],
  ['line breaks within a text', '{"a": "one\ntwo\tthree"}', { a: 'one\ntwo\tthree' }],
])('finds JSON: %s', async (_, text, value) => {
  expect(await extract(text)).toEqual(value)
})

const person = {
  type: 'object',
  properties: { name: { type: 'string' }, age: { type: 'integer', minimum: 0 } },
  required: ['name'],
  additionalProperties: false,
}

test('with a schema the first JSON that fits is taken', async () => {
  const text = 'Like {"nick": "A"}, so [1], and {"name": "Ada", "age": 36}, not {"name": "Bob"}.'
  expect(await extract(text, { schema: person })).toEqual({ name: 'Ada', age: 36 })
})

test.each<[string, object, string]>([
  ['no JSON here', {}, 'There is no JSON in the text, which begins with "no JSON here".'],
  ['', {}, 'There is no JSON in the text, which is empty.'],
  ['{"a": tru}', {}, 'There is no JSON in the text'],
  ["{'a': 1}", {}, 'There is no JSON in the text'],
  ['{"a": [1, 2', {}, 'There is no JSON in the text'],
  ['{"age": -1, "x": 1}', { schema: person }, 'value.name is missing; value.age must be at least 0, and is -1'],
  ['{"age": "old"}', { schema: person }, 'value.age must be integer, and is "old"'],
  ['nothing', { pattern: '[0-9]+' }, 'The pattern matches nothing in the text, which begins with "nothing".'],
  ['x', { pattern: '(' }, 'The pattern is not a valid regular expression: missing closing )'],
  ['x', { pattern: 'a(?=b)' }, 'look-ahead and look-behind do not exist here'],
  ['x', { pattern: 'x', schema: {} }, "send either 'schema' or 'pattern'"],
  ['x', { all: true }, "'all' needs a 'pattern'"],
  ['{}', { schema: { patternProperties: {} } }, "schema has the keyword 'patternProperties', which is not supported"],
])('%s with %j fails: %s', async (text, inputs, message) => {
  await expect(extract(text, inputs)).rejects.toThrow(
    expect.objectContaining({ code: 'invalid_value', message: expect.stringContaining(message) }) as Error,
  )
})

test.each<[string, object, unknown]>([
  ['Total: 12 EUR', { pattern: '(?<amount>\\d+) (?<currency>[A-Z]{3})' }, { amount: '12', currency: 'EUR' }],
  ['a1 b2', { pattern: '[a-z]\\d', all: true }, ['a1', 'b2']],
  [
    'a1 b',
    { pattern: '(?<letter>[a-z])(?<digit>\\d)?', all: true },
    [
      { letter: 'a', digit: '1' },
      { letter: 'b', digit: null },
    ],
  ],
  ['none', { pattern: '\\d', all: true }, []],
])('%s with %j is %j', async (text, inputs, value) => {
  expect(await extract(text, inputs)).toEqual(value)
})

test('a hostile text takes time linear in its length', async () => {
  const since = performance.now()
  await expect(extract('[{'.repeat(200_000))).rejects.toThrow('There is no JSON')
  await expect(extract(`{"a": ${'1, '.repeat(100_000)}`)).rejects.toThrow('There is no JSON')
  expect(await extract(`${'x'.repeat(100_000)} 1`, { pattern: '(x+x+)+ ?(?<n>\\d)' })).toEqual({ n: '1' })
  expect(performance.now() - since).toBeLessThan(15_000)
})

test('groups within groups cannot multiply a text', async () => {
  const names = Array.from({ length: 26 }, (_, at) => String.fromCodePoint(97 + at))
  const pattern = names.reduce((inner, name) => `(?<${name}>${inner})`, 'x*')
  await expect(extract('x'.repeat(1 << 20), { pattern })).rejects.toThrow('groups with more than 16 MiB of text')
})
