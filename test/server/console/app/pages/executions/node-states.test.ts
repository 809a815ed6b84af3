import { expect, test } from 'vitest'
import type { Schema } from '../../../../../../server/console/app/api/schema.ts'
import { openNodeStates } from '../../../../../../server/console/app/pages/executions/node-states.ts'

test('a node that did not change keeps its object, so that its card is not drawn again', () => {
  const states = openNodeStates()
  const node = (node_id: string, status: string) => ({ node_id, status }) as Schema<'ExecutionNode'>
  const [first, second] = [node('first', 'completed'), node('second', 'running')]
  let calls = 0
  const stop = states.watch(() => calls++)
  states.set([first, second])
  states.set([first, node('second', 'completed')])
  expect(states.get('first')).toBe(first)
  expect(states.get('second')?.status).toBe('completed')
  expect(states.get('third')).toBeUndefined()
  expect(calls).toBe(2)
  stop()
  states.set([])
  expect(calls).toBe(2)
})
