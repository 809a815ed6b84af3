import { expect, test } from 'vitest'
import { chatBodyOf } from '../../../../core/dialects/chat-forms.ts'
import { itemId, responseOfItem } from '../../../../core/dialects/responses/response-output.ts'

const nothing = { id: 'resp_01M84YXQ8M0J7P1ZE8331KR1H8', earlier: {}, holders: [] }
const bodyOf = (request: object, context: object = {}) =>
  chatBodyOf('responses', { model: 'm', ...request }, { ...nothing, ...context }).body
const call = { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":1}' }
const output = { type: 'function_call_output', call_id: 'c1', output: 'done' }
const chatCall = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }

test.each<[name: string, request: object, messages: object[]]>([
  ['a text', { input: 'Hi' }, [{ role: 'user', content: 'Hi' }]],
  [
    'instructions come first',
    { instructions: 'Be short.', input: 'Hi' },
    [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'Hi' },
    ],
  ],
  [
    'several texts of a message are one text',
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_text', text: 'b' },
          ],
        },
      ],
    },
    [{ role: 'user', content: 'a\nb' }],
  ],
  [
    'an image by its address and by its id',
    {
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_image', image_url: 'https://a/b.png', detail: 'low' },
            { type: 'input_image', file_id: 'file-1', detail: 'auto' },
          ],
        },
      ],
    },
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'https://a/b.png', detail: 'low' } },
          { type: 'image_url', image_url: { url: 'file-1' } },
        ],
      },
    ],
  ],
  [
    'a call belongs to the message before it, its output follows',
    { input: [{ role: 'assistant', content: 'I look.' }, call, output] },
    [
      { role: 'assistant', content: 'I look.', tool_calls: [chatCall] },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
    ],
  ],
  [
    'calls in a row are one message, a text after them is another',
    { input: [call, { ...call, call_id: 'c2' }, { role: 'assistant', content: 'And?' }] },
    [
      { role: 'assistant', content: null, tool_calls: [chatCall, { ...chatCall, id: 'c2' }] },
      { role: 'assistant', content: 'And?' },
    ],
  ],
  [
    'reasoning belongs to what follows it',
    { input: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] }, call] },
    [{ role: 'assistant', content: null, reasoning_content: 'Hm.', tool_calls: [chatCall] }],
  ],
])('%s', (_, request, messages) => {
  expect(bodyOf(request).messages).toEqual(messages)
})

test('earlier items come between the instructions and the input, referenced ones in their place', () => {
  const context = {
    earlier: { resp_1: [{ input: '[{"role":"user","content":"first"}]', answer: '{"output":[]}' }] },
    holders: [
      {
        input: '[]',
        answer: JSON.stringify({
          output: [
            { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'second' }] },
            { id: 'msg_2', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'other' }] },
          ],
        }),
      },
    ],
  }
  const request = {
    instructions: 'i',
    previous_response_id: 'resp_1',
    input: [
      { type: 'item_reference', id: 'msg_1' },
      { role: 'user', content: 'third' },
    ],
  }
  expect(bodyOf(request, context).messages).toEqual([
    { role: 'system', content: 'i' },
    { role: 'user', content: 'first' },
    { role: 'assistant', content: 'second' },
    { role: 'user', content: 'third' },
  ])
})

const f = { type: 'function', name: 'f', parameters: { type: 'object' }, strict: true }
const g = { type: 'function', name: 'g' }
const chatF = { type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } }
const chatG = { type: 'function', function: { name: 'g' } }
test.each<[request: object, body: object]>([
  [{ tools: [f] }, { tools: [chatF] }],
  [
    { tools: [f, g], tool_choice: { type: 'function', name: 'g' } },
    { tools: [chatF, chatG], tool_choice: { type: 'function', function: { name: 'g' } } },
  ],
  [
    {
      tools: [f, g],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] },
    },
    { tools: [chatG], tool_choice: 'required' },
  ],
  [{ tool_choice: 'auto' }, {}],
  [{ max_output_tokens: 5 }, { max_completion_tokens: 5 }],
  [{ reasoning: { effort: 'low' } }, { reasoning_effort: 'low' }],
  [{ top_logprobs: 3 }, { logprobs: true, top_logprobs: 3 }],
  [{ include: ['message.output_text.logprobs'] }, { logprobs: true }],
  [{ text: { format: { type: 'text' } } }, {}],
  [
    { text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' } } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
  ],
  [
    { temperature: null, metadata: { a: 'b' }, stream: true },
    { stream: true, stream_options: { include_usage: true } },
  ],
  [{ stream: true, background: true }, {}],
])('%j becomes %j', (request, body) => {
  const { messages: _, model: __, ...rest } = bodyOf({ input: 'a', ...request })
  expect(rest).toEqual(body)
})

test.each<[request: object, code: string, param: string]>([
  [{ input: [] }, 'invalid_value', 'input'],
  [{ input: [{ type: 'computer_call' }] }, 'unsupported_parameter', 'input[0].type'],
  [{ input: [{ role: 'robot', content: 'a' }] }, 'invalid_value', 'input[0].role'],
  [{ input: [{ role: 'user' }] }, 'missing_required_parameter', 'input[0].content'],
  [{ input: [{ type: 'function_call', name: 'f' }] }, 'missing_required_parameter', 'input[0].call_id'],
  [{ input: [{ type: 'item_reference', id: 'x' }] }, 'not_found', 'input[0].id'],
  [{ input: [{ type: 'item_reference', id: 'constructor' }] }, 'not_found', 'input[0].id'],
  [{ input: [{ role: 'user', content: [{ type: 'video' }] }] }, 'unsupported_parameter', 'input[0].content[0].type'],
  [{ previous_response_id: 'toString' }, 'not_found', 'previous_response_id'],
  [{ background: true, store: false }, 'invalid_value', 'store'],
  [{ conversation: 'a' }, 'unsupported_parameter', 'conversation'],
  [{ prompt: { id: 'a' } }, 'unsupported_parameter', 'prompt'],
  [{ tools: [f, { type: 'file_search' }] }, 'unsupported_parameter', 'tools[1].type'],
  [{ tools: [f], tool_choice: { type: 'mcp' } }, 'unsupported_parameter', 'tool_choice.type'],
  [{ max_output_tokens: 0 }, 'invalid_value', 'max_output_tokens'],
])('%j is refused with %s at %s', (request, code, param) => {
  expect(() => bodyOf({ input: 'a', ...request })).toThrow(expect.objectContaining({ code, param }))
})

test('the id of an item names its response, and no other text does', () => {
  const id = itemId('function_call', nothing.id, 12)
  expect([id, responseOfItem(id)]).toEqual(['fc_01M84YXQ8M0J7P1ZE8331KR1H8o12', nothing.id])
  expect(['', 'msg_1', 'msg_01M84YXQ8M0J7P1ZE8331KR1H8', `${id}x`].map(responseOfItem)).toEqual(
    Array(4).fill(undefined),
  )
})

test.each([
  [{}, true],
  [{ store: false }, false],
  [{ input: 'a'.repeat(5 << 20) }, false],
])('what is remembered of %j: kept is %s', (request, isStored) => {
  const { request: remembered } = chatBodyOf('responses', { model: 'm', input: 'a', ...request }, nothing)
  expect(remembered).toMatchObject({ id: nothing.id, isStored, request: { model: 'm' } })
  expect((remembered as { input: unknown }).input).toEqual(
    isStored ? '[{"type":"message","role":"user","content":"a","id":"msg_01M84YXQ8M0J7P1ZE8331KR1H8i0"}]' : null,
  )
})
