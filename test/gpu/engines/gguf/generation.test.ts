import { beforeAll, describe, expect, test } from 'vitest'
import { type Json, startEngine } from './_engine.ts'

const tasks = ['std/chat-completion', 'std/completion'] as const
type Engine = Awaited<ReturnType<typeof startEngine>>
const complete = async (engine: Engine, fields: Json): Promise<Json> => {
  const { status, body } = await engine.post('/v1/completions', { model: 'toy', temperature: 0, ...fields })
  if (status !== 200) throw new Error(JSON.stringify(body))
  return body
}
const endless = { logit_bias: { 2: -100, 260: -100 } }
const shared = 'A system prompt that many conversations begin with. '.repeat(4)

describe('memory that is used again', () => {
  let engine: Engine
  let fresh: Engine
  beforeAll(async () => {
    const options = { model: 'tiny-chat-random.gguf', tasks, context: 1024, parallel: 3 }
    ;[engine, fresh] = await Promise.all([startEngine(options), startEngine({ ...options, parallel: 1 })])
  })

  test('is copied from a conversation that is going on, and the answer is the same as without', async () => {
    const { request, response } = await engine.open({ messages: [{ role: 'user', content: shared }], ...endless })
    response.pause()
    response.on('error', () => {})
    // The chat's prompt begins with its template; what it has in common with this is the system prompt's text.
    const begun = `<|im_start|>user\n${shared}`
    const [copied, alone] = [
      await complete(engine, { prompt: `${begun}One`, max_tokens: 30 }),
      await complete(fresh, { prompt: `${begun}One`, max_tokens: 30 }),
    ]
    expect(copied.usage.prompt_tokens_details.cached_tokens).toBeGreaterThanOrEqual(shared.length)
    // The token that begins every text is there from the start.
    expect(alone.usage.prompt_tokens_details.cached_tokens).toBeLessThan(2)
    expect(copied.choices[0].text).toBe(alone.choices[0].text)
    request.destroy()
  })

  test('of another conversation with the same beginning is left to it', async () => {
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

  test('serves seeded answers, which say what they say alone', async () => {
    const fields = { prompt: `${shared}Seeded`, seed: 9, temperature: 1, top_k: 0, top_p: 1, min_p: 0, max_tokens: 60 }
    const alone = await complete(fresh, fields)
    await complete(engine, { ...fields, prompt: `${shared}Another beginning` })
    const several = await complete(engine, { ...fields, n: 3 })
    expect(several.choices[0].text).toBe(alone.choices[0].text)
    expect((await complete(engine, { ...fields, n: 3 })).choices).toEqual(several.choices)
  })
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

test('whoever is in the middle of an answer gets on while a long prompt is read', async () => {
  const engine = await startEngine({ model: 'tiny-chat-random.gguf', tasks, context: 2048, parallel: 2 })
  const { request, response } = await engine.open({ ...endless, max_tokens: 1900 })
  let chunks = 0
  response.on('data', () => chunks++)
  response.on('error', () => {})
  const before = chunks
  await complete(engine, { prompt: 'x'.repeat(1900), max_tokens: 1 })
  // 1900 tokens in pieces of 128: a token for the other between any two.
  expect(chunks - before).toBeGreaterThanOrEqual(14)
  request.destroy()
})
