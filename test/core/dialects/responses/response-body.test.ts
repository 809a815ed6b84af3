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
    'instructions of an agent, and its context beside the message of the user',
    {
      instructions: 'Be short.',
      input: [
        { role: 'developer', content: 'Ask first.' },
        { role: 'user', content: 'The folder is notes.' },
        { role: 'user', content: 'Hi' },
        { role: 'developer', content: 'The mode has changed.' },
      ],
    },
    [
      { role: 'system', content: 'Be short.\n\nAsk first.' },
      { role: 'user', content: 'The folder is notes.\n\nHi\n\n<system>\nThe mode has changed.\n</system>' },
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
  [{ input: [{ role: 'robot', content: 'a' }] }, 'invalid_value', 'input[0].role'],
  [{ input: [{ role: 'user' }] }, 'missing_required_parameter', 'input[0].content'],
  [{ input: [{ type: 'function_call', name: 'f' }] }, 'missing_required_parameter', 'input[0].call_id'],
  [{ input: [{ type: 'item_reference', id: 'x' }] }, 'not_found', 'input[0].id'],
  [{ input: [{ type: 'item_reference', id: 'constructor' }] }, 'not_found', 'input[0].id'],
  [{ input: [{ role: 'user', content: [{ type: 'video' }] }] }, 'unsupported_parameter', 'input[0].content[0].type'],
  [{ previous_response_id: 'toString' }, 'previous_response_not_found', 'previous_response_id'],
  [{ background: true, store: false }, 'invalid_value', 'store'],
  [{ conversation: 'a' }, 'unsupported_parameter', 'conversation'],
  [{ prompt: { id: 'a' } }, 'unsupported_parameter', 'prompt'],
  [{ max_output_tokens: 0 }, 'invalid_value', 'max_output_tokens'],
])('%j is refused with %s at %s', (request, code, param) => {
  expect(() => bodyOf({ input: 'a', ...request })).toThrow(expect.objectContaining({ code, param }))
})

const patch = {
  type: 'custom',
  name: 'patch',
  description: 'Edits.',
  format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
}
const spaces = [
  {
    type: 'namespace',
    name: 'left',
    tools: [
      { ...f, name: 'go' },
      { ...f, name: 'stop' },
    ],
  },
  { type: 'namespace', name: 'right', tools: [{ ...f, name: 'go' }] },
]
const namesOf = (body: Record<string, unknown>) =>
  (body.tools as { function: { name: string } }[] | undefined)?.map(tool => tool.function.name)

test.each<[what: string, request: object, names: string[] | undefined, choice: unknown, ignored: string[]]>([
  ['a custom tool is a function of one text', { tools: [patch] }, ['patch'], undefined, ['tools[0].format']],
  ['a namespace is flattened', { tools: [spaces[0]] }, ['go', 'stop'], undefined, []],
  ['the same name in two namespaces', { tools: spaces }, ['left__go', 'stop', 'right__go'], undefined, []],
  [
    'tools that OpenAI runs',
    { tools: [f, { type: 'web_search', external_web_access: false }, { type: 'local_shell' }] },
    ['f'],
    undefined,
    ['tools[1]', 'tools[2]'],
  ],
  [
    'nothing but such tools',
    { tools: [{ type: 'tool_search', execution: 'client' }], tool_choice: 'required' },
    undefined,
    undefined,
    ['tools[0]', 'tool_choice'],
  ],
  ['the choice of such a tool', { tools: [f], tool_choice: { type: 'mcp' } }, ['f'], undefined, ['tool_choice']],
  [
    'the choice of a custom tool',
    { tools: [f, { type: 'custom', name: 'note' }], tool_choice: { type: 'custom', name: 'note' } },
    ['f', 'note'],
    { type: 'function', function: { name: 'note' } },
    [],
  ],
  [
    'allowed tools',
    {
      tools: [f, { type: 'custom', name: 'note' }],
      tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'note' }] },
    },
    ['note'],
    'required',
    [],
  ],
  [
    'a tool that an item adds',
    {
      tools: [f],
      input: [
        { type: 'additional_tools', role: 'developer', tools: [{ ...f, name: 'g' }] },
        { role: 'user', content: 'a' },
      ],
    },
    ['f', 'g'],
    undefined,
    [],
  ],
])('tools: %s', (_what, request, names, choice, ignored) => {
  const { body, notes } = chatBodyOf('responses', { model: 'm', input: 'a', ...request }, nothing)
  expect([namesOf(body), body.tool_choice, notes.ignored]).toEqual([names, choice, ignored])
  expect(notes.schemas).toHaveLength(names?.length ?? 0)
})

