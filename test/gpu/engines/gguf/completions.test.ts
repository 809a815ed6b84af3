import { getLlama, LlamaLogLevel, type Token } from 'node-llama-cpp'
import { beforeAll, describe, expect, test } from 'vitest'
import { tinyChatSentence } from '../../../../bin/tiny-models.ts'
import { CompletionResponse } from '../../../../core/schemas/completion.ts'
import { file, type Json, startEngine } from './_engine.ts'

const tasks = ['std/chat-completion', 'std/completion'] as const
let toy: Awaited<ReturnType<typeof startEngine>>
let noise: Awaited<ReturnType<typeof startEngine>>
beforeAll(async () => {
  ;[toy, noise] = await Promise.all([
    startEngine({ model: 'tiny-chat.gguf', tasks, context: 256, parallel: 2 }),
    startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 512, parallel: 4 }),
  ])
})
const complete = (engine: typeof toy, fields: Json) => engine.post('/v1/completions', { model: 'toy', ...fields })
const texts = ({ body }: { body: Json }): string[] => body.choices.map((choice: Json) => choice.text)
/** The frames of a stream, which must end correctly. */
async function stream(engine: typeof toy, fields: Json): Promise<Json[]> {
  const response = await fetch(`${engine.address}/v1/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'toy', stream: true, ...fields }),
  })
  const frames = (await response.text()).split('\n\n')
  expect([frames.pop(), frames.pop()]).toEqual(['', 'data: [DONE]'])
  return frames.map(frame => JSON.parse(frame.replace(/^data: /, '')) as Json)
}
const wild = { temperature: 1, top_k: 0, top_p: 1, min_p: 0 }
/** The bytes of 'Once', as tokens of the random model. */
const once = [...Buffer.from('Once')].map(byte => byte + 3)

describe('a completion', () => {
  test('continues a text in the legacy shape, for 16 tokens by default', async () => {
    const { status, body } = await complete(toy, { prompt: '<|im_start|>assistant\n' })
    expect(status).toBe(200)
    expect(() => CompletionResponse.parse(body)).not.toThrow()
    expect(body).toMatchObject({
      id: expect.stringMatching(/^cmpl-[0-9A-HJKMNP-TV-Z]{26}$/),
      object: 'text_completion',
      model: 'toy',
      choices: [{ index: 0, logprobs: null, finish_reason: 'length' }],
      usage: { completion_tokens: 16 },
    })
    expect(tinyChatSentence.startsWith(texts({ body })[0]!)).toBe(true)
    const whole = await complete(toy, { prompt: '<|im_start|>assistant\n', max_tokens: 50 })
    expect(whole.body.choices[0]).toMatchObject({ text: tinyChatSentence, finish_reason: 'stop' })
  })

  test.each<[string, unknown, number]>([
    ['a text', 'Once', 1],
    ['a list of texts', ['Once', 'upon', 'a'], 3],
    ['token ids', once, 1],
    ['lists of token ids', [once, [70, 71]], 2],
  ])('accepts %s', async (_rule, prompt, prompts) => {
    const { status, body } = await complete(noise, { prompt, n: 2, max_tokens: 3, temperature: 0 })
    expect(status).toBe(200)
    expect(body.choices.map((choice: Json) => choice.index)).toEqual(Array.from({ length: prompts * 2 }, (_, at) => at))
    expect(body.usage.completion_tokens).toBe(prompts * 2 * 3)
    const [first] = Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt : [prompt]
    const alone = await complete(noise, { prompt: first, max_tokens: 3, temperature: 0 })
    expect(texts({ body }).slice(0, 2)).toEqual([texts(alone)[0], texts(alone)[0]])
  })

  test('more prompts and more answers than there are slots', async () => {
    const prompt = Array.from({ length: 9 }, (_, at) => `number ${at}`)
    const { body } = await complete(noise, { prompt, n: 5, max_tokens: 4, ...wild })
    expect(body.choices).toHaveLength(45)
    expect(body.usage.completion_tokens).toBeGreaterThan(45)
  })

  test('several answers differ, and repeat for the same seed', async () => {
    const fields = { prompt: 'Once', n: 3, seed: 5, max_tokens: 40, ...wild }
    const [one, two] = [await complete(noise, fields), await complete(noise, fields)]
    expect(texts(one)).toEqual(texts(two))
    expect(new Set(texts(one)).size).toBe(3)
    const first = await complete(noise, { ...fields, n: 1 })
    expect(texts(one)[0]).toBe(texts(first)[0])
  })

  test('two requests that each need every slot both get their answers', async () => {
    const fields = { prompt: 'All of them', n: 4, max_tokens: 30, ...wild }
    const answers = await Promise.all([1, 2, 3].map(() => complete(noise, fields)))
    expect(answers.map(({ status, body }) => [status, body.choices.length])).toEqual([1, 2, 3].map(() => [200, 4]))
  })

  test('streams: interleaved choices, one reason each, usage when requested', async () => {
    const fields = { prompt: ['Once', 'Twice'], n: 2, max_tokens: 20, seed: 3, ...wild }
    const frames = await stream(noise, { ...fields, stream_options: { include_usage: true } })
    const usage = frames.pop()!
    const whole = await complete(noise, fields)
    expect(usage).toMatchObject({ choices: [], usage: { completion_tokens: whole.body.usage.completion_tokens } })
    for (const index of [0, 1, 2, 3]) {
      const own = frames.map(frame => frame.choices[0]).filter(choice => choice.index === index)
      expect(own.map(choice => choice.text).join('')).toBe(texts(whole)[index])
      expect(own.map(choice => choice.finish_reason).filter(reason => reason !== null)).toHaveLength(1)
      expect(own.at(-1)!.finish_reason).not.toBeNull()
    }
    const order = frames.map(frame => frame.choices[0].index)
    expect(order.findLastIndex(index => index === 0)).toBeGreaterThan(order.indexOf(1))
  })

  test('echoes the prompt, computing nothing where no token is requested', async () => {
    const echoed = await complete(noise, { prompt: 'Once upon', echo: true, max_tokens: 5, temperature: 0 })
    const plain = await complete(noise, { prompt: 'Once upon', max_tokens: 5, temperature: 0 })
    expect(texts(echoed)[0]).toBe(`Once upon${texts(plain)[0]}`)
    const ids = await complete(noise, { prompt: once, echo: true, max_tokens: 5, temperature: 0 })
    expect(texts(ids)[0]!.startsWith('Once')).toBe(true)
    const only = await complete(noise, { prompt: ['Once', 'upon'], echo: true, max_tokens: 0 })
    expect(texts(only)).toEqual(['Once', 'upon'])
    expect(only.body.usage.completion_tokens).toBe(0)
    const frames = await stream(noise, { prompt: 'Once upon', echo: true, max_tokens: 5, temperature: 0 })
    expect(frames.map(frame => frame.choices[0].text).join('')).toBe(texts(echoed)[0])
  })

  test.each<[string, Json, string]>([
    ['suffix', { suffix: 'the end' }, 'unsupported_parameter'],
    ['best_of', { best_of: 2 }, 'unsupported_parameter'],
    ['max_tokens', { max_tokens: 0 }, 'invalid_value'],
    ['prompt', { prompt: 'x'.repeat(600) }, 'context_length_exceeded'],
    ['prompt[1]', { prompt: ['a', 'x'.repeat(600)] }, 'context_length_exceeded'],
    ['prompt', { prompt: [70, 99_999] }, 'invalid_value'],
    ['logit_bias', { logit_bias: { 99_999: 1 } }, 'invalid_value'],
  ])('refuses a wrong %s by name', async (param, fields, code) => {
    const { status, body } = await complete(noise, { prompt: 'a', ...fields })
    expect([status, body.error.param, body.error.code]).toEqual([400, param, code])
    if (code === 'context_length_exceeded') expect(body.error.message).toMatch(/ 512 tokens\. .* 601 tokens/)
  })
})

describe('log probabilities', () => {
  /** The probabilities of node-llama-cpp's own API for the token that follows each of these. */
  async function reference(tokens: readonly number[]): Promise<Map<Token, number>[]> {
    const llama = await getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      maxThreads: 1,
      logLevel: LlamaLogLevel.error,
    })
    try {
      const model = await llama.loadModel({ modelPath: file('tiny-chat-random.gguf') })
      const sequence = (await model.createContext({ contextSize: 512, threads: 1 })).getSequence()
      const options = { temperature: 1, topK: 0, topP: 1, minP: 0 }
      const output = await sequence.controlledEvaluate(
        tokens.map(token => [token as Token, { generateNext: { probabilities: true, options } }]),
      )
      return output.map(item => item!.next.probabilities!)
    } finally {
      await llama.dispose()
    }
  }

  test('are those of the model, whichever token is drawn', async () => {
    // 40 tokens, to be computed in several pieces.
    const prompt = [1, ...Array.from({ length: 40 }, (_, at) => 3 + ((at * 37) % 256))]
    const expected = await reference(prompt)
    const { body } = await complete(noise, { prompt, echo: true, logprobs: 5, max_tokens: 1, temperature: 0 })
    const { token_logprobs, top_logprobs, tokens, text_offset } = body.choices[0].logprobs
    expect(token_logprobs).toHaveLength(prompt.length + 1)
    expect([token_logprobs[0], top_logprobs[0]]).toEqual([null, null])
    for (const [at, token] of prompt.entries()) {
      if (at > 0) expect(token_logprobs[at]).toBeCloseTo(Math.log(expected[at - 1]!.get(token as Token)!), 4)
    }
    const next = [...expected.at(-1)!].toSorted((a, b) => b[1] - a[1]).slice(0, 5)
    expect(token_logprobs.at(-1)).toBeCloseTo(Math.log(next[0]![1]), 4)
    const top = Object.values(top_logprobs.at(-1) as Record<string, number>)
    expect(top).toHaveLength(new Set(Object.keys(top_logprobs.at(-1))).size)
    expect(Math.max(...top)).toBeCloseTo(Math.log(next[0]![1]), 4)
    expect(Math.min(...top)).toBeGreaterThanOrEqual(Math.log(next[4]![1]) - 1e-4)
    expect(text_offset).toHaveLength(tokens.length)
    expect(text_offset.at(-1)).toBeLessThanOrEqual(body.choices[0].text.length)
  })

  test('of the prompt only, computing no answer', async () => {
    const { body } = await complete(noise, { prompt: 'Once', echo: true, logprobs: 0, max_tokens: 0 })
    expect(body.choices[0]).toMatchObject({
      text: 'Once',
      finish_reason: 'length',
      logprobs: { tokens: ['O', 'n', 'c', 'e'], text_offset: [0, 1, 2, 3], top_logprobs: null },
    })
    expect(body.choices[0].logprobs.token_logprobs.every((value: number) => value < 0)).toBe(true)
  })

  test('come with their text in a stream, and end where a stop string cuts', async () => {
    const endless = { logit_bias: { 2: -100, 260: -100 } }
    const fields = { prompt: 'Once', logprobs: 2, max_tokens: 30, seed: 4, ...wild, ...endless }
    const whole = await complete(noise, fields)
    const frames = await stream(noise, fields)
    const { tokens } = whole.body.choices[0].logprobs
    expect(tokens).toHaveLength(30)
    expect(frames.flatMap(frame => frame.choices[0].logprobs?.tokens ?? [])).toEqual(tokens)
    expect(frames.flatMap(frame => frame.choices[0].logprobs?.text_offset ?? [])).toEqual(
      whole.body.choices[0].logprobs.text_offset,
    )
    const text = texts(whole)[0]!
    const cut = await complete(noise, { ...fields, stop: text.slice(10, 12) })
    const kept = cut.body.choices[0].logprobs.tokens.length
    expect(cut.body.choices[0].logprobs.tokens).toEqual(tokens.slice(0, kept))
    expect(kept).toBeLessThan(30)
  })
})
