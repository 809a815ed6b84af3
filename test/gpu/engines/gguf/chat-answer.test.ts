import { describe, expect, test } from 'vitest'
import { ChatResponse } from '../../../../core/schemas/chat.ts'
import { type FinishReason, streamFrames, toolCallId, wholeAnswer } from '../../../../gpu/engines/gguf/chat-answer.ts'
import type { TokenLogprob } from '../../../../gpu/engines/gguf/logprobs.ts'
import type { AnswerEvent } from '../../../../gpu/engines/gguf/tools/call-parser.ts'

const head = { id: 'chatcmpl-1', created: 1, model: 'toy', system_fingerprint: 'fp' }
const usage = { promptTokens: 5, completionTokens: 7, cachedTokens: 2, reasoningTokens: 3 }
const token = (text: string): TokenLogprob => ({
  token: text,
  logprob: -1,
  bytes: [...Buffer.from(text)],
  top_logprobs: [],
})
const newCallId = () => 'call_1'

interface Chunk {
  choices: {
    index: number
    delta: Record<string, unknown> & { tool_calls?: { index: number }[] }
    logprobs: { content: TokenLogprob[] } | null
    finish_reason: string | null
  }[]
  usage?: unknown
}
const chunksOf = (frames: string): Chunk[] =>
  frames
    .split('\n\n')
    .filter(frame => frame.startsWith('data: {'))
    .map(frame => JSON.parse(frame.slice('data: '.length)) as Chunk)

const answers: [string, AnswerEvent[], FinishReason, object][] = [
  ['nothing', [], 'stop', { content: '' }],
  ['words', [{ kind: 'content', text: 'Hi "you"' }], 'stop', { content: 'Hi "you"' }],
  [
    'thoughts and words',
    [
      { kind: 'reasoning', text: 'Hm.' },
      { kind: 'content', text: 'Yes' },
    ],
    'length',
    { content: 'Yes', reasoning_content: 'Hm.' },
  ],
  ['thoughts only', [{ kind: 'reasoning', text: 'Hm.' }], 'length', { content: '', reasoning_content: 'Hm.' }],
  [
    'two calls',
    [
      { kind: 'call', name: 'f' },
      { kind: 'arguments', text: '{"a"' },
      { kind: 'arguments', text: ':1}' },
      { kind: 'call', name: 'g' },
      { kind: 'arguments', text: '{}' },
    ],
    'tool_calls',
    {
      content: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
        { id: 'call_1', type: 'function', function: { name: 'g', arguments: '{}' } },
      ],
    },
  ],
  [
    'words and a call',
    [
      { kind: 'content', text: 'I will.' },
      { kind: 'call', name: 'f' },
      { kind: 'arguments', text: '{}' },
    ],
    'tool_calls',
    {
      content: 'I will.',
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
  ],
]

describe('one answer, whole and in frames', () => {
  test.each(answers)('%s', (_what, events, reason, message) => {
    const answer = wholeAnswer(head, [{ events, tokens: [token('a')], reason }], newCallId, usage, true)
    expect(() => ChatResponse.parse(answer)).not.toThrow()
    expect(answer.choices[0]).toEqual({
      index: 0,
      message: { role: 'assistant', refusal: null, annotations: [], ...message },
      logprobs: { content: [token('a')], refusal: null },
      finish_reason: reason,
    })
    expect(answer.usage.completion_tokens_details).toMatchObject({ reasoning_tokens: 3 })
  })

  test.each(answers)('the frames of %s add up to the whole answer', (_what, events, reason, message) => {
    const choice = streamFrames(head, newCallId, true).choice(3)
    const chunks = chunksOf(events.map(event => choice.more([event], [], false)).join('') + choice.end(reason))
    const whole: Record<string, unknown> & { tool_calls?: { function: { arguments: string } }[] } = {}
    for (const { choices } of chunks) {
      expect(choices).toHaveLength(1)
      expect(choices[0]!.index).toBe(3)
      const { tool_calls, role: _role, refusal: _refusal, ...texts } = choices[0]!.delta
      for (const [name, text] of Object.entries(texts))
        whole[name] = text === null ? null : `${(whole[name] as string | undefined) ?? ''}${text as string}`
      for (const { index, ...call } of tool_calls ?? []) {
        whole.tool_calls ??= []
        const known = whole.tool_calls[index]
        if (!known) whole.tool_calls[index] = call as { function: { arguments: string } }
        else known.function.arguments += (call as { function: { arguments: string } }).function.arguments
      }
    }
    expect(whole).toEqual(message)
    expect(chunks.map(({ choices }) => choices[0]!.delta.role).filter(Boolean)).toEqual(['assistant'])
    expect(chunks[0]!.choices[0]!.delta.role).toBe('assistant')
    expect(chunks.map(({ choices }) => choices[0]!.finish_reason).filter(Boolean)).toEqual([reason])
  })
})

test('each probability is sent once, with the first frame after it', () => {
  const choice = streamFrames(head, newCallId, false).choice(0)
  const frames =
    choice.more([], [token('<')], true) +
    choice.more([{ kind: 'content', text: '<b' }], [token('b')], true) +
    choice.more([], [token('>')], true) +
    choice.end('stop')
  const said = chunksOf(frames).map(({ choices }) => choices[0]!.logprobs?.content.map(({ token }) => token).join(''))
  expect(said).toEqual([undefined, '<b', '>'])
})

test('usage is sent once, at the end, when requested', () => {
  expect(streamFrames(head, newCallId, false).last(usage)).toBe('data: [DONE]\n\n')
  const [chunk] = chunksOf(streamFrames(head, newCallId, true).last(usage))
  expect(chunk).toMatchObject({ choices: [], usage: { total_tokens: 12, prompt_tokens_details: { cached_tokens: 2 } } })
})

test('ids of calls are unique, and short for Mistral', () => {
  expect(toolCallId('hermes')).toMatch(/^call_[0-9A-Z]{26}$/)
  expect(toolCallId('hermes')).not.toBe(toolCallId('hermes'))
  expect(toolCallId('mistral')).toMatch(/^[A-Za-z0-9]{9}$/)
})
