import { expect, test } from 'vitest'
import { z } from 'zod'
import { ChatRequest } from '../../../core/schemas/chat.ts'
import { parsed } from '../../../core/schemas/issues.ts'

const user = { role: 'user', content: 'x' }
const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
const chat = (members: object) => ({ model: 'm', messages: [user], ...members })

/** Null at every depth, as clients send it for what they leave out; and the request that is meant. */
const absent: [what: string, sent: object, meant: object][] = [
  ['a field', chat({ tools: null, metadata: null }), chat({ tools: null, metadata: null })],
  [
    'a member of a tool',
    chat({ tools: [{ type: 'function', function: { name: 'f', description: null, parameters: null } }] }),
    chat({ tools: [{ type: 'function', function: { name: 'f' } }] }),
  ],
  [
    'the tool calls of a message',
    chat({ messages: [user, { role: 'assistant', content: 'y', tool_calls: null, name: null }] }),
    chat({ messages: [user, { role: 'assistant', content: 'y' }] }),
  ],
  [
    'a member of a part',
    chat({
      messages: [
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/x', detail: null } }] },
      ],
    }),
    chat({
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/x' } }] }],
    }),
  ],
  [
    'several at once',
    chat({
      messages: [
        { ...user, name: null },
        { role: 'assistant', content: null, tool_calls: [call], name: null },
        { role: 'tool', tool_call_id: 'c', content: 'z' },
      ],
    }),
    chat({
      messages: [
        user,
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', tool_call_id: 'c', content: 'z' },
      ],
    }),
  ],
]
test.each(absent)('null means absent: %s', (_what, sent, meant) => {
  const before = structuredClone(sent)
  expect(parsed(ChatRequest, sent)).toEqual(parsed(ChatRequest, meant))
  expect(sent).toEqual(before)
})

test('null where a value must be is a missing one', () => {
  expect(() => parsed(ChatRequest, chat({ messages: null }))).toThrow("Missing required parameter: 'messages'.")
  expect(() => parsed(ChatRequest, chat({ messages: [{ role: 'user', content: null }] }))).toThrow(
    "Missing required parameter: 'messages[0].content'.",
  )
})

test('null as an entry of a list, as the whole, and what a schema does not know stay what they are', () => {
  expect(() => parsed(ChatRequest, chat({ messages: [null] }))).toThrow("'messages[0]' must be an object, not null.")
  expect(() => parsed(ChatRequest, null)).toThrow('The body must be an object, not null.')
  expect(parsed(z.object({ any: z.record(z.string(), z.unknown()) }), { any: { a: null } })).toEqual({
    any: { a: null },
  })
})
