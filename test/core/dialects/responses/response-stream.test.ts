import { expect, test } from 'vitest'
import type { ChatChunk } from '../../../../core/dialects/chat-form.ts'
import { chunkOf, responseStream } from '../../../../core/dialects/responses/response-stream.ts'
import { Failure } from '../../../../core/failure.ts'

type Delta = ChatChunk['choices'][number]['delta']
const remembered = (request: object = {}) => ({
  id: 'resp_01M84YXQ8M0J7P1ZE8331KR1H8',
  isStored: true,
  input: '[]',
  request: { model: 'm', ...request },
})
const piece = (delta: Delta, finish_reason: string | null = null): ChatChunk => ({
  id: 'c',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 } as ChatChunk['usage']
interface Event {
  type: string
  sequence_number: number
  delta?: string
  response?: {
    status: string
    output: object[]
    usage?: object
    error: object | null
    incomplete_details: object | null
  }
}
const eventsIn = (text: string): Event[] =>
  text
    .split('\n\n')
    .filter(Boolean)
    .map(one => {
      const [name, data] = one.split('\n') as [string, string]
      const event = JSON.parse(data.slice(6)) as Event
      expect(name).toBe(`event: ${event.type}`)
      return event
    })
function answered(pieces: ChatChunk[], request: object = {}) {
  const stream = responseStream(remembered(request), { createdAt: 5_000 }, () => 6)
  return eventsIn([...pieces.map(one => stream.chunk(one)), stream.end()].join(''))
}
const kinds = (events: Event[]) => events.map(({ type }) => type.replace('response.', ''))

test('reasoning, a text and two calls are four items, each ended before the next begins', () => {
  const events = answered([
    piece({ role: 'assistant', content: '' }),
    piece({ reasoning_content: 'Hm' }),
    piece({ content: 'I ' }),
    piece({ content: 'look.' }),
    piece({ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }] }),
    piece({ tool_calls: [{ index: 0, function: { arguments: '{}' } }] }),
    piece({ tool_calls: [{ index: 1, id: 'c2', type: 'function', function: { name: 'g', arguments: '{"a":1}' } }] }),
    piece({}, 'tool_calls'),
    { ...piece({}), choices: [], usage },
  ])
  expect(events.map(event => event.sequence_number)).toEqual(events.map((_, at) => at))
  expect(kinds(events)).toEqual([
    'created',
    'in_progress',
    'output_item.added',
    'content_part.added',
    'reasoning_text.delta',
    'reasoning_text.done',
    'content_part.done',
    'output_item.done',
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.delta',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
    'completed',
  ])
  expect(events.at(-1)!.response).toMatchObject({
    status: 'completed',
    created_at: 5,
    completed_at: 6,
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    output: [
      { type: 'reasoning', content: [{ type: 'reasoning_text', text: 'Hm' }], summary: [] },
      { type: 'message', status: 'completed', content: [{ type: 'output_text', text: 'I look.' }] },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{}' },
      { type: 'function_call', call_id: 'c2', name: 'g', arguments: '{"a":1}' },
    ],
  })
})

test('with a summary the reasoning is in the summary', () => {
  const events = answered([piece({ reasoning_content: 'Hm' }), piece({ content: 'a' }, 'stop')], {
    reasoning: { summary: 'auto' },
  })
  expect(kinds(events)).toContain('reasoning_summary_text.delta')
  expect(events.at(-1)!.response!.output[0]).toMatchObject({
    type: 'reasoning',
    summary: [{ type: 'summary_text', text: 'Hm' }],
    content: [],
  })
})

test.each([
  ['length', 'max_output_tokens'],
  ['content_filter', 'content_filter'],
])('the finish reason %s makes it incomplete: %s', (finish, reason) => {
  const last = answered([piece({ content: 'a' }, finish)]).at(-1)!
  expect([last.type, last.response!.status]).toEqual(['response.incomplete', 'incomplete'])
  expect(last.response).toMatchObject({ incomplete_details: { reason }, output: [{ status: 'incomplete' }] })
})

test('a refusal is a part of its own', () => {
  const events = answered([piece({ refusal: 'No.' }), piece({}, 'stop')])
  expect(kinds(events)).toContain('refusal.delta')
  expect(events.at(-1)!.response!.output).toMatchObject([{ content: [{ type: 'refusal', refusal: 'No.' }] }])
})

test('a failure ends the open item and names what happened', () => {
  const stream = responseStream(remembered(), { createdAt: 5_000 })
  const text = stream.chunk(piece({ content: 'a' })) + stream.failure(new Failure('worker_error', 'It broke.'), 'req_1')
  const last = eventsIn(text).at(-1)!
  expect([last.type, last.response!.status]).toEqual(['response.failed', 'failed'])
  expect(last.response!.error).toEqual({ code: 'server_error', message: 'It broke.' })
})

test('the events of a whole answer have the items and ids of its stream', () => {
  const whole = chunkOf({
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi', refusal: null, reasoning_content: 'Hm' },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: usage!,
  })
  const streamed = [
    piece({ reasoning_content: 'Hm' }),
    piece({ content: 'H' }),
    piece({ content: 'i' }, 'stop'),
    { ...piece({}), choices: [], usage },
  ]
  expect(answered([whole]).at(-1)!.response).toEqual(answered(streamed).at(-1)!.response)
})

test('without any piece there are the first events only', () => {
  const stream = responseStream(remembered(), { createdAt: 5_000 })
  expect(kinds(eventsIn(stream.begin()))).toEqual(['created', 'in_progress'])
  expect(stream.ended).toBeUndefined()
})

test('calls of custom tools and of namespaces have the form in which the client declared them', () => {
  const tools = [
    { type: 'custom', name: 'patch' },
    { type: 'namespace', name: 'left', tools: [{ type: 'function', name: 'go' }] },
    { type: 'namespace', name: 'right', tools: [{ type: 'function', name: 'go' }] },
  ]
  const begin = (index: number, name: string) =>
    piece({ tool_calls: [{ index, id: `c${index}`, type: 'function', function: { name, arguments: '' } }] })
  const more = (index: number, text: string) => piece({ tool_calls: [{ index, function: { arguments: text } }] })
  const events = answered(
    [
      begin(0, 'patch'),
      more(0, '{"input": "a\\n'),
      more(0, 'b"}'),
      begin(1, 'right__go'),
      more(1, '{}'),
      piece({}, 'tool_calls'),
    ],
    { tools },
  )
  expect(kinds(events).filter(kind => /call/.test(kind))).toEqual([
    'custom_tool_call_input.delta',
    'custom_tool_call_input.done',
    'function_call_arguments.delta',
    'function_call_arguments.done',
  ])
  expect(events.at(-1)!.response!.output).toMatchObject([
    { type: 'custom_tool_call', call_id: 'c0', name: 'patch', input: 'a\nb', status: 'completed' },
    { type: 'function_call', call_id: 'c1', name: 'go', namespace: 'right', arguments: '{}' },
  ])
})

test('the text of a custom tool that the token limit cut off is what there is of it', () => {
  const begun = { index: 0, id: 'c', type: 'function' as const, function: { name: 'patch', arguments: '{"input": "a' } }
  const events = answered([piece({ tool_calls: [begun] }), piece({}, 'length')], {
    tools: [{ type: 'custom', name: 'patch' }],
  })
  expect(events.at(-1)!.response!.output).toMatchObject([{ type: 'custom_tool_call', input: '{"input": "a' }])
})
