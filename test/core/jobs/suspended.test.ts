import { expect, test } from 'vitest'
import { openQueue, type Queue } from '../../../core/jobs/queue.ts'
import { take, waiting } from './_queue.ts'

const order = (queue: Queue): string[] => {
  const ids: string[] = []
  for (let turn = take(queue); turn; turn = take(queue)) {
    ids.push(turn.job.id)
    queue.ran(turn, 100)
  }
  return ids
}
const open = () => {
  const suspended = new Set<string>()
  const queue = openQueue({ weightOf: () => 1, suspended: () => suspended })
  return { queue, suspended }
}

test('jobs of a suspended organization are not served, and are in their order when it is resumed', () => {
  const { queue, suspended } = open()
  for (const job of [waiting('a1', 'a', 1), waiting('a2', 'a', 2), waiting('b1', 'b', 3)]) queue.offer(job)
  suspended.add('a')
  expect(order(queue)).toEqual(['b1'])
  suspended.delete('a')
  expect(order(queue)).toEqual(['a1', 'a2'])
})

test('they are no demand: not counted, not waited for, in no position before others', () => {
  const { queue, suspended } = open()
  const [a, b] = [waiting('a1', 'a', 1), waiting('b1', 'b', 2)]
  queue.offer(a)
  queue.offer(b)
  expect([queue.waiting('m'), queue.position(b)]).toEqual([{ interactive: 0, background: 2 }, 1])
  suspended.add('a')
  expect([queue.waiting('m'), queue.position(b)]).toEqual([{ interactive: 0, background: 1 }, 0])
  expect(order(queue)).toEqual(['b1'])
  expect([queue.waits('m'), queue.waiting('m').background]).toEqual([false, 0])
  expect(queue.load('m').workMs).toBe(0)
  suspended.delete('a')
  expect([queue.waits('m'), queue.waiting('m').background]).toEqual([true, 1])
})

test('calls were accepted before the suspension and are served', () => {
  const { queue, suspended } = open()
  queue.offer(waiting('call', 'a', 1, 'm', 'interactive'))
  queue.offer(waiting('job', 'a', 2))
  suspended.add('a')
  expect(queue.waiting('m')).toEqual({ interactive: 1, background: 0 })
  expect(order(queue)).toEqual(['call'])
})
