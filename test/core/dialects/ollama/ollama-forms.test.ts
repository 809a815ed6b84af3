import { expect, test } from 'vitest'
import type { ChatChunk } from '../../../../core/dialects/chat-form.ts'
import { loadRequestOf } from '../../../../core/dialects/ollama/ollama-body.ts'
import { ollamaChatForm, ollamaGenerateForm } from '../../../../core/dialects/ollama/ollama-chat-form.ts'
import { OllamaChatRequest, OllamaGenerateRequest } from '../../../../core/dialects/ollama/ollama-schemas.ts'
import { Failure } from '../../../../core/failure.ts'
import { ChatRequest, type ChatResponse } from '../../../../core/schemas/chat.ts'

const at = Date.parse('2026-11-01T10:00:00Z')
const facts = { createdAt: at, queuedMs: 200 }
const clock = (...steps: number[]) => {
  let now = at
  return () => (now += steps.shift() ?? 0)
}
const user = (content: string) => [{ role: 'user', content }]
const png = 'iVBORw0KGgo='

const chat = (more: object) => OllamaChatRequest.parse({ model: 'm', messages: user('Hi'), ...more })
const notes = () => ({ ignored: [], schemas: [] })
const chatBody = (request: OllamaChatRequest) => ollamaChatForm().chatBody(request, undefined, notes())
const generateBody = (request: OllamaGenerateRequest) => ollamaGenerateForm().chatBody(request, undefined, notes())
const generate = (more: object) => OllamaGenerateRequest.parse({ model: 'm', prompt: 'Hi', ...more })

test.each<[string, object, object]>([
  ['its messages', { model: 'm:latest' }, { model: 'm', messages: user('Hi') }],
  ['JSON', { format: 'json' }, { response_format: { type: 'json_object' } }],
  [
    'a schema',
    { format: { type: 'object' } },
    { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' } } } },
  ],
  ['no thinking', { think: false }, { reasoning_effort: 'none' }],
  ['thinking', { think: true }, { reasoning_effort: 'medium' }],
  ['much thinking', { think: 'high' }, { reasoning_effort: 'high' }],
  [
    'options',
    { options: { temperature: 0, top_k: 5, num_predict: 7, repeat_penalty: 1.1, stop: ['.'], seed: 3, num_ctx: 4096 } },
    { temperature: 0, top_k: 5, max_completion_tokens: 7, repetition_penalty: 1.1, stop: ['.'], seed: 3 },
  ],
  ['log probabilities', { logprobs: true, top_logprobs: 2 }, { logprobs: true, top_logprobs: 2 }],
  [
    'an image',
    { messages: [{ role: 'user', content: 'What?', images: [png] }] },
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What?' },
            { type: 'image_url', image_url: { url: `data:;base64,${png}` } },
          ],
        },
      ],
    },
  ],
  [
    'tools',
    { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } }] },
    { tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } }] },
  ],
])('a chat with %s', (_, sent, expected) => {
  const body = chatBody(chat(sent))
  expect(body).toMatchObject(expected)
  expect(ChatRequest.safeParse(body).error).toBeUndefined()
})

test.each([
  [{}, true],
  [{ stream: null }, true],
  [{ stream: true }, true],
  [{ stream: false }, false],
])('a request with %j streams: %s', (sent, streams) => {
  expect(ollamaChatForm().isStream(chat(sent))).toBe(streams)
  expect(ollamaGenerateForm().isStream(generate(sent))).toBe(streams)
})

test.each([
  [undefined, false],
  ['5m', false],
  [-1, false],
  [0, true],
  ['0', true],
  ['0s', true],
  ['0m', true],
])('without content and with keep_alive %j it unloads: %s', (keep_alive, unload) => {
  for (const run of [
    () => chatBody(chat({ messages: [], keep_alive })),
    () => generateBody(generate({ prompt: '', keep_alive })),
  ]) {
    let failure: Failure | undefined
    try {
      run()
    } catch (thrown) {
      failure = Failure.from(thrown)
    }
    expect(loadRequestOf(failure!)).toEqual({ name: 'm', modelId: 'm', unload, stream: true })
  }
})

test('num_predict below one is no limit, and unset options are not sent', () => {
  const body = chatBody(chat({ options: { num_predict: -1, temperature: null } }))
  expect(Object.keys(body).toSorted()).toEqual(['messages', 'model'])
})

