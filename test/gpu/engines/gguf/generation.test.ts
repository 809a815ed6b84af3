import { getLlama, LlamaLogLevel, type Token } from 'node-llama-cpp'
import { beforeAll, describe, expect, test } from 'vitest'
import { file, type Json, startEngine } from './_engine.ts'

const tasks = ['std/chat-completion', 'std/completion'] as const
type Engine = Awaited<ReturnType<typeof startEngine>>
const complete = async (engine: Engine, fields: Json): Promise<Json> => {
  const { status, body } = await engine.post('/v1/completions', { model: 'toy', temperature: 0, ...fields })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}
const endless = { logit_bias: { 2: -100, 260: -100 } }
const shared = 'A system prompt that many conversations begin with. '.repeat(4)

describe('reused memory', () => {
  let engine: Engine
  let fresh: Engine
  beforeAll(async () => {
    const options = { model: 'tiny-chat-random.gguf', tasks, context: 1024, parallel: 3 }
    ;[engine, fresh] = await Promise.all([startEngine(options), startEngine({ ...options, parallel: 1 })])
  })

  test('is copied from a running conversation, and the answer is the same as without', async () => {
    const { request, response } = await engine.open({ messages: [{ role: 'user', content: shared }], ...endless })
    response.pause()
    response.on('error', () => {})
    // The chat's prompt begins with its template; the common part is the system prompt's text.
    const begun = `<|im_start|>user\n${shared}`
    const [copied, alone] = [
      await complete(engine, { prompt: `${begun}One`, max_tokens: 30 }),
      await complete(fresh, { prompt: `${begun}One`, max_tokens: 30 }),
    ]
    expect(copied.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(shared.length)
    // The first token of every text is there from the start.
    expect(alone.usage.prompt_tokens_details.cached_tokens).toBeLessThan(2)
    expect(copied.choices[0].text).toBe(alone.choices[0].text)
    request.destroy()
  })

  test('of another conversation with the same prefix is left to it', async () => {
    const long = `${shared}and one goes on for long. `.repeat(2)
    await complete(engine, { prompt: long, max_tokens: 1 })
    const other = await complete(engine, { prompt: `${shared}Something else`, max_tokens: 1 })
    expect(other.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(shared.length)
    const back = await complete(engine, { prompt: `${long}more`, max_tokens: 1 })
    expect(back.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(long.length)
  })

  test('serves all answers to one prompt', async () => {
    const prompt = `${shared}Several answers`
    const { choices, usage } = await complete(engine, { prompt, n: 5, max_tokens: 25, ...endless })
    const alone = await complete(fresh, { prompt, max_tokens: 25, ...endless })
    expect(choices.map((choice: Json) => choice.text)).toEqual(Array(5).fill(alone.choices[0].text))
    expect(usage).toMatchObject({ prompt_tokens: alone.usage.prompt_tokens, completion_tokens: 125 })
  })

  test('serves seeded answers, which are the same as alone', async () => {
    const fields = { prompt: `${shared}Seeded`, seed: 9, temperature: 1, top_k: 0, top_p: 1, min_p: 0, max_tokens: 60 }
    const alone = await complete(fresh, fields)
    await complete(engine, { ...fields, prompt: `${shared}Another beginning` })
    const several = await complete(engine, { ...fields, n: 3 })
    expect(several.choices[0].text).toBe(alone.choices[0].text)
    expect((await complete(engine, { ...fields, n: 3 })).choices).toEqual(several.choices)
  })
})

describe('the same text as node-llama-cpp generates', () => {
  test('greedily', async () => {
    const engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 1024, parallel: 4 })
    // A short prompt, one of several pieces, and one that continues the one before, all at once.
    const prompts = [7, 300, 400].map(length => [1, ...Array.from({ length }, (_, at) => 3 + ((at * 31) % 250))])
    const bodies = await Promise.all(
      prompts.map(prompt => complete(engine, { prompt, max_tokens: 60, logprobs: 0, ...endless })),
    )
    const llama = await getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      maxThreads: 1,
      logLevel: LlamaLogLevel.error,
    })
    try {
      const model = await llama.loadModel({ modelPath: file('tiny-chat-random.gguf') })
      const context = await model.createContext({ contextSize: 1024, threads: 1 })
      for (const [at, prompt] of prompts.entries()) {
        const sequence = context.getSequence()
        const said: string[] = []
        for await (const token of sequence.evaluate(prompt as Token[], { temperature: 0, yieldEogToken: true })) {
          // It cannot be kept from ending; the answer until then must be the same.
          if (model.isEogToken(token) || said.length === 60) break
          said.push(model.detokenize([token], true))
        }
        expect(said.length).toBeGreaterThan(5)
        expect(bodies[at]!.choices[0].logprobs.tokens.slice(0, said.length)).toEqual(said)
        await sequence.dispose()
      }
    } finally {
      await llama.dispose()
    }
  })
})