test('tools that an item adds have its path', () => {
  const item = { type: 'additional_tools', tools: [{ type: 'web_search' }, { ...f, name: 'g' }] }
  const { notes } = chatBodyOf(
    'responses',
    { model: 'm', input: [{ role: 'user', content: 'a' }, item], tools: [f] },
    nothing,
  )
  expect(notes).toEqual({
    ignored: ['input[1].tools[0]'],
    schemas: ['tools[0].parameters', 'input[1].tools[1].parameters'],
  })
})

test('a custom tool is described with its grammar', () => {
  const [tool] = bodyOf({ input: 'a', tools: [patch] }).tools as { function: Record<string, unknown> }[]
  expect(tool!.function).toMatchObject({
    name: 'patch',
    description: 'Edits.\n\nThe text follows this lark grammar:\nstart: "x"',
    parameters: { required: ['input'] },
  })
})

const toolCall = (name: string, text: string, id = 'c') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
})
const toolAnswer = (content: string, id = 'c') => ({ role: 'tool', tool_call_id: id, content })

test.each<[what: string, items: object[], messages: object[], ignored: string[]]>([
  [
    'a custom call',
    [
      { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: 'x' },
      { type: 'custom_tool_call_output', call_id: 'c', output: 'done' },
    ],
    [toolCall('patch', '{"input":"x"}'), toolAnswer('done')],
    [],
  ],
  [
    'a call of a shell, whose output names the item',
    [
      { type: 'local_shell_call', id: 'l', call_id: 'c', action: { command: ['ls'] } },
      { type: 'local_shell_call_output', id: 'l', output: 'a.txt' },
    ],
    [toolCall('local_shell', '{"command":["ls"]}'), toolAnswer('a.txt')],
    [],
  ],
  [
    'an output of another form',
    [
      { type: 'shell_call', call_id: 'c', action: {} },
      { type: 'shell_call_output', call_id: 'c', output: [{ stdout: 'a', outcome: { type: 'exit' } }] },
    ],
    [toolCall('shell', '{}'), toolAnswer('[{"stdout":"a","outcome":{"type":"exit"}}]')],
    [],
  ],
  [
    'a call in a namespace',
    [{ type: 'function_call', call_id: 'c', namespace: 'right', name: 'go', arguments: '{}' }],
    [toolCall('right__go', '{}')],
    [],
  ],
  [
    'what OpenAI ran',
    [
      { type: 'web_search_call', id: 'w', status: 'completed', action: { query: 'x' } },
      { type: 'compaction', encrypted_content: 'x' },
      { type: 'mcp_list_tools', tools: [{ name: 'x' }] },
    ],
    [],
    ['input[0]', 'input[1]', 'input[2]'],
  ],
])('items: %s', (_what, items, messages, ignored) => {
  const request = { model: 'm', input: [...items, { role: 'user', content: 'a' }], tools: spaces }
  const { body, notes } = chatBodyOf('responses', request, nothing)
  expect(body.messages).toEqual([...messages, { role: 'user', content: 'a' }])
  expect(notes.ignored).toEqual(ignored)
})

test('items that are left out of the prompt are kept whole in the input', () => {
  const item = { type: 'web_search_call', id: 'w', status: 'completed', action: { type: 'search', query: 'x' } }
  const { request } = chatBodyOf('responses', { model: 'm', input: [item] }, nothing)
  expect(JSON.parse((request as { input: string }).input)).toEqual([item])
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