test('results of tools name their calls, by name where calls have no id', () => {
  const call = (name: string) => ({ function: { name, arguments: { a: 1 } } })
  const body = chatBody(
    chat({
      messages: [
        ...user('Go'),
        { role: 'assistant', content: '', tool_calls: [call('f'), call('g')] },
        { role: 'tool', content: 'of g', tool_name: 'g' },
        { role: 'tool', content: 'of f' },
      ],
    }),
  )
  expect(body.messages).toEqual([
    { role: 'user', content: 'Go' },
    {
      role: 'assistant',
      content: '',
      tool_calls: [
        { id: 'call_1_0', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
        { id: 'call_1_1', type: 'function', function: { name: 'g', arguments: '{"a":1}' } },
      ],
    },
    { role: 'tool', content: 'of g', tool_call_id: 'call_1_1' },
    { role: 'tool', content: 'of f', tool_call_id: 'call_1_0' },
  ])
})

test.each<[string, () => unknown, string, string]>([
  [
    'a result without a call',
    () => chatBody(chat({ messages: [{ role: 'tool', content: 'x' }] })),
    'invalid_value',
    'messages[0]',
  ],
  [
    'an image that is none',
    () => chatBody(chat({ messages: [{ role: 'user', images: ['AAAA'] }] })),
    'invalid_image',
    'messages[0].images[0]',
  ],
  ['a suffix', () => generateBody(generate({ suffix: 'end' })), 'unsupported_parameter', 'suffix'],
  ['a template', () => generateBody(generate({ template: '{{' })), 'unsupported_parameter', 'template'],
  ['raw text', () => generateBody(generate({ raw: true })), 'unsupported_parameter', 'raw'],
  ['a context', () => generateBody(generate({ context: [1] })), 'unsupported_parameter', 'context'],
])('%s is refused by name', (_, run, code, param) => {
  let thrown: unknown
  try {
    run()
  } catch (caught) {
    thrown = caught
  }
  expect(Failure.from(thrown)).toMatchObject({ code, param })
})

test('a generation is a chat of a system message and a prompt', () => {
  const body = generateBody(generate({ system: 'Be brief.', images: [png], suffix: '', raw: false, context: [] }))
  expect(body.messages).toEqual([
    { role: 'system', content: 'Be brief.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image_url', image_url: { url: `data:;base64,${png}` } },
      ],
    },
  ])
})

const completion: ChatResponse = {
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Hello',
        refusal: null,
        reasoning_content: 'Hm',
        tool_calls: [{ id: 'call_9', type: 'function', function: { name: 'f', arguments: '{"city":"Oslo"}' } }],
      },
      logprobs: { content: [{ token: 'Hello', logprob: -0.5, bytes: [72], top_logprobs: [] }] },
      finish_reason: 'tool_calls',
    },
  ],
  usage: { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 },
}

test('a whole answer has counts, and durations in nanoseconds', () => {
  expect(ollamaChatForm(clock(1_000)).answer(chat({}), completion, facts)).toEqual({
    model: 'm',
    created_at: '2026-11-01T10:00:01.000Z',
    message: {
      role: 'assistant',
      content: 'Hello',
      thinking: 'Hm',
      tool_calls: [{ id: 'call_9', function: { name: 'f', arguments: { city: 'Oslo' } } }],
    },
    done: true,
    done_reason: 'stop',
    logprobs: [{ token: 'Hello', logprob: -0.5 }],
    total_duration: 1e9,
    load_duration: 2e8,
    prompt_eval_count: 4,
    prompt_eval_duration: 0,
    eval_count: 2,
    eval_duration: 8e8,
  })
  const answer = ollamaGenerateForm(clock(1_000)).answer(generate({ think: false }), completion, facts)
  expect(answer).toMatchObject({ response: 'Hello', done: true })
  expect(answer).not.toHaveProperty('thinking')
})

const chunk = (delta: ChatChunk['choices'][number]['delta'], finish_reason: string | null = null): ChatChunk => ({
  id: 'c',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const called = (args: string, more: object = {}) => ({
  tool_calls: [{ index: 0, ...more, function: { ...(more && 'id' in more ? { name: 'f' } : {}), arguments: args } }],
})
const lines = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Record<string, unknown>)

test('a stream has a line for each piece, whole tool calls, and the counts at the end', () => {
  const stream = ollamaChatForm(clock(500, 0, 0, 0, 300)).stream(chat({}), facts)
  const text = [
    stream.chunk(chunk({ role: 'assistant', content: '' })),
    stream.chunk(chunk({ reasoning_content: 'Hm' })),
    stream.chunk(chunk({ content: 'Hel' })),
    stream.chunk(chunk(called('{"city":', { id: 'call_9' }))),
    stream.chunk(chunk(called('"Oslo"}'))),
    stream.chunk(chunk({}, 'length')),
    stream.chunk({ id: 'c', created: 1, model: 'm', choices: [], usage: completion.usage }),
    stream.end(),
  ].join('')
  const [thinking, content, tool, last, ...rest] = lines(text)
  expect(rest).toEqual([])
  expect(thinking).toMatchObject({ message: { content: '', thinking: 'Hm' }, done: false })
  expect(content).toMatchObject({ message: { role: 'assistant', content: 'Hel' }, done: false })
  expect(tool).toMatchObject({ message: { tool_calls: [{ function: { name: 'f', arguments: { city: 'Oslo' } } }] } })
  expect(last).toMatchObject({
    message: { content: '' },
    done: true,
    done_reason: 'length',
    total_duration: 8e8,
    prompt_eval_duration: 3e8,
    eval_duration: 3e8,
    eval_count: 2,
  })
})

test('a failure in a stream is one line with the message', () => {
  const stream = ollamaGenerateForm().stream(generate({}), facts)
  expect(lines(stream.failure(new Failure('worker_error', 'The engine ended.'), 'req_1'))).toEqual([
    { error: 'The engine ended.' },
  ])
})
