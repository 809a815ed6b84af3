import { expect, test } from 'vitest'
import { branchOf, markdownOf } from '../../../core/conversations/markdown.ts'
import { ownerOf } from '../../../core/conversations/owner.ts'
import { titleOf } from '../../../core/conversations/title.ts'

test.each([
  ['no message', [], ''],
  ['an empty one first', ['  ', 'Hello'], 'Hello'],
  ['lines and blanks', [' What\n\n is\tit? '], 'What is it?'],
  ['many words', ['word '.repeat(30)], `${'word '.repeat(12).trim()}…`],
  ['one long word', ['x'.repeat(90)], `${'x'.repeat(60)}…`],
  ['half a character at the end', [`${'x'.repeat(59)}😀😀`], `${'x'.repeat(59)}…`],
])('the title of %s', (_, texts, title) => {
  expect(titleOf(texts.map(text => ({ text })))).toBe(title)
})

test('a branch has the messages from the first one to its last', () => {
  const tree = [
    { id: 'a', parent: null },
    { id: 'b', parent: 'a' },
    { id: 'c', parent: 'a' },
    { id: 'd', parent: 'c' },
  ]
  const ids = (last: string | null) => branchOf(tree, last).map(({ id }) => id)
  expect(ids('d')).toEqual(['a', 'c', 'd'])
  expect(ids('b')).toEqual(['a', 'b'])
  expect(ids(null)).toEqual([])
  expect(ids('absent')).toEqual([])
})

test('conversations belong to the user of a token, else to the first token of its rotations', () => {
  const organizationId = 'org_1'
  const owner = (userId: string | null) => ownerOf({ organizationId, token: { userId, originId: 'tok_1' } }).owner
  expect([owner('user_1'), owner(null)]).toEqual(['user_1', 'tok_1'])
})

test('Markdown quotes the reasoning and fences calls of tools longer than what is in them', () => {
  const call = { id: '1', name: 'run', arguments: '"```"' }
  const messages = [
    { id: 'a', parent: null, text: 'Hi', details: '{"role":"user"}' },
    {
      id: 'b',
      parent: 'a',
      text: '',
      details: JSON.stringify({ role: 'assistant', reasoning: 'one\ntwo', tool_calls: [call] }),
    },
    { id: 'c', parent: 'b', text: '42', details: '{"role":"tool"}' },
  ]
  expect(markdownOf({ title: 'T\nU', system: '', currentMessage: 'c' }, messages)).toBe(
    '# T U\n\n## User\n\nHi\n\n## Assistant\n\n> one\n> two\n\n````\nrun("```")\n````\n\n## Tool\n\n42\n',
  )
})
