import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

/** An engine whose tokens are messages, and whose context has four. */
let app: TestApp
let engine: ScriptedEngine
const context = 4
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const count = seen.body.messages!.length
    if (count < context) return well(seen, response)
    badly(
      response,
      400,
      `This model's maximum context length is ${context} tokens. However, your messages resulted in ${count} tokens. Please reduce the length of the messages.`,
    )
  })
  app = await startApp({ models: [engine.model('far')] })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const conversation = Array.from({ length: 21 }, (_, at) => ({
  role: at % 2 === 0 ? 'user' : 'assistant',
  content: `message ${at}`,
}))
const sent = () => engine.seen.at(-1)!.body.messages!.map(({ content }) => content)

test.each<[string, string, object]>([
  ['a response', '/std/v1/responses', { input: conversation, instructions: 'Be short.' }],
  ['a streamed response', '/std/v1/responses', { input: conversation, instructions: 'Be short.', stream: true }],
  [
    'a chat completion',
    '/std/v1/chat/completions',
    { messages: [{ role: 'system', content: 'Be short.' }, ...conversation] },
  ],
])('%s loses its oldest messages until it fits', async (_, path, body) => {
  const before = engine.seen.length
  const answer = await app.fetch(path, { body: { model: 'far', truncation: 'auto', ...body } })
  const text = await answer.text()
  expect([answer.status, text]).toEqual([
    200,
    expect.stringContaining(path.endsWith('responses') ? '"auto"' : 'choices'),
  ])
  expect(sent()).toEqual(['Be short.', 'message 20'])
  expect(engine.seen.length - before).toBeLessThan(4)
  expect(engine.seen.at(-1)!.body).not.toHaveProperty('truncation')
})

test('a response in the background does too, and a job', async () => {
  const created = await app.fetch('/std/v1/responses', {
    body: { model: 'far', truncation: 'auto', input: conversation, background: true },
  })
  const { id } = (await created.json()) as { id: string }
  expect(await (await app.fetch(`/std/v1/responses/${id}?stream=true`)).text()).toContain('response.completed')
  expect(sent()).toEqual(['message 18', 'message 19', 'message 20'])
  const inputs = { messages: conversation, truncation: 'auto' }
  const job = await app.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'far', inputs } })
  const { id: jobId } = (await job.json()) as { id: string }
  expect(await (await app.fetch(`/api/jobs/${jobId}?wait=30`)).json()).toMatchObject({ status: 'completed' })
})

test('without it, or with nothing to leave out, the error of the engine is the answer', async () => {
  const system = Array.from({ length: 6 }, () => ({ role: 'system', content: 'Rule.' }))
  for (const [path, body] of [
    ['responses', { input: conversation }],
    ['responses', { input: conversation, truncation: 'disabled' }],
    ['chat/completions', { messages: [...system, { role: 'user', content: 'Hello' }], truncation: 'auto' }],
  ] as const) {
    const before = engine.seen.length
    const answer = await app.fetch(`/std/v1/${path}`, { body: { model: 'far', ...body } })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ error: { code: 'context_length_exceeded' } })
    expect(engine.seen.length - before).toBe(1)
  }
})
