import { expect, test } from 'vitest'
import { anthropicError, anthropicForm, anthropicStatus } from '../../../../core/dialects/anthropic/anthropic-form.ts'
import { AnthropicMessage } from '../../../../core/dialects/anthropic/anthropic-schemas.ts'
import { Failure } from '../../../../core/failure.ts'
import type { ChatResponse } from '../../../../core/schemas/chat.ts'
import { chunksOf, eventsOf } from '../_chunks.ts'

const facts = { createdAt: 0, queuedMs: 0 }
const usage = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 3, audio_tokens: 0 },
}
const counts = {
  input_tokens: 7,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 3,
  output_tokens: 4,
  service_tier: 'standard',
}
const call = { id: 't1', type: 'function' as const, function: { name: 'f', arguments: '{"a":1}' } }

function answerOf(message: object, finish: ChatResponse['choices'][number]['finish_reason'] = 'stop') {
  const completion: ChatResponse = {
    id: 'chatcmpl-7',
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
    usage,
  }
  return AnthropicMessage.parse(anthropicForm.answer({ inputTokens: 9 }, completion, facts))
}

test.each<[string, object, Parameters<typeof answerOf>[1], string, object[]]>([
  ['text', { content: 'Hello' }, 'stop', 'end_turn', [{ type: 'text', text: 'Hello' }]],
  ['nothing', { content: '' }, 'length', 'max_tokens', []],
  [
    'reasoning before text',
    { content: 'Hello', reasoning_content: 'hm' },
    'stop',
    'end_turn',
    [
      { type: 'thinking', thinking: 'hm', signature: 'unsigned' },
      { type: 'text', text: 'Hello' },
    ],
  ],
  [
    'a tool',
    { tool_calls: [call] },
    'tool_calls',
    'tool_use',
    [{ type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } }],
  ],
  [
    'a tool call that was cut off',
    { tool_calls: [{ ...call, function: { name: 'f', arguments: '{"a' } }] },
    'length',
    'max_tokens',
    [{ type: 'tool_use', id: 't1', name: 'f', input: { arguments: '{"a' } }],
  ],
  ['a refusal', { refusal: 'No.' }, 'stop', 'refusal', [{ type: 'text', text: 'No.' }]],
])('answers with %s', (_, message, finish, stop, content) =>
  expect(answerOf(message, finish)).toEqual({
    id: 'msg_7',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content,
    stop_reason: stop,
    stop_sequence: null,
    usage: counts,
  }),
)

test('streams reasoning, text and tools as blocks of their own', () => {
  const stream = anthropicForm.stream({ inputTokens: 9 }, facts)
  const begun = (index: number, id: string) => ({ index, id, type: 'function' as const, function: { name: 'f' } })
  const chunks = chunksOf(
    [
      { role: 'assistant', content: '' },
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { content: 'Let me' },
      { content: ' look.' },
      { tool_calls: [begun(0, 't1')] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a"' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] },
      { tool_calls: [begun(1, 't2')] },
    ],
    'tool_calls',
    usage,
  )
  const events = eventsOf(chunks.map(chunk => stream.chunk(chunk)).join('') + stream.end())
  for (const [name, data] of events) expect(data.type).toBe(name)
  const shown = events.map(([name, { index, delta, content_block }]) => [name, index, delta ?? content_block])
  expect(events[0]![1].message).toMatchObject({ id: 'msg_7', model: 'm', content: [], stop_reason: null })
  expect(shown.slice(1)).toEqual([
    ['ping', undefined, undefined],
    ['content_block_start', 0, { type: 'thinking', thinking: '', signature: '' }],
    ['content_block_delta', 0, { type: 'thinking_delta', thinking: 'h' }],
    ['content_block_delta', 0, { type: 'thinking_delta', thinking: 'm' }],
    ['content_block_delta', 0, { type: 'signature_delta', signature: 'unsigned' }],
    ['content_block_stop', 0, undefined],
    ['content_block_start', 1, { type: 'text', text: '' }],
    ['content_block_delta', 1, { type: 'text_delta', text: 'Let me' }],
    ['content_block_delta', 1, { type: 'text_delta', text: ' look.' }],
    ['content_block_stop', 1, undefined],
    ['content_block_start', 2, { type: 'tool_use', id: 't1', name: 'f', input: {} }],
    ['content_block_delta', 2, { type: 'input_json_delta', partial_json: '{"a"' }],
    ['content_block_delta', 2, { type: 'input_json_delta', partial_json: ':1}' }],
    ['content_block_stop', 2, undefined],
    ['content_block_start', 3, { type: 'tool_use', id: 't2', name: 'f', input: {} }],
    ['content_block_stop', 3, undefined],
    ['message_delta', undefined, { stop_reason: 'tool_use', stop_sequence: null }],
    ['message_stop', undefined, undefined],
  ])
  expect(events.at(-2)![1].usage).toEqual(counts)
})

test('a failure in a stream is an error event', () => {
  const failed = new Failure('worker_error', 'The engine broke.')
  expect(eventsOf(anthropicForm.stream({ inputTokens: 9 }, facts).failure(failed, 'req_1'))).toEqual([
    [
      'error',
      {
        type: 'error',
        error: { type: 'api_error', message: 'The engine broke.', code: 'worker_error', param: null },
        request_id: 'req_1',
      },
    ],
  ])
})

test.each([
  ['invalid_value', 400, 'invalid_request_error'],
  ['invalid_api_key', 401, 'authentication_error'],
  ['insufficient_scope', 403, 'permission_error'],
  ['model_not_found', 404, 'not_found_error'],
  ['payload_too_large', 413, 'request_too_large'],
  ['rate_limit', 429, 'rate_limit_error'],
  ['quota_exceeded', 429, 'billing_error'],
  ['internal_error', 500, 'api_error'],
  ['no_capacity', 529, 'overloaded_error'],
  ['timeout', 504, 'timeout_error'],
] as const)('%s has status %i and type %s', (code, status, type) => {
  const failure = new Failure(code, 'm')
  expect([anthropicStatus(failure), anthropicError(failure, 'r')]).toMatchObject([status, { error: { type } }])
})
