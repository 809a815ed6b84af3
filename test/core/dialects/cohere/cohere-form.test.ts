import { expect, test } from 'vitest'
import { CohereChatRequest, CohereChatResponse } from '../../../../core/dialects/cohere/cohere-chat-schemas.ts'
import { cohereForm } from '../../../../core/dialects/cohere/cohere-form.ts'
import { Failure } from '../../../../core/failure.ts'
import { ChatRequest, type ChatResponse } from '../../../../core/schemas/chat.ts'
import { chunksOf, eventsOf } from '../_chunks.ts'

const base = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const bodyOf = (more: object) =>
  cohereForm.chatBody(CohereChatRequest.parse({ ...base, ...more }), undefined, { ignored: [], schemas: [] })
const facts = { createdAt: 0, queuedMs: 0 }
const request = CohereChatRequest.parse(base)
const call = { id: 't1', type: 'function' as const, function: { name: 'f', arguments: '{"a":1}' } }

test.each<[string, object, object]>([
  ['plain text', {}, {}],
  [
    'sampling',
    {
      max_tokens: 5,
      temperature: 0.3,
      seed: 1,
      k: 3,
      p: 0.5,
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      stop_sequences: ['x'],
      stream: false,
      safety_mode: 'OFF',
      citation_options: { mode: 'FAST' },
    },
    {
      max_completion_tokens: 5,
      temperature: 0.3,
      seed: 1,
      top_k: 3,
      top_p: 0.5,
      frequency_penalty: 0.1,
      presence_penalty: 0.2,
      stop: ['x'],
    },
  ],
  ['reasoning', { thinking: { type: 'enabled', token_budget: 100 } }, { reasoning_effort: 'low' }],
  ['no reasoning', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
  ['JSON', { response_format: { type: 'json_object' } }, { response_format: { type: 'json_object' } }],
  [
    'JSON of a schema',
    { response_format: { type: 'json_object', json_schema: { type: 'object' } } },
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
      },
    },
  ],
  [
    'tools',
    { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'REQUIRED', strict_tools: true },
    { tools: [{ type: 'function', function: { name: 'f', strict: true } }], tool_choice: 'required' },
  ],
  [
    'documents, in a system message of their own',
    { documents: ['one', { id: 'b', data: { title: 'T', text: 'two', page: 2 } }] },
    {
      messages: [
        {
          role: 'system',
          content:
            'Answer with the help of these documents.\n\nDocument 0\none\n\nDocument b\ntitle: T\ntext: two\npage: 2',
        },
        ...base.messages,
      ],
    },
  ],
  [
    'documents, after the system message',
    { messages: [{ role: 'system', content: 's' }, ...base.messages], documents: ['one'] },
    {
      messages: [
        { role: 'system', content: 's\n\nAnswer with the help of these documents.\n\nDocument 0\none' },
        ...base.messages,
      ],
    },
  ],
  [
    'a history with reasoning, tools and images',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: 'hm' }],
          tool_plan: 'I look.',
          tool_calls: [call],
        },
        { role: 'tool', tool_call_id: 't1', content: [{ type: 'document', document: { id: 'd', data: { a: 'b' } } }] },
        { role: 'assistant', content: 'Done.' },
      ],
    },
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        { role: 'assistant', content: 'I look.', reasoning_content: 'hm', tool_calls: [call] },
        { role: 'tool', tool_call_id: 't1', content: 'Document d\na: b' },
        { role: 'assistant', content: 'Done.' },
      ],
    },
  ],
])('translates %s', (_, more, expected) => {
  const body = bodyOf(more)
  expect(body).toEqual({ ...base, ...expected })
  expect(ChatRequest.safeParse(body).error).toBeUndefined()
})

test.each<[string, object[], string]>([
  ['a result without id', [{ role: 'tool', content: 'x' }], 'messages[0].tool_call_id'],
  ['a message without content', [{ role: 'user' }], 'messages[0].content'],
  ['an empty part', [{ role: 'user', content: [{ type: 'image_url' }] }], 'messages[0].content[0].image_url'],
  ['reasoning of a user', [{ role: 'user', content: [{ type: 'thinking' }] }], 'messages[0].content[0]'],
])('refuses %s', (_, messages, param) => {
  expect(() => bodyOf({ messages })).toThrow(expect.objectContaining({ param }) as Failure)
})

test.each<[string, object, ChatResponse['choices'][number]['finish_reason'], object, string]>([
  ['text', { content: 'Hello' }, 'stop', { content: [{ type: 'text', text: 'Hello' }] }, 'COMPLETE'],
  [
    'reasoning',
    { content: 'Hello', reasoning_content: 'hm' },
    'length',
    {
      content: [
        { type: 'thinking', thinking: 'hm' },
        { type: 'text', text: 'Hello' },
      ],
    },
    'MAX_TOKENS',
  ],
  ['a tool', { tool_calls: [call] }, 'tool_calls', { tool_calls: [call] }, 'TOOL_CALL'],
])('answers with %s', (_, message, finish, expected, reason) => {
  const completion: ChatResponse = {
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: null, refusal: null, ...message },
        logprobs: null,
        finish_reason: finish,
      },
    ],
    usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 },
  }
  const tokens = { input_tokens: 10, output_tokens: 4 }
  expect(CohereChatResponse.parse(cohereForm.answer(request, completion, facts))).toEqual({
    id: 'c1',
    finish_reason: reason,
    message: { role: 'assistant', citations: [], ...expected },
    usage: { billed_units: tokens, tokens, cached_tokens: 0 },
  })
})

test('streams reasoning, text and tools', () => {
  const stream = cohereForm.stream(request, facts)
  const chunks = chunksOf(
    [
      { role: 'assistant', content: '' },
      { reasoning_content: 'hm' },
      { content: 'He' },
      { content: 'llo' },
      { tool_calls: [{ index: 0, id: 't1', type: 'function', function: { name: 'f', arguments: '{' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '}' } }] },
    ],
    'tool_calls',
    { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 },
  )
  const text = chunks.map(chunk => stream.chunk(chunk)).join('') + stream.end()
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  const events = eventsOf(text.slice(0, -'data: [DONE]\n\n'.length))
  expect(events.map(([name]) => name)).toEqual([
    'message-start',
    'content-start',
    'content-delta',
    'content-end',
    'content-start',
    'content-delta',
    'content-delta',
    'content-end',
    'tool-call-start',
    'tool-call-delta',
    'tool-call-delta',
    'tool-call-end',
    'message-end',
  ])
  expect(events[5]![1]).toEqual({
    type: 'content-delta',
    index: 1,
    delta: { message: { content: { text: 'He' } } },
  })
  expect(events.at(-1)![1]).toMatchObject({
    id: 'chatcmpl-7',
    delta: { finish_reason: 'TOOL_CALL', usage: { tokens: { input_tokens: 1, output_tokens: 2 } } },
  })
})

test('a failure in a stream ends the message', () =>
  expect(cohereForm.stream(request, facts).failure(new Failure('worker_error', 'Broken.'), 'req_1')).toContain(
    '"finish_reason":"ERROR","error":"Broken."',
  ))