describe('parameters of sampling', () => {
  let engine: Engine
  beforeAll(async () => {
    engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 512, parallel: 1 })
  })
  /** How often the byte 'A', with this much added to its logit, is generated before any other. */
  const repeats = async (fields: Json): Promise<number> => {
    const bias = { logit_bias: { ...endless.logit_bias, 68: 20 } }
    const { choices } = await complete(engine, { prompt: 'Once', max_tokens: 40, ...bias, ...fields })
    return /^A*/.exec(choices[0].text)![0].length
  }

  test('a bias', async () => expect(await repeats({})).toBe(40))
  test('presence counts once', async () => expect(await repeats({ presence_penalty: 2 })).toBe(40))
  test('frequency counts every time', async () => {
    const two = await repeats({ frequency_penalty: 2 })
    const one = await repeats({ frequency_penalty: 1 })
    expect([two > 3, two < 16, one > two, one < 32]).toEqual([true, true, true, true])
  })
  test('repetition divides', async () => {
    expect(await repeats({ repetition_penalty: 1.1 })).toBe(40)
    expect(await repeats({ repetition_penalty: 100 })).toBe(1)
  })
  test.each<[string, Json]>([
    ['top_k 1', { top_k: 1 }],
    ['min_p 1', { min_p: 1 }],
    ['top_p 0', { top_p: 0 }],
    ['a tiny temperature', { temperature: 1e-6 }],
  ])('%s keeps the likeliest only', async (_rule, fields) => {
    const asked = { prompt: 'Once', max_tokens: 20 }
    const greedy = await complete(engine, asked)
    const drawn = await complete(engine, { ...asked, temperature: 2, top_k: 0, top_p: 1, min_p: 0, ...fields })
    expect(drawn.choices[0].text).toBe(greedy.choices[0].text)
  })
})

test('no slot is lost when callers connect and disconnect', async () => {
  const engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 256, parallel: 4 })
  const leaving = Array.from({ length: 40 }, async (_, at) => {
    const controller = new AbortController()
    const answer = fetch(`${engine.address}/v1/completions`, {
      method: 'POST',
      body: JSON.stringify({
        model: 'toy',
        prompt: 'x'.repeat(at * 3).padStart(4, 'y'),
        n: 1 + (at % 6),
        ...(at % 2 === 0 && { seed: at }),
        stream: at % 3 === 0,
        max_tokens: 100,
        ...endless,
      }),
      signal: controller.signal,
    }).then(response => response.text())
    // Some disconnect while they wait, some while their prompt is read, some during their answer, some never.
    for (let turn = 0; turn < (at % 5) * 6; turn++) await new Promise(setImmediate)
    if (at % 4 !== 3) controller.abort()
    return answer
  })
  const settled = await Promise.allSettled(leaving)
  const stayed = settled.filter((_, at) => at % 4 === 3)
  expect(stayed.map(({ status }) => status)).toEqual(Array(10).fill('fulfilled'))
  const { choices } = await complete(engine, { prompt: 'All slots', n: 4, max_tokens: 5, ...endless })
  expect(choices).toHaveLength(4)
  expect(engine.log.filter(line => line.includes('"error"'))).toEqual([])
})

test('256 at once', async () => {
  const engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 64, parallel: 256 })
  const bodies = await Promise.all(
    Array.from({ length: 300 }, (_, at) => complete(engine, { prompt: `number ${at}`, max_tokens: 8, ...endless })),
  )
  expect(bodies.map(({ usage }) => usage.completion_tokens)).toEqual(Array(300).fill(8))
  const again = await complete(engine, { prompt: 'number 7', max_tokens: 8, ...endless })
  expect(bodies[7]!.choices[0].text).toBe(again.choices[0].text)
})

test('a running answer continues while a long prompt is read', async () => {
  const engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 2048, parallel: 2 })
  const { request, response } = await engine.open({ ...endless, max_tokens: 1900 })
  let frames = 0
  response.on('data', (bytes: Buffer) => (frames += bytes.toString('latin1').split('data: ').length - 1))
  response.on('error', () => {})
  const before = frames
  await complete(engine, { prompt: 'x'.repeat(1900), max_tokens: 1 })
  // 1900 tokens in pieces of 128 make 15 rounds, with a token for the other in each; in whole batches they would make 4.
  expect(frames - before).toBeGreaterThan(8)
  request.destroy()
})
