import { expect, test } from 'vitest'
import { anthropicForm } from '../../../../core/dialects/anthropic/anthropic-form.ts'
import { AnthropicRequest } from '../../../../core/dialects/anthropic/anthropic-schemas.ts'
import { Failure } from '../../../../core/failure.ts'
import { ChatRequest } from '../../../../core/schemas/chat.ts'

const base = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
const chat = { model: 'm', max_completion_tokens: 9, messages: [{ role: 'user', content: 'hi' }] }
const bodyOf = (more: object) =>
  anthropicForm.chatBody(AnthropicRequest.parse({ ...base, ...more }), undefined, { ignored: [], schemas: [] })
const user = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const assistant = (...content: object[]) => ({ messages: [{ role: 'assistant', content }] })
const tool = { name: 'weather', input_schema: { type: 'object' } }
const png = { type: 'base64', media_type: 'image/png', data: 'AA==' }

test.each<[string, object, object]>([
  ['plain text', {}, {}],
  ['a system text', { system: 's' }, { messages: [{ role: 'system', content: 's' }, ...chat.messages] }],
  [
    'system blocks, whose cache_control is ignored',
    {
      system: [
        { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'b' },
      ],
    },
    { messages: [{ role: 'system', content: 'a\n\nb' }, ...chat.messages] },
  ],
  [
    'an instruction after the message of the user',
    { messages: [...base.messages, { role: 'system', content: [{ type: 'text', text: 'Be kind.' }] }] },
    { messages: [{ role: 'user', content: 'hi\n\n<system>\nBe kind.\n</system>' }] },
  ],
  [
    'sampling',
    { temperature: 0.5, top_p: 0.9, top_k: 4, stop_sequences: ['x'], stream: true, metadata: { user_id: 'u' } },
    { temperature: 0.5, top_p: 0.9, top_k: 4, stop: ['x'], user: 'u' },
  ],
  ['fields without effect', { service_tier: 'auto', stop_sequences: [], betas: ['x'], context_management: {} }, {}],
  ['thinking disabled', { thinking: { type: 'disabled' } }, { reasoning_effort: 'none' }],
  ['a small budget', { thinking: { type: 'enabled', budget_tokens: 1024 } }, { reasoning_effort: 'low' }],
  ['a middle budget', { thinking: { type: 'enabled', budget_tokens: 8192 } }, { reasoning_effort: 'medium' }],
  ['a large budget', { thinking: { type: 'enabled', budget_tokens: 32_000 } }, { reasoning_effort: 'high' }],
  ['adaptive thinking', { thinking: { type: 'adaptive', display: 'summarized' } }, {}],
  ['an effort', { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }, { reasoning_effort: 'high' }],
  [
    'a schema',
    { output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } },
    {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema: { type: 'object' }, strict: true },
      },
    },
  ],
  [
    'tools',
    { tools: [{ ...tool, description: 'd', type: 'custom', strict: true }], tool_choice: { type: 'any' } },
    {
      tools: [
        {
          type: 'function',
          function: { name: 'weather', description: 'd', parameters: { type: 'object' }, strict: true },
        },
      ],
      tool_choice: 'required',
    },
  ],
  [
    'one tool at a time',
    { tools: [tool], tool_choice: { type: 'tool', name: 'weather', disable_parallel_tool_use: true } },
    {
      tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }],
      tool_choice: { type: 'function', function: { name: 'weather' } },
      parallel_tool_calls: false,
    },
  ],
  [
    'images',
    user(
      { type: 'text', text: 'what?' },
      { type: 'image', source: png },
      { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
      { type: 'image', source: { type: 'file', file_id: 'file-1' } },
    ),
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what?' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
            { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
            { type: 'image_url', image_url: { url: 'file-1' } },
          ],
        },
      ],
    },
  ],
  [
    'documents of text',
    user(
      { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'body' } },
      { type: 'document', source: { type: 'content', content: 'inner' } },
      { type: 'search_result', source: 'https://x.test', title: 'R', content: [{ type: 'text', text: 'found' }] },
    ),
    { messages: [{ role: 'user', content: 'T\nbody\n\nDocument\n\ninner\n\nR\nhttps://x.test\n\nfound' }] },
  ],
  [
    'a PDF',
    user({
      type: 'document',
      title: 'a.pdf',
      source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' },
    }),
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' } }],
        },
      ],
    },
  ],
  [
    'an answer with reasoning, text and a tool',
    assistant(
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'redacted_thinking', data: 'x' },
      { type: 'text', text: 'Let me ' },
      { type: 'text', text: 'look.' },
      { type: 'tool_use', id: 't1', name: 'weather', input: { city: 'Ulm' } },
    ),
    {
      messages: [
        {
          role: 'assistant',
          content: 'Let me look.',
          reasoning_content: 'hm',
          tool_calls: [{ id: 't1', type: 'function', function: { name: 'weather', arguments: '{"city":"Ulm"}' } }],
        },
      ],
    },
  ],
  [
    'results of tools, before the rest of the message',
    user(
      { type: 'tool_result', tool_use_id: 't1', content: 'sunny' },
      { type: 'tool_result', tool_use_id: 't2', is_error: true, content: [{ type: 'text', text: 'no such city' }] },
      { type: 'tool_result', tool_use_id: 't3' },
      { type: 'text', text: 'Well?' },
    ),
    {
      messages: [
        { role: 'tool', tool_call_id: 't1', content: 'sunny' },
        { role: 'tool', tool_call_id: 't2', content: 'Error: no such city' },
        { role: 'tool', tool_call_id: 't3', content: '' },
        { role: 'user', content: 'Well?' },
      ],
    },
  ],
  [
    'a tool that returns an image',
    user({ type: 'tool_result', tool_use_id: 't1', content: [{ type: 'image', source: png }] }),
    {
      messages: [
        { role: 'tool', tool_call_id: 't1', content: 'The result follows as files.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Files that the tool call t1 returned:' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
      ],
    },
  ],
])('%s', (_, request, expected) => {
  const body = bodyOf(request)
  expect(body).toEqual({ ...chat, ...expected })
  expect(ChatRequest.safeParse(body).error).toBeUndefined()
})

