import { expect, test } from 'vitest'
import type { Profile } from '../../../core/models/name-fields.ts'
import type { ChatRequest } from '../../../core/schemas/chat.ts'
import { estimatedInputs, withDefaults, withProfile } from '../../../core/tasks/profile.ts'

const user = { role: 'user', content: 'Hello' } as const
const request = (more: Partial<ChatRequest> = {}): ChatRequest => ({ model: 'm', messages: [user], ...more })

test.each<[what: string, profile: Profile, sent: Partial<ChatRequest>, whole: Partial<ChatRequest>]>([
  ['adds a default', { temperature: 0.2 }, {}, { temperature: 0.2 }],
  ['adds it in place of null', { temperature: 0.2 }, { temperature: null }, { temperature: 0.2 }],
  ['yields to the request', { temperature: 0.2 }, { temperature: 0 }, { temperature: 0 }],
  ['limits tokens', { max_tokens: 9 }, {}, { max_tokens: 9 }],
  ['yields to either limit', { max_tokens: 9 }, { max_completion_tokens: 99 }, { max_completion_tokens: 99 }],
  [
    'merges variables of the template',
    { chat_template_kwargs: { a: 1, b: 1 } },
    { chat_template_kwargs: { b: 2 } },
    { chat_template_kwargs: { a: 1, b: 2 } },
  ],
  ['says nothing of its price', { price: { per_image: 1 }, description: 'd' }, {}, {}],
  [
    'puts its prompt first',
    { system_prompt: 'Be kind' },
    {},
    { messages: [{ role: 'system', content: 'Be kind' }, user] },
  ],
  [
    'joins its prompt with that of the request',
    { system_prompt: 'Be kind' },
    { messages: [{ role: 'developer', content: 'Be brief' }, user] },
    { messages: [{ role: 'developer', content: 'Be kind\n\nBe brief' }, user] },
  ],
  [
    'joins its prompt with parts',
    { system_prompt: 'Be kind' },
    { messages: [{ role: 'system', content: [{ type: 'text', text: 'Be brief' }] }, user] },
    {
      messages: [
        {
          role: 'system',
          content: [
            { type: 'text', text: 'Be kind\n\n' },
            { type: 'text', text: 'Be brief' },
          ],
        },
        user,
      ],
    },
  ],
])('a profile %s', (_, profile, sent, whole) => {
  expect(withProfile(request(sent), profile)).toEqual(request({ ...sent, ...whole }))
})

test('without a profile a request stays the same object', () => {
  const sent = request()
  expect(withProfile(sent, undefined)).toBe(sent)
})

test('fields that a task does not have are left out', () => {
  expect(withDefaults({}, { reasoning_effort: 'low', top_p: 1 }, ['reasoning_effort'])).toEqual({ top_p: 1 })
})

test('an estimate counts the prompt and the limit of the profile', () => {
  expect(estimatedInputs({ n: 2 }, 10, { system_prompt: '12345', max_tokens: 3 })).toEqual({
    inputs: { n: 2, max_tokens: 3 },
    length: 15,
  })
})
