import { expect, test } from 'vitest'
import { prune } from '../../../core/workflows/prune.ts'

const result = {
  id: 'x',
  choices: [{ message: { content: 'Hello', role: 'assistant' } }],
  data: [{ url: 'a' }, { url: 'b' }, { url: 'c', size: 3 }],
  usage: null,
}

test.for<[title: string, outputs: string[], kept: unknown, values: Record<string, unknown>]>([
  ['without paths all is kept', [], result, {}],
  [
    'one path',
    ['choices[0].message.content'],
    { choices: [{ message: { content: 'Hello' } }] },
    { 'choices[0].message.content': 'Hello' },
  ],
  ['with result before it', ['result.id'], { id: 'x' }, { 'result.id': 'x' }],
  ['places before it are null', ['data[2].url'], { data: [null, null, { url: 'c' }] }, { 'data[2].url': 'c' }],
  [
    'several into one place',
    ['data[2].url', 'data[2].size', 'data.0'],
    { data: [{ url: 'a' }, null, { url: 'c', size: 3 }] },
    { 'data[2].url': 'c', 'data[2].size': 3, 'data.0': { url: 'a' } },
  ],
  [
    'a part and the whole of it',
    ['choices[0].message.content', 'choices'],
    { choices: result.choices },
    { 'choices[0].message.content': 'Hello', choices: result.choices },
  ],
  [
    'a member of every item',
    ['data[*].url', 'data[*].size'],
    { data: [{ url: 'a' }, { url: 'b' }, { url: 'c', size: 3 }] },
    { 'data[*].url': ['a', 'b', 'c'], 'data[*].size': [null, null, 3] },
  ],
  ['a member that no item has', ['data[*].x'], { data: [null, null, null] }, { 'data[*].x': [null, null, null] }],
  [
    'every item of what is no list',
    ['choices[0].message[*]', 'id[*]'],
    null,
    { 'choices[0].message[*]': null, 'id[*]': null },
  ],
  ['null is a value', ['usage'], { usage: null }, { usage: null }],
  ['what is not there is null', ['nothing[0].here'], null, { 'nothing[0].here': null }],
  ['nor is what every object has', ['constructor', 'data.length'], null, { constructor: null, 'data.length': null }],
])('%s', ([, outputs, kept, values]) => {
  expect(prune(structuredClone(result), outputs)).toEqual({ result: kept, values })
})

test('the result of a node with for_each is a list, and paths into it begin with a bracket', () => {
  const items = [{ text: 'a', n: 1 }, null, { text: 'c', n: 3 }]
  expect(prune(items, ['[*].text', '[2].n', 'result[0].n'])).toEqual({
    result: [{ text: 'a', n: 1 }, null, { text: 'c', n: 3 }],
    values: { '[*].text': ['a', null, 'c'], '[2].n': 3, 'result[0].n': 1 },
  })
})
