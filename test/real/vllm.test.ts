import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toFile } from 'openai'
import { describe, expect, test, vi } from 'vitest'
import { type Json, makeModels, minutes, startInfer } from './_engine.ts'

/**
 * vLLM on the processor, started by its preset in its sandbox, with tiny models of random weights: see README.md of this
 * folder. Skipped without INFER_REAL_VLLM, the program `vllm` of an environment with a build for the processor.
 */
const program = process.env.INFER_REAL_VLLM ?? ''
/** A start took 6 to 8 minutes on two cores at a load of 25. */
const start = 15 * minutes

describe.skipIf(program === '')('vLLM', () => {
  const python = join(dirname(program), 'python')
  const models = makeModels(python, 'make-text-models.py', ['embedding', 'ranking', 'chat', 'whisper'])
  const infer = startInfer(dirname(program), () => {
    // Without compilation, which takes minutes and makes nothing faster here. The precision is that of the expected values.
    const exact = ['--enforce-eager', '--dtype', 'float32']
    const model = (id: string, source: string, tasks: string[], more: object = {}) => ({
      id,
      engine: 'vllm',
      source: join(models.folder, source),
      devices: 'cpu',
      memory: '3GiB',
      concurrency: 4,
      load_timeout: `${start / 1000}s`,
      args: exact,
      tasks,
      ...more,
    })
    return {
      models: [
        model('chat', 'chat', ['std/chat-completion', 'std/completion'], {
          context_length: 2048,
          extra_params: ['ignore_eos'],
          args: [...exact, '--enable-auto-tool-choice', '--tool-call-parser', 'hermes'],
        }),
        model('embed', 'embed-mean', ['std/embeddings']),
        model('rerank', 'rerank', ['std/rerank', 'std/score']),
        model('whisper', 'whisper', ['std/audio-transcription', 'std/audio-translation'], { memory: '4GiB' }),
        model('small', 'chat', ['std/chat-completion'], { memory: '100MiB' }),
        model('none', 'absent', ['std/chat-completion']),
      ],
    }
  })
  const { post, statusOf } = infer

  /** The process of an engine and all that it has started. */
  function processesOf(root: number): number[] {
    const parents = readdirSync('/proc').flatMap(name => {
      const at = Number(name)
      if (!(at > 0)) return []
      try {
        return [[at, Number(/\) \w (\d+)/.exec(readFileSync(`/proc/${at}/stat`, 'utf8'))![1])] as const]
      } catch {
        return []
      }
    })
    const found = [root]
    for (const parent of found) found.push(...parents.flatMap(([at, of]) => (of === parent ? [at] : [])))
    return found
  }
  const engineOf = async (id: string): Promise<Json> => (await statusOf(id)).engines[0]

  /** The sum of some of vLLM's own metrics. */
  async function metrics(id: string, ...names: string[]): Promise<number> {
    const lines = processesOf((await engineOf(id)).pid).map(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    const port = lines.map(line => /\0--port\0(\d+)\0/.exec(line)?.[1]).find(Boolean)
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    const values = names.map(name => new RegExp(`^vllm:${name}\\{[^}]*\\} (\\S+)`, 'm').exec(text)?.[1])
    expect(values).not.toContain(undefined)
    return values.reduce((sum, value) => sum + Number(value), 0)
  }
  /** The number of requests that vLLM works on, or that wait in it. */
  const running = (id: string) => metrics(id, 'num_requests_running', 'num_requests_waiting')
  const generated = (id: string) => metrics(id, 'generation_tokens_total')

  describe('chat and completion', () => {
    infer.loaded('chat', start)
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const base = { model: 'chat', messages, max_tokens: 24, temperature: 0 }
    const minute = { timeout: minutes }

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
      expect(chunks.filter(({ choices }) => choices[0]?.delta.content).length).toBeGreaterThan(5)
      expect(chunks.at(-1)!.usage).toMatchObject(usage)
      const completion = await infer.openai.completions.create({ model: 'chat', prompt: ['ab', 'cd'], max_tokens: 5 })
      expect(completion.choices.map(({ index }) => index)).toEqual([0, 1])
      expect(completion.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 10 })
    })

    test('stop, seeds, several answers, logprobs', minute, async () => {
      const { text } = models.expected.chat as { text: string }
      const stop = text.slice(3, 6)
      const stopped = await infer.openai.chat.completions.create({ ...base, stop })
      const before = text.slice(0, text.indexOf(stop))
      expect(stopped.choices[0]).toMatchObject({ message: { content: before }, finish_reason: 'stop' })
      const seeded = async (seed: number) =>
        (await infer.openai.chat.completions.create({ ...base, seed, temperature: 1.5, n: 2 })).choices.map(
          ({ message }) => message.content,
        )
      const first = await seeded(1)
      expect(first).toHaveLength(2)
      expect(await seeded(1)).toEqual(first)
      expect(await seeded(2)).not.toEqual(first)
      const { choices } = await infer.openai.chat.completions.create({ ...base, logprobs: true, top_logprobs: 3 })
      const tokens = choices[0]!.logprobs!.content!
      expect(tokens.map(({ token }) => token).join('')).toBe(text)
      for (const { token, logprob, top_logprobs } of tokens) {
        expect(logprob).toBeLessThanOrEqual(0)
        expect(top_logprobs).toHaveLength(3)
        expect(top_logprobs[0]).toMatchObject({ token, logprob })
      }
      const completion = await infer.openai.completions.create({
        model: 'chat',
        prompt: 'ab',
        max_tokens: 3,
        logprobs: 2,
      })
      expect(completion.choices[0]!.logprobs!.token_logprobs).toHaveLength(3)
    })

    const schema = {
      type: 'object',
      properties: { city: { enum: ['Oslo', 'Lima'] }, unit: { enum: ['celsius', 'fahrenheit'] } },
      required: ['city', 'unit'],
      additionalProperties: false,
    }
    const isWeather = (text: string) => {
      const { city, unit, ...rest } = JSON.parse(text) as Record<string, string>
      return /^(Oslo|Lima)$/.test(city!) && /^(celsius|fahrenheit)$/.test(unit!) && Object.keys(rest).length === 0
    }
    // Of other tools vLLM checks the name, not the arguments.
    const tools = ['get_weather', 'get_climate'].map(name => ({
      type: 'function' as const,
      function: { name, parameters: schema, strict: true },
    }))

    test('json_schema, tools, and one tool by name', { timeout: 3 * minutes }, async () => {
      const shape = { ...base, max_tokens: 300 }
      const long = { ...shape, parallel_tool_calls: false }
      const json_schema = { name: 'weather', schema, strict: true }
      const shaped = await infer.openai.chat.completions.create({
        ...shape,
        response_format: { type: 'json_schema', json_schema },
      })
      expect(isWeather(shaped.choices[0]!.message.content!)).toBe(true)
      const named = { type: 'function' as const, function: { name: 'get_climate' } }
      for (const tool_choice of ['required' as const, named]) {
        const { choices } = await infer.openai.chat.completions.create({ ...long, tools, tool_choice })
        const [call] = choices[0]!.message.tool_calls!
        // As OpenAI's own service answers a call of a tool by name.
        const reason = tool_choice === named ? 'stop' : 'tool_calls'
        expect(choices[0]!.finish_reason).toBe(reason)
        if (call?.type !== 'function') throw new Error('no call')
        if (tool_choice === named) expect(call.function.name).toBe('get_climate')
        expect(call.id).toBeTruthy()
        expect(isWeather(call.function.arguments)).toBe(true)

        const deltas = []
        const stream = { ...long, tools, tool_choice, stream: true } as const
        for await (const { choices } of await infer.openai.chat.completions.create(stream)) deltas.push(...choices)
        const calls = deltas.flatMap(({ delta }) => delta.tool_calls ?? []).filter(({ index }) => index === 0)
        expect(calls[0]).toMatchObject({ id: expect.any(String), function: { name: expect.stringMatching(/^get_/) } })
        expect(isWeather(calls.map(one => one.function?.arguments ?? '').join(''))).toBe(true)
        expect(deltas.at(-1)!.finish_reason).toBe(reason)
      }
    })

    test('a request that does not fit is refused, a limit that does not fit is reduced', minute, async () => {
      for (const stream of [false, true]) {
        const body = { ...base, stream, messages: [{ role: 'user', content: 'x'.repeat(3000) }] }
        const long = await post('/std/v1/chat/completions', body)
        expect([long.status, long.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      }
      const long = await post('/std/v1/completions', { model: 'chat', prompt: 'x'.repeat(3000), max_tokens: 5 })
      expect([long.status, long.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      const content = 'x'.repeat(2000)
      const { choices, usage } = await infer.openai.chat.completions.create({
        ...base,
        messages: [{ role: 'user', content }],
        max_tokens: 500,
      })
      expect([choices[0]!.finish_reason, usage!.total_tokens]).toEqual(['length', 2048])
    })

    test('a text model refuses images', minute, async () => {
      const url = `data:image/png;base64,${Buffer.from('iVBORw0KGgo', 'base64').toString('base64')}`
      const content = [{ type: 'image_url', image_url: { url } }]
      const refused = await post('/std/v1/chat/completions', { ...base, messages: [{ role: 'user', content }] })
      expect([refused.status, refused.body.error.type]).toEqual([400, 'invalid_request_error'])
    })

    test('a caller who disconnects stops the computation', { timeout: 2 * minutes }, async () => {
      const before = await generated('chat')
      const leaving = new AbortController()
      // 7600 tokens take longer than a busy machine may stop the process of this test.
      const body = { ...base, n: 4, temperature: 1, max_tokens: 1900, stream: true, ignore_eos: true }
      const response = await infer.app.fetch('/std/v1/chat/completions', { body, signal: leaving.signal })
      await response.body!.getReader().read()
      leaving.abort()
      await vi.waitFor(async () => expect(await running('chat')).toBe(0), { timeout: minutes, interval: 20 })
      // No requests are running after a whole answer either.
      expect((await generated('chat')) - before).toBeLessThan(4 * 1900)
      expect((await engineOf('chat')).busy).toBe(0)
    })

    test('an engine that was killed is started again', { timeout: start }, async () => {
      const { id, pid } = await engineOf('chat')
      for (const one of processesOf(pid).toReversed()) process.kill(one, 'SIGKILL')
      await vi.waitFor(async () => expect((await engineOf('chat'))?.id).not.toBe(id), {
        timeout: minutes,
        interval: 50,
      })
      await infer.app.fetch('/api/models/chat/load', { method: 'POST' })
      await vi.waitFor(async () => expect((await statusOf('chat')).status.workers.ready).toBe(1), {
        timeout: start,
        interval: 500,
      })
      expect((await infer.openai.chat.completions.create(base)).choices[0]!.message.content).toBe(
        models.expected.chat.text,
      )
    })
  })

  describe('embeddings', () => {
    infer.loaded('embed', start)
    test('equal those of transformers, are cut to fit, and are refused', { timeout: 2 * minutes }, async () => {
      const { texts, vectors, tokens } = models.expected.embedding
      for (const encoding_format of ['float', 'base64'] as const) {
        const { data, usage } = await infer.openai.embeddings.create({ model: 'embed', input: texts, encoding_format })
        expect(usage.prompt_tokens).toBe(tokens)
        for (const [at, vector] of (vectors.mean as number[][]).entries()) {
          const bytes = data[at]!.embedding as unknown as string
          const found =
            encoding_format === 'float'
              ? data[at]!.embedding
              : new Float32Array(Uint8Array.from(Buffer.from(bytes, 'base64')).buffer)
          expect(found).toHaveLength(vector.length)
          for (const [place, value] of vector.entries()) expect(found[place]).toBeCloseTo(value, 4)
        }
      }
      const long = { model: 'embed', input: 'x'.repeat(600) }
      const refused = await post('/std/v1/embeddings', long)
      expect([refused.status, refused.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      const cut = await post('/std/v1/embeddings', { ...long, truncation: true })
      expect([cut.status, cut.body.usage?.prompt_tokens]).toEqual([200, 512])
    })
  })

  describe('reranking and scoring', () => {
    infer.loaded('rerank', start)
    test('equal those of transformers', { timeout: 2 * minutes }, async () => {
      const { query, scores } = models.expected.ranking as { query: string; scores: number[] }
      const documents = models.expected.embedding.texts as string[]
      const { body } = await post('/std/v1/rerank', { model: 'rerank', query, documents })
      const order = scores.map((_, at) => at).toSorted((a, b) => scores[b]! - scores[a]!)
      expect(body.results.map(({ index }: Json) => index)).toEqual(order)
      for (const { index, relevance_score } of body.results) expect(relevance_score).toBeCloseTo(scores[index]!, 4)
      const scored = await post('/std/v1/score', { model: 'rerank', text_1: query, text_2: documents })
      for (const [at, { score }] of scored.body.data.entries()) expect(score).toBeCloseTo(scores[at]!, 4)
      const long = { model: 'rerank', query, documents: ['x'.repeat(600)] }
      const refused = await post('/std/v1/rerank', long)
      expect([refused.status, refused.body.error?.code]).toEqual([400, 'context_length_exceeded'])
      const cut = await post('/std/v1/rerank', { ...long, truncation: true })
      expect([cut.status, cut.body.results?.length]).toEqual([200, 1])
    })
  })

  describe('transcription', () => {
    infer.loaded('whisper', start)
    /** A tone of some seconds, as WAV with 16 kHz. Random weights hear anything in it. */
    function tone(seconds: number): Buffer {
      const samples = Int16Array.from({ length: seconds * 16_000 }, (_, at) => 8_000 * Math.sin(at / 6))
      const head = Buffer.alloc(44)
      head.write('RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0', 'latin1')
      head.writeUInt32LE(36 + samples.byteLength, 4)
      head.writeUInt32LE(16_000, 24)
      head.writeUInt32LE(32_000, 28)
      head.writeUInt16LE(2, 32)
      head.writeUInt16LE(16, 34)
      head.write('data', 36)
      head.writeUInt32LE(samples.byteLength, 40)
      return Buffer.concat([head, Buffer.from(samples.buffer)])
    }

    test('whole, with segments, streamed, and as a translation', { timeout: 4 * minutes }, async () => {
      const file = await toFile(tone(3), 'tone.wav', { type: 'audio/wav' })
      const common = { model: 'whisper', file, language: 'en', temperature: 0 }
      const { text } = await infer.openai.audio.transcriptions.create(common)
      // Random weights may hear nothing.
      expect(typeof text).toBe('string')
      const verbose = await infer.openai.audio.transcriptions.create({ ...common, response_format: 'verbose_json' })
      expect(verbose.duration).toBeCloseTo(3, 1)
      const events = []
      for await (const event of await infer.openai.audio.transcriptions.create({ ...common, stream: true }))
        events.push(event)
      expect(events.at(-1)).toMatchObject({ type: 'transcript.text.done', text })
      const translated = await infer.openai.audio.translations.create({ model: 'whisper', file })
      expect(typeof translated.text).toBe('string')
    })
  })

  test.each([
    ['too little memory', 'small', /out of memory/],
    ['a folder without a model', 'none', /the model cannot be loaded/],
  ])('%s is named when the engine does not start', { timeout: start }, async (_case, id, reason) => {
    await infer.app.fetch(`/api/models/${id}/load`, { method: 'POST' })
    await vi.waitFor(async () => expect((await statusOf(id)).status.reason).toMatch(reason), {
      timeout: start,
      interval: 500,
    })
  })
})
