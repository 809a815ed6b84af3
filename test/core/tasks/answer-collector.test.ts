import { describe, expect, test } from 'vitest'
import { AbortSource } from '../../../core/abort-source.ts'
import { Failure } from '../../../core/failure.ts'
import type { EngineCall, EngineListener } from '../../../core/models/engine-call.ts'
import type { EngineTraits } from '../../../core/models/engine-traits.ts'
import type { Lease } from '../../../core/models/fleet.ts'
import { AnswerCollector } from '../../../core/tasks/answer-collector.ts'
import { prepareChat } from '../../../core/tasks/chat/chat-completion.ts'
import { prepareCompletion } from '../../../core/tasks/completion/completion.ts'
import { withMembers } from '../../../gpu/requests/body-members.ts'
import { catalogOf } from './_catalog.ts'

describe('the requests for which the engine streams', () => {
  const chat = (more: object, how: EngineTraits['streamUsage'] = 'continuous') =>
    prepareChat({ model: 'm', messages: [{ role: 'user', content: 'a' }], ...more }, catalogOf({ streamUsage: how }))
  const completion = (more: object) =>
    prepareCompletion({ model: 'm', prompt: 'a', ...more }, catalogOf({ streamUsage: 'progress' }))
  const tools = [{ type: 'function', function: { name: 'f', parameters: {} } }]

  test.each([
    ['a plain chat', chat({}), true],
    ['one that says that it wants no stream', chat({ stream: false, n: 1 }), true],
    ['JSON', chat({ response_format: { type: 'json_object' } }), true],
    ['an engine that counts at the end', chat({}, 'end'), false],
    ['an engine that does not count', chat({}, 'none'), false],
    ['a stream', chat({ stream: true }), false],
    ['tools', chat({ tools }), false],
    ['functions', chat({ functions: [{ name: 'f', parameters: {} }] }), false],
    ['several choices', chat({ n: 2 }), false],
    ['probabilities', chat({ logprobs: true }), false],
    ['a completion', completion({}), true],
    ['several prompts', completion({ prompt: ['a', 'b'] }), false],
    ['the prompt again', completion({ echo: true }), false],
    ['the best of several', completion({ best_of: 2 }), false],
    ['probabilities of a completion', completion({ logprobs: 1 }), false],
  ])('%s: %s', (_, { asStream, bodies }, streamed) => {
    expect(asStream !== undefined).toBe(streamed)
    if (asStream === undefined) return
    for (const body of [bodies[0]!, Buffer.from(bodies[0]!)]) {
      const text = withMembers(body, asStream).toString()
      expect(text.match(/"stream":/g)).toHaveLength(1)
      expect(JSON.parse(text)).toMatchObject({ model: 'm', stream: true, stream_options: { include_usage: true } })
    }
  })
})

/** An engine whose listener the test holds. */
function engine() {
  const seen: { call?: EngineCall; listener?: EngineListener; aborted: number } = { aborted: 0 }
  const lease = {
    modelId: 'm',
    open(call: EngineCall, listener: EngineListener) {
      Object.assign(seen, { call, listener })
      return { pause() {}, resume() {}, abort: () => void seen.aborted++ }
    },
  } as unknown as Lease
  return { seen, lease }
}
const answerFormat = { task: 'std/chat-completion', modelId: 'm', includeUsage: false } as const
const frame = (delta: object, more: object = {}) =>
  `data: ${JSON.stringify({ id: 'c', created: 5, model: 'x', choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`
const usage = (prompt_tokens: number, completion_tokens: number) => ({ usage: { prompt_tokens, completion_tokens } })
const begun = (most = 1_000) => {
  const { seen, lease } = engine()
  const meter = { output: 0 }
  const answer = new AnswerCollector(answerFormat, most, meter)
  const leaving = new AbortSource()
  const asked = answer.ask(lease, '/v1/chat/completions', '{}', leaving)
  // The rejection is checked below.
  asked.catch(() => {})
  return { answer, asked, leaving, meter, listener: seen.listener!, seen }
}

describe('the collected answer', () => {
  const stream =
    frame({ role: 'assistant', reasoning_content: 'Hm. ' }) +
    frame({ content: 'Grüße' }, usage(3, 2)) +
    frame({ content: ' 😀' }, usage(3, 3)) +
    `data: ${JSON.stringify({ id: 'c', created: 5, choices: [{ index: 0, delta: {}, finish_reason: 'length' }], ...usage(3, 4) })}\n\n` +
    'data: [DONE]\n\n'

  test.each([
    [1, stream],
    [7, stream],
    [100_000, stream],
    [7, stream.replaceAll('\n', '\r\n')],
    [100_000, stream.replaceAll('\n', '\r\n')],
  ])('in pieces of %i bytes: the answer that an engine writes whole', async (size, sent) => {
    const { answer, asked, listener, meter } = begun()
    listener.accepted('text/event-stream; charset=utf-8')
    const bytes = Buffer.from(sent)
    for (let at = 0; at < bytes.length; at += size) listener.chunk(bytes.subarray(at, at + size))
    listener.finished()
    expect(JSON.parse((await asked).toString('utf8'))).toMatchObject({
      id: 'c',
      created: 5,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'Grüße 😀', reasoning_content: 'Hm. ' },
          finish_reason: 'length',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    })
    expect([meter.output, answer.uncounted(answer.usage)]).toEqual([3, { inputTokens: 3, outputTokens: 1 }])
  })

  test('an engine that answers whole all the same', async () => {
    const { asked, listener } = begun()
    listener.accepted('application/json')
    listener.chunk(Buffer.from('{"a":'))
    listener.chunk(Buffer.from('1}'))
    listener.finished()
    expect((await asked).toString()).toBe('{"a":1}')
  })

  test('a caller that disconnects: the engine request is aborted, and the reported usage is known', async () => {
    const { answer, asked, leaving, listener, seen } = begun()
    listener.accepted('text/event-stream')
    listener.chunk(Buffer.from(frame({ content: 'a' }, usage(7, 1)) + frame({ content: 'b' }, usage(7, 2))))
    leaving.abort(new Failure('cancelled', 'gone'))
    await expect(asked).rejects.toMatchObject({ code: 'cancelled' })
    expect([seen.aborted, answer.fault]).toEqual([1, undefined])
    expect(answer.usage).toMatchObject({ inputTokens: 7, outputTokens: 2 })
  })

  test.each<[string, number, string, string]>([
    ['an event that is not JSON', 1_000, 'text/event-stream', 'data: {\n\n'],
    ['a text that is too long', 10, 'text/event-stream', frame({ content: 'x'.repeat(11) })],
    ['an event without an end', 1_000, 'text/event-stream', `data: ${'x'.repeat(1_001)}`],
    ['a whole answer that is too long', 10, 'application/json', 'x'.repeat(11)],
  ])('%s is an engine error, and the engine request is aborted', async (_, most, type, bytes) => {
    const { answer, asked, listener, seen } = begun(most)
    listener.accepted(type)
    listener.chunk(Buffer.from(bytes))
    await expect(asked).rejects.toMatchObject({ code: 'worker_error' })
    expect([seen.aborted, answer.fault?.code]).toEqual([1, 'worker_error'])
  })

  test('an engine that crashes may be replaced: its answer is not at fault', async () => {
    const { answer, asked, listener } = begun()
    listener.failed(new Failure('worker_error', 'gone'))
    await expect(asked).rejects.toMatchObject({ code: 'worker_error' })
    expect(answer.fault).toBeUndefined()
  })
})
