import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { prepareChat, shapeChat } from '../../../../core/tasks/chat/chat-completion.ts'
import { catalogOf } from '../_catalog.ts'

const base = { model: 'm', messages: [{ role: 'user', content: 'hi' }] }
const prepared = (more: object, catalog = catalogOf()) => prepareChat({ ...base, ...more }, catalog)
const sent = (more: object, catalog = catalogOf()) =>
  JSON.parse(prepared(more, catalog).bodies[0] as string) as Record<string, unknown>
function refusal(more: object, catalog = catalogOf()): [string, string | undefined] {
  try {
    prepared(more, catalog)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Failure)
    return [(thrown as Failure).code, (thrown as Failure).param]
  }
  throw new Error('was taken')
}

test('an unlisted field is dropped, never forwarded', () =>
  expect(
    sent({ api_base: 'http://evil', prompt_embeds: 'x', chat_template: 'x', user: 'u', metadata: { a: 'b' } }),
  ).toEqual(base))

test('fields that the model’s configuration lists are forwarded', () =>
  expect(
    sent({ guided_regex: 'a+', other: 1 }, catalogOf({}, { extraParams: ['guided_regex', 'constructor'] })),
  ).toEqual({ ...base, guided_regex: 'a+' }))

test.each<[string, object, object]>([
  ['nulls are as good as absent', { temperature: null, stop: null }, {}],
  [
    'sampling goes through',
    { temperature: 0.5, top_p: 0.9, seed: 7, stop: ['a'] },
    { temperature: 0.5, top_p: 0.9, seed: 7, stop: ['a'] },
  ],
  ['max_tokens goes through', { max_tokens: 5 }, { max_tokens: 5 }],
  [
    'max_completion_tokens wins over max_tokens',
    { max_tokens: 5, max_completion_tokens: 6 },
    { max_completion_tokens: 6 },
  ],
  [
    'streams always ask the engine for usage',
    { stream: true },
    { stream: true, stream_options: { include_usage: true } },
  ],
  [
    'functions become tools',
    { functions: [{ name: 'f' }], function_call: { name: 'f' } },
    {
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: { type: 'function', function: { name: 'f' } },
    },
  ],
  [
    '$schema is taken out',
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { $schema: 'x', type: 'object' } } } },
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
  ],
])('%s', (_, more, expected) => expect(sent(more)).toEqual({ ...base, ...expected }))

test('the engine gets its own model name', () =>
  expect(sent({}, catalogOf({ upstreamId: 'org/real' })).model).toBe('org/real'))

test.each<[string, object, string, string | undefined]>([
  ['no model', { model: undefined }, 'missing_required_parameter', 'model'],
  ['unknown model', { model: 'other' }, 'model_not_found', 'model'],
  ['no messages', { messages: undefined }, 'missing_required_parameter', 'messages'],
  ['empty messages', { messages: [] }, 'invalid_value', 'messages'],
  ['messages of the wrong type', { messages: 'hi' }, 'invalid_type', 'messages'],
  ['unknown role', { messages: [{ role: 'robot', content: 'x' }] }, 'invalid_value', 'messages[0].role'],
  ['content missing', { messages: [{ role: 'user' }] }, 'missing_required_parameter', 'messages[0].content'],
  [
    'a tool message without its call',
    { messages: [{ role: 'tool', content: 'x' }] },
    'missing_required_parameter',
    'messages[0].tool_call_id',
  ],
  [
    'a part of unknown type',
    { messages: [{ role: 'user', content: [{ type: 'hologram' }] }] },
    'invalid_value',
    'messages[0].content[0].type',
  ],
  ['temperature too high', { temperature: 2.1 }, 'invalid_value', 'temperature'],
  ['temperature as text', { temperature: 'hot' }, 'invalid_type', 'temperature'],
  ['n too high', { n: 129 }, 'invalid_value', 'n'],
  ['very many stops', { stop: Array.from({ length: 1001 }, String) }, 'array_above_max_length', 'stop'],
  ['stream_options without stream', { stream_options: { include_usage: true } }, 'invalid_value', 'stream_options'],
  ['top_logprobs without logprobs', { top_logprobs: 2 }, 'invalid_value', 'top_logprobs'],
  ['tool_choice without tools', { tool_choice: 'required' }, 'invalid_value', 'tool_choice'],
  [
    'tool_choice of another tool',
    {
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: { type: 'function', function: { name: 'g' } },
    },
    'invalid_value',
    'tool_choice',
  ],
])('%s is refused', (_, more, code, param) => expect(refusal(more)).toEqual([code, param]))

