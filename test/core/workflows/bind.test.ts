import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bind, referencesIn } from '../../../core/workflows/bind.ts'
import { parseTemplate } from '../../../core/workflows/references.ts'

const bindings = {
  input: {
    x: 'cat',
    n: 3,
    flag: true,
    tags: ['a', 'b'],
    o: { k: 1 },
    nul: null,
    'weird key': 7,
    inert: '${input.x} $& $1',
    own: JSON.parse('{"__proto__":1,"constructor":2,"prototype":3}') as object,
  },
  nodes: {
    write: { result: { choices: [{ message: { content: 'Hello' } }], usage: { total_tokens: 5 } } },
    'img-1': { result: { images: [{ url: 'http://h/a.png', width: 64 }] } },
    each: { result: [{ text: 'a', tags: [{ t: 1 }, { t: 2 }] }, null, { text: 'c', tags: [] }] },
  },
  execution: { id: 'exec_1' },
  absent: new Set(['not given', 'style']),
}

test.for([
  ['a text that is one reference becomes the value, of its type', '${input.n}', 3],
  ['a list too', '${input.tags}', ['a', 'b']],
  ['and an object', '${input.o}', { k: 1 }],
  ['and null', '${input.nul}', null],
  ['and true', '${input.flag}', true],
  ['within a text it is written out', 'a ${input.x} b', 'a cat b'],
  ['a number', 'n=${input.n}', 'n=3'],
  ['a list as JSON', 't=${input.tags}', 't=["a","b"]'],
  ['null', 'x${input.nul}', 'xnull'],
  ['what need not be given and is not is nothing', '${input.style}', null],
  ['within a text too', 'in${input.style}side', 'inside'],
  ['and all that would be in it', '${input["not given"].deep[3]}', null],
  ['a place with zeros before it', '${input.tags[01]}', 'b'],
  ['two next to each other', '${input.x}${input.n}', 'cat3'],
  ['a space makes it a text', ' ${input.n}', ' 3'],
  ['spaces inside the braces do not matter', '${ input.x }', 'cat'],
  ['a place in a list', '${input.tags[1]}', 'b'],
  ['the other way to write it', '${nodes.img-1.result.images.0.url}', 'http://h/a.png'],
  ['deep down', '${nodes.write.result.choices[0].message.content}', 'Hello'],
  ['a quoted name', '${input["weird key"]}', 7],
  ['in the other quotes', "${nodes['img-1'].result.images[0].width}", 64],
  ['a member of every item of a list', '${nodes.each.result[*].text}', ['a', null, 'c']],
  ['lists of lists', '${nodes.each.result[*].tags[*].t}', [[1, 2], null, []]],
  ['every item itself', '${input.tags[*]}', ['a', 'b']],
  ['within a text as JSON', 'all: ${nodes.each.result[*].text}', 'all: ["a",null,"c"]'],
  ['of the execution', '${execution.id}', 'exec_1'],
  ['a doubled dollar is text', '$${input.x}', '${input.x}'],
  ['before a reference too', '$${${input.x}', '${cat'],
  ['what looks like one is none', 'cost: $5 {ok} $', 'cost: $5 {ok} $'],
  ['what a value says is not looked at again', '${input.inert}', '${input.x} $& $1'],
  ['not within a text either', '<${input.inert}>', '<${input.x} $& $1>'],
])('%s', ([, template, value]) => {
  expect(bind({ deep: [{ text: template }] }, bindings)).toEqual({ deep: [{ text: value }] })
})

test.for([
  [
    '${input.missing}',
    "${input.missing}: 'missing' not found in 'input' (it has x, n, flag, tags, o, nul, weird key, inert, …).",
  ],
  ['${nodes.nope.result.a}', "${nodes.nope.result.a}: 'nope' not found in 'nodes' (it has write, img-1, each)."],
  [
    '${nodes.img-1.result.images[3].url}',
    "${nodes.img-1.result.images[3].url}: index 3 not found ('images' has 1 item).",
  ],
  ['${input.tags.first}', "${input.tags.first}: 'tags' is a list, so it has no 'first', only [0] and so on, and [*]."],
  ['${input.x[*]}', "${input.x[*]}: 'x' is a string, so it has no items."],
  ['${input.o[*].k}', "${input.o[*].k}: 'o' is an object, so it has no items."],
  ['${input.tags[*].k}', "${input.tags[*].k}: an item is a string, so it has no 'k'."],
  ['${nodes.each.result[*].txt}', "${nodes.each.result[*].txt}: 'txt' not found in an item (it has text, tags)."],
  ['${nodes.each.result[*].tags[0].t}', "${nodes.each.result[*].tags[0].t}: index 0 not found ('tags' has 0 items)."],
  ['${item.name}', "${item.name}: 'item' is known only in the inputs of a node with 'for_each'."],
  ['${index}', "${index}: 'index' is known only in the inputs of a node with 'for_each'."],
  ['${input.x.length}', "${input.x.length}: 'x' is a string, so it has no 'length'."],
  ['${input.nul.a}', "${input.nul.a}: 'nul' is null, so it has no 'a'."],
  ['${input.o.__proto__}', "${input.o.__proto__}: '__proto__' not found in 'o' (it has k)."],
  ['${input.constructor}', /'constructor' not found/],
  ['${input.own.__proto__}', /'__proto__' not found in 'own'/],
  ['${input.own.constructor}', /'constructor' not found in 'own'/],
  ['${input.own.prototype}', /'prototype' not found in 'own'/],
  ['${input.tags.length}', /is a list/],
  ['${input.x', "${input.x}: its closing '}' is missing."],
  ['${}', '${}: it names nothing. Write ${input.name} or ${nodes.id.result.…}.'],
  ['${input..x}', "${input..x}: '.' cannot stand at character 7."],
  ['${input.x + 1}', "${input.x + 1}: ' ' cannot stand at character 8."],
  ['${input.x | upper}', /' ' cannot stand/],
  ['${input.x?.y}', /'\?' cannot stand/],
  ['${input.tags[-1]}', /'\[' cannot stand/],
  ['${input[x]}', /'\[' cannot stand/],
  [
    '${env.HOME}',
    "${env.HOME}: it begins with 'env', and references begin with 'input', 'nodes', 'execution', 'item' or 'index'.",
  ],
  ['${input}', "${input}: it names no member of 'input'."],
  [`\${input.${'a'.repeat(600)}}`, /it is longer than 512 characters/],
  [`\${input${'.a'.repeat(40)}}`, /more than 32 steps deep/],
  ['${input.x}'.repeat(2_001), '${input.x}: a text holds at most 2000 references, and this is one more.'],
])('%s reports the error', ([template, message]) => {
  expect(() => bind({ prompt: template }, bindings)).toThrow(message)
})

