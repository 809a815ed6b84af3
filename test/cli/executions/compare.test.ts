import { expect, test } from 'vitest'
import { pairNodes } from '../../../cli/executions/compare.ts'
import type { ExecutionNode } from '../../../cli/executions/execution.ts'

const node = (node_id: string, more: Partial<ExecutionNode> = {}): ExecutionNode =>
  ({
    node_id,
    status: 'completed',
    model_id: 'm',
    resolved_inputs: { a: 1 },
    result: { b: [1] },
    ...more,
  }) as ExecutionNode

test.for<[title: string, before: ExecutionNode[], after: ExecutionNode[], pairs: string[]]>([
  ['equal nodes', [node('a')], [node('a')], ['a ']],
  ['another result', [node('a')], [node('a', { result: { b: [2] } })], ['a result']],
  [
    'another model and other inputs',
    [node('a')],
    [node('a', { model_id: 'n', resolved_inputs: {} })],
    ['a model,inputs'],
  ],
  ['another end', [node('a')], [node('a', { status: 'skipped', result: null })], ['a status']],
  ['an unknown result is not another one', [node('a', { result: null })], [node('a')], ['a ']],
  ['nodes of one only', [node('a'), node('b')], [node('c'), node('a')], ['a ', 'b -second', 'c -first']],
])('%s', ([, before, after, expected]) => {
  const pairs = pairNodes(before, after).map(
    pair => `${pair.id} ${!pair.before ? '-first' : !pair.after ? '-second' : pair.different.join(',')}`,
  )
  expect(pairs).toEqual(expected)
})
