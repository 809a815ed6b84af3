import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type StreamAnswerFormat, StreamShape } from '../../../core/tasks/stream-shape.ts'

/** Events as engines write them: the same text with the members of each engine. */
type Write = (text: string, at: number) => string
const json = (value: object) => `data: ${JSON.stringify(value)}`
const choice = (text: string) => ({ index: 0, delta: { content: text }, logprobs: null, finish_reason: null })
const formats: Record<string, Write> = {
  'as OpenAI': text =>
    json({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [choice(text)] }),
  'vLLM, with usage all along': (text, at) =>
    json({
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'upstream',
      choices: [{ ...choice(text), token_ids: null }],
      usage: { prompt_tokens: 7, total_tokens: 8 + at, completion_tokens: at + 1, prompt_tokens_details: null },
    }),
  'llama.cpp, its clock going on': (text, at) =>
    json({
      choices: [{ finish_reason: null, index: 0, delta: { content: text } }],
      created: 1 + Math.floor(at / 3),
      id: 'c',
      model: 'upstream',
      object: 'chat.completion.chunk',
    }),
  'escaped, spaced, without a space after data:': text => {
    const literal = JSON.stringify(text).replaceAll(
      /[\u007f-\uffff]/g,
      unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )
    return `data:{"id": "c", "choices": [{"index": 0, "delta": {"content": ${literal}}, "finish_reason": null}], "created": 1}`
  },
}
const latin1 = (text: string) => Buffer.from(text, 'utf8').toString('latin1')
const utf8 = (text: string) => Buffer.from(text, 'latin1').toString('utf8')
const end = json({ id: 'c', created: 1, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })

/** The caller's events for these: every event parsed, and the end. */
function through(events: string[], answerFormat: Partial<StreamAnswerFormat> = {}) {
  const shape = new StreamShape({ task: 'std/chat-completion', modelId: 'm', includeUsage: false, ...answerFormat })
  const out = events.map(event => {
    const bytes = latin1(event)
    return shape.event(bytes) ?? `${bytes}\n\n`
  })
  const all = utf8(out.join('') + shape.end())
  const parts = all.split('\n\n')
  expect([parts.pop(), parts.pop()]).toEqual(['', 'data: [DONE]'])
  // oxlint-disable-next-line no-explicit-any
  const chunks: any[] = parts.map(part => JSON.parse(part.slice('data: '.length)))
  return { shape, chunks }
}

const texts = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 12 })
const nasty = fc.constantFrom(
  '"',
  '\\',
  '\\"',
  '","usage":{"prompt_tokens":9}}',
  '"content":"x"',
  '\n\n',
  '[DONE]',
  '\u2028',
  '😀',
)

test.each(Object.entries(formats))('%s: every text is unchanged, in the one form', (_, write) =>
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          texts.map(some => some.join('')),
          nasty,
        ),
        { minLength: 1, maxLength: 20 },
      ),
      fc.boolean(),
      (said, includeUsage) => {
        const { chunks, shape } = through([...said.map(write), end], { includeUsage })
        const usage = includeUsage ? chunks.pop().usage : undefined
        expect(chunks.map(chunk => chunk.choices[0].delta.content ?? '')).toEqual([...said, ''])
        for (const [at, chunk] of chunks.entries())
          expect(chunk).toEqual({
            id: 'c',
            object: 'chat.completion.chunk',
            created: 1,
            model: 'm',
            choices: [
              {
                index: 0,
                delta: {
                  ...(at === 0 ? { role: 'assistant', refusal: null } : {}),
                  ...(at < said.length ? { content: said[at] } : {}),
                },
                logprobs: null,
                finish_reason: at === said.length ? 'stop' : null,
              },
            ],
            ...(includeUsage ? { usage: null } : {}),
          })
        expect([shape.pieces, shape.usage.outputTokens]).toEqual([said.length, said.length])
        if (usage) expect(usage.completion_tokens).toBe(said.length)
      },
    ),
    { numRuns: 150 },
  ),
)

test('events after the end of a choice are dropped', () => {
  const { chunks } = through([...['a', 'b', 'c'].map(formats['as OpenAI']!), end, formats['as OpenAI']!('d', 3)])
  expect(chunks.map(chunk => chunk.choices[0].delta.content)).toEqual(['a', 'b', 'c', undefined])
})

test('interleaved choices keep their own texts and ends', () => {
  const of = (index: number, delta: object, finish_reason: string | null = null) =>
    json({ id: 'c', created: 1, choices: [{ index, delta, finish_reason }] })
  const turns = ['a', 'b', 'c'].flatMap(text => [of(0, { content: text }), of(1, { content: text.toUpperCase() })])
  const { chunks } = through([...turns, of(1, {}, 'length'), of(0, { content: 'd' }), of(0, {}, 'stop')])
  const text = (index: number) =>
    chunks
      .map(chunk => chunk.choices[0])
      .filter(one => one.index === index)
      .map(one => one.delta.content ?? one.finish_reason)
  expect([text(0), text(1)]).toEqual([
    ['a', 'b', 'c', 'd', 'stop'],
    ['A', 'B', 'C', 'length'],
  ])
})

test('the arguments of one call are separate from those of the next', () => {
  const of = (call: object) => json({ id: 'c', created: 1, choices: [{ index: 0, delta: { tool_calls: [call] } }] })
  const begins = (name: string, part: string) => of({ id: `call_${name}`, function: { name, arguments: part } })
  const goes = (part: string) => of({ function: { arguments: part } })
  const { chunks } = through([
    begins('f', '{'),
    goes('"a":'),
    goes('1'),
    goes('}'),
    begins('g', '{'),
    goes('"b":'),
    goes('2}'),
    end,
  ])
  const said = new Map<number, string>()
  for (const chunk of chunks)
    for (const call of chunk.choices[0].delta.tool_calls ?? [])
      said.set(call.index, (said.get(call.index) ?? '') + call.function.arguments)
  expect([...said.values()]).toEqual(['{"a":1}', '{"b":2}'])
  expect(chunks.flatMap(chunk => chunk.choices[0].delta.tool_calls ?? []).filter(call => call.id)).toHaveLength(2)
})

test.each<[string, string[], RegExp]>([
  ['nothing', [], /no stream/],
  ['no end', [formats['as OpenAI']!('a', 0)], /broke off/],
  ['half an event', ['data: {"choices":[{'], /not JSON/],
  ['a list', ['data: [1]', end], /not an object/],
  ['a number', ['data: 5'], /not an object/],
])('%s is the fault of the engine', (_, events, message) => {
  expect(() => through(events)).toThrow(message)
})

test('an end marked only by [DONE] becomes a finish reason', () => {
  const { chunks } = through([formats['as OpenAI']!('a', 0), 'data: [DONE]'])
  expect(chunks.at(-1).choices[0].finish_reason).toBe('stop')
})