test('an item and its index are bound with their types, and null is an item', () => {
  const inputs = { whole: '${item}', at: '${index}', text: '${index}: ${item.name}', part: '${item.tags[1]}' }
  const item = { name: 'x', tags: ['a', 'b'] }
  expect(bind(inputs, { ...bindings, item, index: 0 })).toEqual({ whole: item, at: 0, text: '0: x', part: 'b' })
  expect(bind('${item}', { ...bindings, item: null, index: 1 })).toBeNull()
})

test('references are found at their paths, each once, invalid ones too', () => {
  const inputs = {
    prompt: 'a ${input.x}, ${nodes.a.result.text} and ${input.x}',
    messages: [{ content: '${input.y' }],
    n: 3,
  }
  expect(
    referencesIn(inputs).map(({ path, reference }) => [
      path,
      'source' in reference ? reference.source : reference.message,
    ]),
  ).toEqual([
    ['inputs.prompt', 'input.x'],
    ['inputs.prompt', 'nodes.a.result.text'],
    ['inputs.messages[0].content', "${input.y}: its closing '}' is missing."],
  ])
})

describe('any text', () => {
  const hostile = fc.string({
    unit: fc.constantFrom(
      '$',
      '{',
      '}',
      'a',
      '.',
      '[',
      ']',
      '0',
      '\\',
      'input',
      'nodes',
      '__proto__',
      'constructor',
      '\n',
      '"',
      "'",
    ),
    maxLength: 200,
    size: 'max',
  })

  test('is parsed without loss or refused with a sentence', () => {
    fc.assert(
      fc.property(hostile, text => {
        try {
          const parts = parseTemplate(text)
          const back = parts
            .map(part => (typeof part === 'string' ? part.replaceAll('${', () => '$${') : `\${${part.source}}`))
            .join('')
          expect(bare(back)).toBe(bare(text))
        } catch (thrown) {
          expect((thrown as Error).name).toBe('ReferenceFault')
        }
      }),
      { numRuns: 3000 },
    )
  })

  test('yields no value that was not in the inputs', () => {
    const put = new Set<unknown>(['cat', 1])
    fc.assert(
      fc.property(hostile, text => {
        let value: unknown
        try {
          value = bind(text, { input: { a: 'cat', nodes: { a: 1 } }, nodes: {}, execution: {} })
        } catch {
          return
        }
        if (typeof value !== 'string') expect(put.has(value) || JSON.stringify(value) === '{"a":1}').toBe(true)
      }),
      { numRuns: 3000 },
    )
  })

  /** Spaces around a reference are not part of it. */
  const bare = (text: string): string => text.replaceAll(/\s+/g, '')

  test.for([
    ['many openings', '${'.repeat(500_000)],
    ['one that never ends', `\${${'a'.repeat(1_000_000)}`],
    ['openings at the limit', `\${${'a'.repeat(510)}`.repeat(2000)],
    ['dollars', '$'.repeat(1_000_000)],
    ['escapes', '$${'.repeat(330_000)],
    ['quotes', `\${"${'\\'.repeat(1_000_000)}`],
  ] as const)('a megabyte of %s takes no longer than reading it a few times', ([, text]) => {
    const plain = 'a'.repeat(1_000_000)
    const took = (what: string): number => {
      const started = performance.now()
      for (let round = 0; round < 5; round++)
        try {
          parseTemplate(what)
        } catch {}
      return performance.now() - started
    }
    took(text)
    // A quadratic scan takes seconds here; reading a megabyte takes less than a millisecond.
    expect(took(text)).toBeLessThan(5_000 + 20 * took(plain))
  })
})

test('the total size of bound references is limited', () => {
  const inputs = { texts: Array.from({ length: 20 }, () => 'x${input.long}') }
  expect(() => bind(inputs, { input: { long: 'a'.repeat(100_000) }, nodes: {}, execution: {} })).toThrow(
    /more than 1 MiB/,
  )
})
