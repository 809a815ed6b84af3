import { expect, test } from 'vitest'
import { type ComparedNode, compareNodes } from '../../server/views/execution-comparison.ts'

const node = (node_id: string, more: Partial<ComparedNode> = {}): ComparedNode => ({
  node_id,
  status: 'completed',
  model_id: 'm',
  duration_ms: 5,
  cost: 0.5,
  resolved_inputs: { a: 1 },
  result: { b: [1] },
  error: null,
  ...more,
})

test.for<[title: string, before: ComparedNode[], after: ComparedNode[], pairs: string[]]>([
  ['equal nodes', [node('a')], [node('a')], ['a ']],
  ['another result', [node('a')], [node('a', { result: { b: [2] } })], ['a result']],
  [
    'another model and other inputs',
    [node('a')],
    [node('a', { model_id: 'n', resolved_inputs: {} })],
    ['a model,inputs'],
  ],
  ['another end', [node('a')], [node('a', { status: 'skipped', result: null })], ['a status']],
  ['an unknown result is not another one', [node('a', { result: null })], [node('a')], ['a  ?result']],
  ['nodes of one only', [node('a'), node('b')], [node('c'), node('a')], ['a ', 'b -second', 'c -first']],
])('%s', ([, before, after, expected]) => {
  const pairs = compareNodes(before, after).map(({ node_id, first, second, different, unknown }) => {
    const differs = !first ? '-first' : !second ? '-second' : different.join(',')
    return `${node_id} ${differs}${unknown.map(part => ` ?${part}`).join('')}`
  })
  expect(pairs).toEqual(expected)
})

test('time and cost are those of each', () => {
  const [pair] = compareNodes([node('a')], [node('a', { duration_ms: 7, cost: 0 })])
  expect([pair!.first, pair!.second]).toEqual([
    { status: 'completed', model_id: 'm', duration_ms: 5, cost: 0.5 },
    { status: 'completed', model_id: 'm', duration_ms: 7, cost: 0 },
  ])
})
