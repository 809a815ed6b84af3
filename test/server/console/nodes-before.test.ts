import { expect, test } from 'vitest'
import { nodesBefore } from '../../../server/console/app/pages/approvals/nodes-before.ts'

const lines = (text: string) => text.split(' ').map(one => ({ from: one[0]!, to: one[1]! }))

test.each([
  ['ab', 'a', []],
  ['ab bc cd', 'c', ['b', 'a']],
  ['ac bc da ce', 'c', ['a', 'b', 'd']],
  ['ab ac bd cd', 'd', ['b', 'c', 'a']],
])('in the graph %s before %s', (edges, node, before) => {
  expect(nodesBefore(lines(edges), node)).toEqual(before)
})

test('the nodes of a long chain are all there, the nearest first', () => {
  const edges = Array.from({ length: 40 }, (_, at) => ({ from: String(at), to: String(at + 1) }))
  expect(nodesBefore(edges, '40')).toEqual(Array.from({ length: 40 }, (_, at) => String(39 - at)))
})
