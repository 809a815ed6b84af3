import { expect, test } from 'vitest'
import { footer } from '../../../cli/chat/ask.ts'
import { openConversation } from '../../../cli/chat/conversation.ts'

test('a request holds the instruction, the earlier messages and the new question', () => {
  const talk = openConversation({
    model: 'm',
    system: 'Be brief.',
    settings: { temperature: 0, maxTokens: 9, seed: 7 },
  })
  talk.keep('Hi', 'Hello')
  expect(talk.requestFor('How?')).toEqual({
    model: 'm',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello' },
      { role: 'user', content: 'How?' },
    ],
    temperature: 0,
    max_completion_tokens: 9,
    seed: 7,
  })
})

test('a question alone is not kept, and an empty answer is not kept', () => {
  const talk = openConversation({ model: 'm', system: undefined, settings: {} })
  talk.requestFor('Hi')
  talk.keep('Hi', '')
  expect(talk.requestFor('How?')).toEqual({ model: 'm', messages: [{ role: 'user', content: 'How?' }] })
})

test('clearing removes the messages but not the instruction', () => {
  const talk = openConversation({ model: 'm', system: 'Be brief.', settings: {} })
  talk.keep('Hi', 'Hello')
  talk.clear()
  expect(talk.requestFor('How?').messages).toHaveLength(2)
})

test('model and instruction can change between requests', () => {
  const talk = openConversation({ model: 'm', system: 'Be brief.', settings: {} })
  talk.switchModel('n')
  talk.setSystem(undefined)
  expect(talk.requestFor('How?')).toEqual({ model: 'n', messages: [{ role: 'user', content: 'How?' }] })
})

test.each([
  ['stop', 30, 1500, '30 tokens · 20.0 tokens/s · 1.5 s'],
  ['length', 1, 1000, 'maximum length reached · 1 token · 1.0 tokens/s · 1.0 s'],
  ['tool_calls', undefined, 200, 'tool_calls · 0.2 s'],
])('the line below an answer that ended with %s', (reason, tokens, ms, text) => {
  expect(footer(reason, tokens, ms)).toBe(text)
})
