import { expect, test } from 'vitest'
import { Failure } from '../../../../../core/failure.ts'
import { ChatRequest } from '../../../../../core/schemas/chat.ts'
import { ResponsesRequest } from '../../../../../core/schemas/responses.ts'
import { responsesForm } from '../../../../../core/tasks/chat/responses/responses-form.ts'

const bodyOf = (more: object) => responsesForm.chatBody(ResponsesRequest.parse({ model: 'm', input: 'hi', ...more }))
const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}', id: `fc_${id}` })
const called = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const tool = { type: 'function', name: 'f', parameters: { type: 'object' }, strict: true }
const offered = { type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } }
const image = 'data:image/png;base64,AAAA'

test.each<[string, object[], object[]]>([
  [
    'a text in parts is one text',
    [{ role: 'user', content: [{ type: 'input_text', text: 'a' }] }],
    [{ role: 'user', content: 'a' }],
  ],
  [
    'images by URL and by id, and files',
    [
      {
        role: 'user',
        content: [
          { type: 'input_image', image_url: image, detail: 'low' },
          { type: 'input_image', file_id: 'file-1', detail: 'auto' },
          { type: 'input_file', file_id: 'file-2' },
          { type: 'input_file', file_data: 'data:text/plain;base64,YQ==', filename: 'a.txt' },
        ],
      },
    ],
    [
      {
        role: 'user',
        content: [
          { type: 'image_url', image_url: { url: image, detail: 'low' } },
          { type: 'image_url', image_url: { url: 'file-1' } },
          { type: 'file', file: { file_id: 'file-2' } },
          { type: 'file', file: { file_data: 'data:text/plain;base64,YQ==', filename: 'a.txt' } },
        ],
      },
    ],
  ],
  [
    'reasoning, text and calls of one answer are one message',
    [
      { role: 'user', content: 'a' },
      { type: 'reasoning', id: 'rs_1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'b' }] },
      call('1'),
      call('2'),
      { type: 'function_call_output', call_id: '1', output: 'x' },
      { type: 'function_call_output', call_id: '2', output: [{ type: 'input_text', text: 'y' }] },
      { role: 'assistant', content: 'c' },
    ],
    [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b', reasoning_content: 'hm', tool_calls: [called('1'), called('2')] },
      { role: 'tool', tool_call_id: '1', content: 'x' },
      { role: 'tool', tool_call_id: '2', content: 'y' },
      { role: 'assistant', content: 'c' },
    ],
  ],
  [
    'calls after results are a message of their own',
    [call('1'), { type: 'function_call_output', call_id: '1', output: 'x' }, call('2')],
    [
      { role: 'assistant', content: null, tool_calls: [called('1')] },
      { role: 'tool', tool_call_id: '1', content: 'x' },
      { role: 'assistant', content: null, tool_calls: [called('2')] },
    ],
  ],
  [
    'two texts of the assistant are two messages',
    [
      { role: 'assistant', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
    [
      { role: 'assistant', content: 'a' },
      { role: 'assistant', content: 'b' },
    ],
  ],
  [
    'images that a tool returned follow all results',
    [
      call('1'),
      call('2'),
      { type: 'function_call_output', call_id: '1', output: [{ type: 'input_image', image_url: image }] },
      { type: 'function_call_output', call_id: '2', output: 'y' },
    ],
    [
      { role: 'assistant', content: null, tool_calls: [called('1'), called('2')] },
      { role: 'tool', tool_call_id: '1', content: 'The result follows as files.' },
      { role: 'tool', tool_call_id: '2', content: 'y' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Files that the tool call 1 returned:' },
          { type: 'image_url', image_url: { url: image } },
        ],
      },
    ],
  ],
  [
    'reasoning from its encoded form and from its summary',
    [
      { type: 'reasoning', summary: [], encrypted_content: Buffer.from('né').toString('base64') },
      { role: 'assistant', content: 'a' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
      call('1'),
    ],
    [
      { role: 'assistant', content: 'a', reasoning_content: 'né' },
      { role: 'assistant', content: null, reasoning_content: 'hm', tool_calls: [called('1')] },
    ],
  ],
])('messages: %s', (_, input, messages) => {
  const body = bodyOf({ input })
  expect(body.messages).toEqual(messages)
  expect(ChatRequest.safeParse(body).error?.issues).toBeUndefined()
})

test.each<[string, object, object]>([
  [
    'instructions',
    { instructions: 'x' },
    {
      messages: [
        { role: 'system', content: 'x' },
        { role: 'user', content: 'hi' },
      ],
    },
  ],
  [
    'limits',
    { max_output_tokens: 9, temperature: 0, top_p: 1 },
    { max_completion_tokens: 9, temperature: 0, top_p: 1 },
  ],
  ['reasoning', { reasoning: { effort: 'low', summary: 'auto' } }, { reasoning_effort: 'low' }],
  ['log probabilities', { top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
  ['included log probabilities', { include: ['message.output_text.logprobs'] }, { logprobs: true }],
  [
    'a schema',
    { text: { format: { type: 'json_schema', name: 's', schema: {}, strict: true }, verbosity: 'low' } },
    { response_format: { type: 'json_schema', json_schema: { name: 's', schema: {}, strict: true } } },
  ],
  ['plain text', { text: { format: { type: 'text' } } }, {}],
  ['any JSON', { text: { format: { type: 'json_object' } } }, { response_format: { type: 'json_object' } }],
  [
    'tools',
    { tools: [tool], tool_choice: { type: 'function', name: 'f' }, parallel_tool_calls: false },
    { tools: [offered], tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false },
  ],
  [
    'allowed tools',
    {
      tools: [tool, { ...tool, name: 'g' }],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] },
    },
    { tools: [offered], tool_choice: 'required' },
  ],
  ['a choice without tools', { tool_choice: 'auto', tools: [], parallel_tool_calls: true }, {}],
  [
    'what has no effect',
    {
      store: true,
      truncation: 'auto',
      metadata: { a: 'b' },
      previous_response_id: null,
      background: false,
      stream: true,
    },
    {},
  ],
])('body: %s', (_, more, body) => {
  expect(bodyOf(more)).toEqual({ model: 'm', messages: [{ role: 'user', content: 'hi' }], ...body })
  expect(ChatRequest.safeParse(bodyOf(more)).error?.issues).toBeUndefined()
})

test.each<[object, string, string]>([
  [{ previous_response_id: 'resp_1' }, 'unsupported_parameter', 'previous_response_id'],
  [{ conversation: 'c' }, 'unsupported_parameter', 'conversation'],
  [{ prompt: { id: 'p' } }, 'unsupported_parameter', 'prompt'],
  [{ background: true }, 'unsupported_parameter', 'background'],
  [{ tools: [{ type: 'web_search' }] }, 'unsupported_parameter', 'tools[0].type'],
  [{ tools: [{ type: 'function' }] }, 'missing_required_parameter', 'tools[0].name'],
  [{ tools: [{ type: 'function', name: 'a b' }] }, 'invalid_value', 'tools[0].name'],
  [{ tools: [tool], tool_choice: { type: 'function', name: 'g' } }, 'invalid_value', 'tool_choice.name'],
  [{ tool_choice: { type: 'mcp' } }, 'unsupported_parameter', 'tool_choice.type'],
  [{ input: [{ type: 'item_reference', id: 'a' }] }, 'unsupported_parameter', 'input[0]'],
  [{ input: [{ type: 'web_search_call' }] }, 'unsupported_parameter', 'input[0].type'],
  [{ input: [{ content: 'a' }] }, 'missing_required_parameter', 'input[0].role'],
  [{ input: [{ role: 'user' }] }, 'missing_required_parameter', 'input[0].content'],
  [{ input: [{ type: 'function_call_output', output: 'a' }] }, 'missing_required_parameter', 'input[0].call_id'],
  [{ input: [{ role: 'user', content: [{ type: 'x' }] }] }, 'unsupported_parameter', 'input[0].content[0].type'],
  [
    { input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'a' }] }] },
    'unsupported_parameter',
    'input[0].content[0].file_url',
  ],
])('refuses %j', (more, code, param) => {
  let failure: unknown
  try {
    bodyOf(more)
  } catch (thrown) {
    failure = thrown
  }
  expect(failure).toBeInstanceOf(Failure)
  expect(failure).toMatchObject({ code, param })
})