test.each<[string, object, string]>([
  ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools'],
  [
    'json_schema',
    { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: {} } } },
    'response_format',
  ],
  ['json_object', { response_format: { type: 'json_object' } }, 'response_format'],
  ['logprobs', { logprobs: true }, 'logprobs'],
  ['n', { n: 2 }, 'n'],
  ['penalties', { presence_penalty: 1 }, 'presence_penalty'],
  [
    'images',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }] }] },
    'messages[0].content[0]',
  ],
])('an engine without %s refuses it by name', (_, more, param) =>
  expect(refusal(more, catalogOf({ features: new Set() }))).toEqual(['unsupported_parameter', param]),
)

test.each<[string, object]>([
  ['n of 1', { n: 1 }],
  ['a text format', { response_format: { type: 'text' } }],
  ['empty tools', { tools: [] }],
  ['zero penalties', { presence_penalty: 0, frequency_penalty: 0 }],
  ['logprobs false', { logprobs: false }],
])('%s needs no feature', (_, more) => expect(() => prepared(more, catalogOf({ features: new Set() }))).not.toThrow())

test('a model of another task is refused with the models for chat', () => {
  const catalog = new Map([
    ...catalogOf({}, { tasks: ['std/embeddings'] }),
    ...catalogOf({}, { id: 'talker', tasks: ['std/chat-completion'] }),
  ])
  expect(() => prepared({}, catalog)).toThrow(/does not do chat completions\. For chat completions there is 'talker'/)
})

const answerFormat = { task: 'std/chat-completion' as const, modelId: 'm', includeUsage: false, legacyFunctions: false }
const shaped = (answer: unknown, more = {}) => {
  const { body, usage } = shapeChat(Buffer.from(typeof answer === 'string' ? answer : JSON.stringify(answer)), {
    ...answerFormat,
    ...more,
  })
  return { body: JSON.parse(body as string) as Record<string, never>, usage }
}

test('a minimal answer is completed', () => {
  const { body, usage } = shaped({
    choices: [{ message: { content: 'hello' } }],
    usage: { prompt_tokens: 3, completion_tokens: 2 },
  })
  expect(body).toMatchObject({
    object: 'chat.completion',
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'hello', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  })
  expect(usage).toMatchObject({ inputTokens: 3, outputTokens: 2 })
})

test.each([
  ['NaN', null],
  ['negative', -5],
  ['text', '12'],
  ['an object', {}],
])('usage that is %s counts as 0', (_, count) =>
  expect(
    shaped({ choices: [{ message: { content: 'x' } }], usage: { prompt_tokens: count, completion_tokens: count } })
      .usage,
  ).toEqual({ inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0 }),
)

test('usage beyond any model is clamped', () =>
  expect(
    shaped({ choices: [{ message: { content: 'x' } }], usage: { prompt_tokens: 1e300, completion_tokens: 1.5 } }).usage,
  ).toMatchObject({ inputTokens: 100_000_000, outputTokens: 1 }))

test('cached and reasoning tokens are parts of the others', () =>
  expect(
    shaped({
      choices: [{ message: { content: 'x' } }],
      usage: {
        prompt_tokens: 7,
        completion_tokens: 5,
        prompt_tokens_details: { cached_tokens: 4 },
        completion_tokens_details: { reasoning_tokens: 9 },
      },
    }).usage,
  ).toEqual({ inputTokens: 7, cachedTokens: 4, outputTokens: 5, reasoningTokens: 5 }))

test('tool calls get ids and their arguments become text', () =>
  expect(
    shaped({
      choices: [
        {
          message: { content: null, tool_calls: [{ function: { name: 'f', arguments: { a: 1 } } }] },
          finish_reason: 'tool_calls',
        },
      ],
    }).body,
  ).toMatchObject({
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          content: null,
          tool_calls: [
            {
              id: expect.stringMatching(/^call_/) as string,
              type: 'function',
              function: { name: 'f', arguments: '{"a":1}' },
            },
          ],
        },
      },
    ],
  }))

test('a request with functions is answered with function_call', () =>
  expect(
    shaped(
      {
        choices: [
          {
            message: { content: null, tool_calls: [{ function: { name: 'f', arguments: '{}' } }] },
            finish_reason: 'tool_calls',
          },
        ],
      },
      { legacyFunctions: true },
    ).body,
  ).toMatchObject({
    choices: [{ finish_reason: 'function_call', message: { function_call: { name: 'f', arguments: '{}' } } }],
  }))

test.each([
  ['not JSON', '<html>'],
  ['half JSON', '{"choices":[{"mess'],
  ['a list', '[]'],
  ['null', 'null'],
  ['no choices', '{}'],
  ['empty choices', '{"choices":[]}'],
  ['a choice without content', '{"choices":[{"message":{}}]}'],
  ['choices of nonsense', '{"choices":[null]}'],
])('%s is the engine’s fault and may be retried', (_, answer) => {
  expect(() => shaped(answer)).toThrow(Failure)
  try {
    shaped(answer)
  } catch (thrown) {
    expect(thrown).toMatchObject({ code: 'worker_error', retryable: true })
  }
})
