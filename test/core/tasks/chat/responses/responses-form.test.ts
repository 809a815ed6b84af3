import { expect, test } from 'vitest'
import { Failure } from '../../../../../core/failure.ts'
import type { ChatResponse } from '../../../../../core/schemas/chat.ts'
import { ResponsesRequest } from '../../../../../core/schemas/responses.ts'
import { ResponseObject } from '../../../../../core/schemas/responses-items.ts'
import { responsesForm } from '../../../../../core/tasks/chat/responses/responses-form.ts'
import { chunksOf, eventsOf } from '../_chunks.ts'

type Message = Partial<ChatResponse['choices'][number]['message']>
const facts = { createdAt: 1_000, queuedMs: 0, jobId: 'job_X' }
const requestOf = (more: object = {}) => ResponsesRequest.parse({ model: 'm', input: 'hi', ...more })
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
const f = (id: string) => ({ id, type: 'function' as const, function: { name: 'f', arguments: '{"a":1}' } })

const answerTo = (message: Message, finish = 'stop', more: object = {}): Record<string, unknown> => {
  const choice = {
    index: 0,
    message: { role: 'assistant', content: null, refusal: null, ...message },
    logprobs: null,
    finish_reason: finish,
  }
  const completion = { id: 'chatcmpl-7', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }
  return responsesForm.answer(requestOf(more), completion as ChatResponse, facts) as Record<string, unknown>
}
const streamOf = (deltas: Parameters<typeof chunksOf>[0], finish = 'stop', more: object = {}) => {
  const stream = responsesForm.stream(requestOf(more), facts)
  const text = chunksOf(deltas, finish, usage).map(chunk => stream.chunk(chunk))
  return eventsOf([...text, stream.end()].join(''))
}
const textItem = (id: string, text: string, status = 'completed') => ({
  id,
  type: 'message',
  status,
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
})
const callOf = (id: string, callId: string, status = 'completed') => ({
  id,
  type: 'function_call',
  status,
  call_id: callId,
  name: 'f',
  arguments: '{"a":1}',
})
const reasoned = (place: object, id = 'rs_X0') => ({
  id,
  type: 'reasoning',
  status: 'completed',
  summary: [],
  content: [],
  ...place,
})

test.each<[string, Message, Parameters<typeof chunksOf>[0], string, object, object[]]>([
  [
    'a text',
    { content: 'ab' },
    [{ role: 'assistant', content: '' }, { content: 'a' }, { content: 'b' }],
    'stop',
    {},
    [textItem('msg_X0', 'ab')],
  ],
  ['nothing', { content: '' }, [{ role: 'assistant' }], 'stop', {}, [textItem('msg_X0', '')]],
  [
    'a text that was cut off',
    { content: 'a' },
    [{ content: 'a' }],
    'length',
    {},
    [textItem('msg_X0', 'a', 'incomplete')],
  ],
  [
    'reasoning, text and calls',
    { reasoning_content: 'hm', content: 'a', tool_calls: [f('1'), f('2')] },
    [
      { reasoning_content: 'h' },
      { reasoning_content: 'm' },
      { content: 'a' },
      { tool_calls: [{ index: 0, id: '1', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] },
      { tool_calls: [{ index: 1, id: '2', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }] },
    ],
    'tool_calls',
    {},
    [
      reasoned({ content: [{ type: 'reasoning_text', text: 'hm' }] }),
      textItem('msg_X1', 'a'),
      callOf('fc_X2', '1'),
      callOf('fc_X3', '2'),
    ],
  ],
  [
    'reasoning as its summary',
    { reasoning_content: 'hm', content: 'a' },
    [{ reasoning_content: 'hm' }, { content: 'a' }],
    'stop',
    { reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] },
    [reasoned({ summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'aG0=' }), textItem('msg_X1', 'a')],
  ],
  [
    'a refusal',
    { refusal: 'no' },
    [{ refusal: 'n' }, { refusal: 'o' }],
    'stop',
    {},
    [{ ...textItem('msg_X0', ''), content: [{ type: 'refusal', refusal: 'no' }] }],
  ],
])('%s: the whole answer and the last event of a stream are the same', (_, message, deltas, finish, more, output) => {
  const whole = answerTo(message, finish, more)
  const events = streamOf(deltas, finish, more)
  const [last, { response }] = events.at(-1) as [string, { response: Record<string, unknown> }]
  expect(whole.output).toEqual(output)
  expect({ ...response, completed_at: 0 }).toEqual({ ...whole, completed_at: 0 })
  expect(last).toBe(`response.${finish === 'length' ? 'incomplete' : 'completed'}`)
  expect(ResponseObject.safeParse(whole).error?.issues).toBeUndefined()
  expect(whole.usage).toMatchObject({ input_tokens: 3, output_tokens: 2, total_tokens: 5 })
  const done = events.flatMap(([name, { item }]) => (name === 'response.output_item.done' ? [item] : []))
  expect(done).toEqual(output)
  expect(events.map(([, data]) => data.sequence_number)).toEqual(events.map((__, at) => at))
  expect(events.every(([name, { type }]) => name === type)).toBe(true)
})

test('the events of reasoning, a text and a call, in order', () => {
  const call = { index: 0, id: '1', type: 'function' as const, function: { name: 'f', arguments: '{}' } }
  const deltas = [{ reasoning_content: 'h' }, { content: 'a' }, { tool_calls: [call] }]
  const names = (more: object) => streamOf(deltas, 'tool_calls', more).map(([name]) => name.slice('response.'.length))
  const rest = [
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
    'completed',
  ]
  const around = (events: string[]) => [
    'created',
    'in_progress',
    'output_item.added',
    ...events,
    'output_item.done',
    ...rest,
  ]
  expect(names({})).toEqual(
    around(['content_part.added', 'reasoning_text.delta', 'reasoning_text.done', 'content_part.done']),
  )
  expect(names({ reasoning: { summary: 'detailed' } })).toEqual(
    around([
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
    ]),
  )
})

test('a stream that fails ends with a failed response and an error', () => {
  const stream = responsesForm.stream(requestOf(), facts)
  const [first] = chunksOf([{ content: 'a' }], 'stop')
  const text = stream.chunk(first!) + stream.failure(new Failure('worker_error', 'The engine crashed.'), 'req_1')
  const [failed, error] = eventsOf(text).slice(-2)
  expect(failed).toMatchObject([
    'response.failed',
    {
      response: {
        status: 'failed',
        error: { code: 'server_error', message: 'The engine crashed.' },
        output: [textItem('msg_X0', 'a', 'incomplete')],
      },
    },
  ])
  expect(error).toMatchObject(['error', { code: 'worker_error', message: 'The engine crashed.', param: null }])
})

test('a call that the engine goes back to is an error, not lost', () => {
  const stream = responsesForm.stream(requestOf(), facts)
  const piece = (index: number, id: string) => ({
    tool_calls: [{ index, id, type: 'function' as const, function: { name: 'f', arguments: '{' } }],
  })
  const chunks = chunksOf([piece(0, '1'), piece(1, '2'), piece(0, '1')], 'tool_calls')
  stream.chunk(chunks[0]!)
  stream.chunk(chunks[1]!)
  expect(() => stream.chunk(chunks[2]!)).toThrow('continued a tool call')
})
