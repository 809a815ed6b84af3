import { expect, test } from 'vitest'
import {
  comparedWith,
  endOf,
  type TreeMessage,
  versionsOf,
  withMessages,
} from '../../../server/console/app/pages/chat/conversation/tree.ts'

const message = (id: string, parent: string | null, more: Partial<TreeMessage> = {}): TreeMessage => ({
  id,
  parent,
  role: 'user',
  text: id,
  at: 0,
  ...more,
})
const answer = (id: string, parent: string, model: string) => message(id, parent, { role: 'assistant', model })
const tree = [
  message('q1', null),
  answer('a1', 'q1', 'x'),
  answer('a2', 'q1', 'y'),
  message('q2', 'a1'),
  message('q3', 'a1'),
  answer('a3', 'q3', 'x'),
]

test('messages are added, and replaced where they stand', () => {
  const replaced = withMessages(tree, [message('q1', null, { text: 'new' }), message('q4', 'a3')])
  expect(replaced.map(({ text }) => text)).toEqual(['new', 'a1', 'a2', 'q2', 'q3', 'a3', 'q4'])
})

test.each([
  ['a1', ['a1', 'a2']],
  ['q3', ['q2', 'q3']],
  ['q1', ['q1']],
])('the versions of %s are %j', (id, versions) => {
  const found = versionsOf(tree, tree.find(one => one.id === id)!)
  expect(found.map(one => one.id)).toEqual(versions)
})

test.each([
  ['q1', 'a2'],
  ['a1', 'a3'],
  ['q2', 'q2'],
])('the newest branch through %s ends with %s', (id, end) => expect(endOf(tree, id)).toBe(end))

test.each([
  [['x', 'y'], 'a1', ['a1', 'a2']],
  [['y', 'x'], 'a2', ['a2', 'a1']],
  [['x'], 'a1', []],
  [['x', 'z'], 'a1', []],
  [['y', 'z'], 'a1', []],
  [['x', 'y'], 'q2', []],
])('compared with %j, %s stands beside %j', (models, last, beside) => {
  const found = comparedWith(
    tree,
    tree.find(({ id }) => id === last),
    models,
  )
  expect(found.map(({ id }) => id)).toEqual(beside)
})
