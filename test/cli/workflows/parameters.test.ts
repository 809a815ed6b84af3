import { expect, test } from 'vitest'
import { checkNames } from '../../../cli/workflows/parameters.ts'
import { Dag } from '../../../core/dag/definition.ts'

const dag = Dag.parse({ nodes: { a: { task: 'std/completion', inputs: { prompt: '${input.word}' } } } })
const declared = { topic: { type: 'string' as const } }

test.each<[name: string, options: string[], file: string[], unused: string | undefined]>([
  ['a declared parameter', ['topic'], [], undefined],
  ['a parameter that a node refers to', ['word'], ['word'], undefined],
  [
    'a file with more parameters than are used',
    ['topic'],
    ['topic', 'more', 'much'],
    "The workflow does not use 'more', 'much' of the parameter file. Its parameters are 'topic', 'word'.",
  ],
])('%s is accepted', (_, options, file, unused) => {
  expect(checkNames({ options, file }, dag, declared)).toBe(unused)
})

test('a mistyped option name is refused, with the valid ones', () => {
  expect(() => checkNames({ options: ['topc'], file: [] }, dag, declared)).toThrow(
    expect.objectContaining({
      message: "The workflow has no parameter 'topc'. Its parameters are 'topic', 'word'.",
      exitCode: 64,
    }),
  )
  const none = Dag.parse({ nodes: { a: { task: 'std/completion', inputs: {} } } })
  expect(() => checkNames({ options: ['x'], file: [] }, none, null)).toThrow('It takes no parameters.')
})
