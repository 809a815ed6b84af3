import { dirname, join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { makeModels, minutes, startInfer } from './_engine.ts'

/**
 * SGLang on the processor, started by its preset in its sandbox, with tiny models of random weights: see README.md of this
 * folder. Skipped without INFER_REAL_SGLANG, the program `sglang` of an environment.
 */
const program = process.env.INFER_REAL_SGLANG ?? ''
/** A start took 6 to 8 minutes on two cores at a load of 25. */
const start = 15 * minutes

describe.skipIf(program === '')('SGLang', () => {
  const models = makeModels(join(dirname(program), 'python'), 'make-text-models.py', ['embedding', 'chat'])
  const infer = startInfer(dirname(program), () => {
    const further = process.env.INFER_REAL_SGLANG_PYTHONPATH ?? ''
    const model = (id: string, source: string, tasks: string[], more: object = {}) => ({
      id,
      engine: 'sglang',
      source: join(models.folder, source),
      devices: 'cpu',
      memory: '3GiB',
      concurrency: 4,
      context_length: 2048,
      load_timeout: `${start / 1000}s`,
      // Attention of PyTorch, because SGLang's own for the processor needs AMX.
      args: ['--attention-backend', 'torch_native', '--dtype', 'float32'],
      env: { SGLANG_USE_CPU_ENGINE: '1', ...(further ? { PYTHONPATH: further } : {}) },
      sandbox_read: further ? [further] : [],
      tasks,
      ...more,
    })
    return {
      models: [
        model('chat', 'chat', ['std/chat-completion', 'std/completion']),
        model('embed', 'embed-cls', ['std/embeddings'], { context_length: 512 }),
      ],
    }
  })
  const { post, statusOf } = infer

  describe('chat and completion', () => {
    infer.loaded('chat', start)
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const base = { model: 'chat', messages, max_tokens: 24, temperature: 0 }
    const minute = { timeout: 2 * minutes }

    test('whole and streamed, with the text and the tokens of transformers', minute, async () => {
      const { text, prompt } = models.expected.chat as { text: string; prompt: number }
      const usage = { prompt_tokens: prompt, completion_tokens: 24, total_tokens: prompt + 24 }
      const whole = await infer.openai.chat.completions.create(base)
      expect(whole.choices[0]).toMatchObject({ message: { content: text }, finish_reason: 'length' })
      expect(whole.usage).toMatchObject(usage)
      const chunks = []
      const stream = { ...base, stream: true, stream_options: { include_usage: true } } as const
      for await (const chunk of await infer.openai.chat.completions.create(stream)) chunks.push(chunk)
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(text)
      expect(chunks.at(-1)!.usage).toMatchObject(usage)
      const completion = await infer.openai.completions.create({ model: 'chat', prompt: ['ab', 'cd'], max_tokens: 5 })
      expect(completion.choices.map(({ index }) => index)).toEqual([0, 1])
      expect(completion.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 10 })
    })

    test('stop, several answers, logprobs, json_schema', minute, async () => {
      const { text } = models.expected.chat as { text: string }
      const stop = text.slice(3, 6)
      const stopped = await infer.openai.chat.completions.create({ ...base, stop })
      const before = text.slice(0, text.indexOf(stop))
      expect(stopped.choices[0]).toMatchObject({ message: { content: before }, finish_reason: 'stop' })
      const several = await infer.openai.chat.completions.create({ ...base, n: 2 })
      expect(several.choices.map(({ message }) => message.content)).toEqual([text, text])
      const { choices } = await infer.openai.chat.completions.create({ ...base, logprobs: true, top_logprobs: 3 })
      const tokens = choices[0]!.logprobs!.content!
      expect(tokens.map(({ token }) => token).join('')).toBe(text)
      for (const { token, logprob, top_logprobs } of tokens) expect(top_logprobs[0]).toMatchObject({ token, logprob })
      const schema = {
        type: 'object',
        properties: { city: { enum: ['Oslo', 'Lima'] } },
        required: ['city'],
        additionalProperties: false,
      }
      const json_schema = { name: 'city', schema, strict: true }
      const shaped = await infer.openai.chat.completions.create({
        ...base,
        max_tokens: 100,
        response_format: { type: 'json_schema', json_schema },
      })
      expect(['Oslo', 'Lima']).toContain(JSON.parse(shaped.choices[0]!.message.content!).city)
    })

    test('a request that does not fit is refused, a limit that does not fit is reduced', minute, async () => {
      for (const stream of [false, true]) {
        const body = { ...base, stream, messages: [{ role: 'user', content: 'x'.repeat(3000) }] }
        const long = await post('/std/v1/chat/completions', body)
        expect([long.status, long.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      }
      const content = 'x'.repeat(2000)
      const { choices, usage } = await infer.openai.chat.completions.create({
        ...base,
        messages: [{ role: 'user', content }],
        max_tokens: 500,
      })
      expect(choices[0]!.finish_reason).toBe('length')
      // SGLang itself leaves two tokens free.
      expect(usage!.total_tokens).toBe(2046)
    })

    test('after a caller disconnects the next one is served', minute, async () => {
      const leaving = new AbortController()
      const body = { ...base, max_tokens: 1900, stream: true, ignore_eos: true }
      const response = await infer.app.fetch('/std/v1/chat/completions', { body, signal: leaving.signal })
      await response.body!.getReader().read()
      leaving.abort()
      await vi.waitFor(async () => expect((await statusOf('chat')).engines[0].busy).toBe(0), { timeout: minutes })
      expect((await infer.openai.chat.completions.create(base)).choices[0]!.message.content).toBe(
        models.expected.chat.text,
      )
    })
  })

  describe('embeddings', () => {
    infer.loaded('embed', start)
    // They are those of transformers neither by mean nor by first token: its kernels are a stand-in here, so why is not known.
    test('have their length, are the same for the same text, and are refused', { timeout: 2 * minutes }, async () => {
      const { texts, vectors } = models.expected.embedding as { texts: string[]; vectors: { cls: number[][] } }
      const [text, other] = texts as [string, string]
      const input = [text, other, text]
      const { data } = await infer.openai.embeddings.create({ model: 'embed', input, encoding_format: 'float' })
      const [first, second, third] = data.map(({ embedding }) => embedding) as [number[], number[], number[]]
      expect(first).toHaveLength(vectors.cls[0]!.length)
      expect(Math.hypot(...first)).toBeCloseTo(1, 2)
      for (const [place, value] of first.entries()) expect(third[place]).toBeCloseTo(value, 3)
      expect(second).not.toEqual(first)
      const refused = await post('/std/v1/embeddings', { model: 'embed', input: 'x'.repeat(600) })
      expect([refused.status, refused.body.error?.code]).toEqual([400, 'context_length_exceeded'])
    })
  })
})