test.each<[string, object, string, string]>([
  ['a tool without a schema', { tools: [{ name: 'a' }] }, 'tools[0].input_schema', 'Missing'],
  ['an impossible name', { tools: [{ ...tool, name: 'a\nb' }] }, 'tools[0].name', '1 to 128 characters'],
  [
    'an unknown tool',
    { tools: [tool], tool_choice: { type: 'tool', name: 'other' } },
    'tool_choice.name',
    "'other', which is not",
  ],
  ['a text without text', user({ type: 'text' }), 'messages[0].content[0].text', 'Missing'],
  ['an image without source', user({ type: 'image' }), 'messages[0].content[0].source', 'must be an object'],
  [
    'a document by URL',
    user({ type: 'document', source: { type: 'url', url: 'https://x.test/a.pdf' } }),
    'messages[0].content[0].source',
    "of the type 'url'",
  ],
])('refuses %s', (_, request, param, message) => {
  try {
    bodyOf(request)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure)
    expect((thrown as Failure).param).toBe(param)
    expect((thrown as Failure).message).toContain(message)
    return
  }
  throw new Error('was accepted')
})

const webSearch = { type: 'web_search_20250305', name: 'web_search' }
const calls = { tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }] }
const said = (content: string) => ({ messages: [{ role: 'assistant', content }] })

/** What an agent sends that Anthropic runs or reads: left out, and named. */
test.each<[what: string, request: object, expected: object, ignored: string[]]>([
  ['a server tool', { tools: [webSearch] }, {}, ['tools[0]']],
  [
    'a tool of Anthropic beside an own one',
    { tools: [{ type: 'bash_20250124', name: 'bash' }, tool] },
    calls,
    ['tools[0]'],
  ],
  [
    'the choice of a server tool',
    { tools: [tool, webSearch], tool_choice: { type: 'tool', name: 'web_search' } },
    { ...calls, tool_choice: 'auto' },
    ['tools[1]', 'tool_choice'],
  ],
  [
    'the use and the result of a server tool',
    assistant(
      { type: 'server_tool_use', id: 'a', name: 'web_search', input: {} },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'a',
        content: [{ type: 'web_search_result', url: 'https://x.test' }],
      },
      { type: 'text', text: 'So.' },
    ),
    said('So.'),
    ['messages[0].content[0]', 'messages[0].content[1]'],
  ],
  [
    'reasoning of another maker',
    assistant({ type: 'thinking', signature: 'x' }, { type: 'text', text: 'So.' }),
    { messages: [{ role: 'assistant', content: 'So.', reasoning_content: '' }] },
    [],
  ],
  [
    'a reference to a tool',
    user({ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'tool_reference', tool_name: 'weather' }] }),
    { messages: [{ role: 'tool', tool_call_id: 'a', content: 'The tool weather can be used.' }] },
    [],
  ],
  [
    'MCP servers and a container',
    { mcp_servers: [{ type: 'url', url: 'https://x.test' }], container: 'c' },
    {},
    ['mcp_servers', 'container'],
  ],
])('leaves out %s', (_what, request, expected, ignored) => {
  const notes = { ignored: [], schemas: [] }
  const body = anthropicForm.chatBody(AnthropicRequest.parse({ ...base, ...request }), undefined, notes)
  expect(body).toEqual({ ...chat, ...expected })
  expect(notes.ignored).toEqual(ignored)
})

test('the schemas of tools have the paths of the request', () => {
  const notes = { ignored: [], schemas: [] }
  anthropicForm.chatBody(AnthropicRequest.parse({ ...base, tools: [webSearch, tool] }), undefined, notes)
  expect(notes.schemas).toEqual(['tools[1].input_schema'])
})
