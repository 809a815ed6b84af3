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
  ['null is a value', ['usage'], { usage: null }, { usage: null }],
  ['what is not there is null', ['nothing[0].here'], null, { 'nothing[0].here': null }],
  ['nor is what every object has', ['constructor', 'data.length'], null, { constructor: null, 'data.length': null }],
])('%s', ([, outputs, kept, values]) => {
  expect(prune(structuredClone(result), outputs)).toEqual({ result: kept, values })
})
