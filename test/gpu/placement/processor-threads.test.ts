import { expect, test } from 'vitest'
import { processorThreads } from '../../../gpu/placement/processor-threads.ts'

test.each<[string, number, number, number, number, string]>([
  ['every core but one', 8, 8, 0, 7, 'the 8 cores but one for the server'],
  ['no second thread on a core', 32, 16, 0, 16, 'the 16 cores'],
  ['one core', 1, 1, 0, 1, 'the only core'],
  ['two threads of one core', 2, 1, 0, 1, 'the only core'],
  ['half beside another engine', 8, 8, 1, 4, 'the 8 cores but one for the server, shared with another engine'],
  ['a third beside two', 32, 16, 2, 6, 'the 16 cores, shared with 2 other engines'],
  ['never none', 2, 2, 9, 1, 'the 2 cores but one for the server, shared with 9 other engines'],
])('%s', (_, cores, physicalCores, others, count, reason) => {
  expect(processorThreads(undefined, { cores, physicalCores, others })).toEqual({ count, reason })
})

test('what is configured is kept', () => {
  const of = { cores: 8, physicalCores: 8, others: 3 }
  expect(processorThreads(12, of)).toEqual({ count: 12, reason: "its setting 'threads'" })
})
