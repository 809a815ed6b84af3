import { expect, test } from 'vitest'
import { inTurns } from '../../../core/dialects/turns.ts'

const [system, developer, user, assistant] = ['system', 'developer', 'user', 'assistant'].map(
  role => (content: unknown) => ({ role, content }),
) as [Message, Message, Message, Message]
type Message = (content: unknown) => { role: string; content: unknown }
const call = { role: 'assistant', content: null, tool_calls: [{ id: 'c' }] }
const result = { role: 'tool', tool_call_id: 'c', content: 'found' }
const image = { type: 'image_url', image_url: { url: 'data:' } }
const text = (text: string) => ({ type: 'text', text })

test.each<[rule: string, before: object[], after: object[]]>([
  [
    'an ordinary conversation stays',
    [system('s'), user('a'), assistant('b'), user('c')],
    [system('s'), user('a'), assistant('b'), user('c')],
  ],
  ['one without instructions', [user('a')], [user('a')]],
  ['instructions at the start are one', [system('a'), developer('b'), user('c')], [system('a\n\nb'), user('c')]],
  ['only instructions', [developer('a')], [system('a')]],
  ['one after the user belongs to his message', [user('a'), system('b')], [user('a\n\n<system>\nb\n</system>')]],
  [
    'one before the user too',
    [user('a'), assistant('b'), developer('c'), user('d')],
    [user('a'), assistant('b'), user('<system>\nc\n</system>\n\nd')],
  ],
  [
    'one after the result of a tool follows it',
    [user('a'), call, result, system('b')],
    [user('a'), call, result, user('<system>\nb\n</system>')],
  ],
  ['messages of the user in a row are one', [user('a'), user('b'), assistant('c')], [user('a\n\nb'), assistant('c')]],
  [
    'parts stay parts',
    [user([text('a'), image]), system([text('b')]), user('c')],
    [user([text('a'), image, text('<system>'), text('b'), text('</system>'), text('c')])],
  ],
])('%s', (_, before, after) => expect(inTurns(before as ReturnType<Message>[])).toEqual(after))

test('a run of many messages takes milliseconds, not seconds', () => {
  const run = Array.from({ length: 30_000 }, () => user([text('a')]))
  const since = performance.now()
  expect((inTurns(run)[0]!.content as unknown[]).length).toBe(30_000)
  expect(performance.now() - since).toBeLessThan(1_000)
})
