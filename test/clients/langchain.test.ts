import { ChatOpenAI, OpenAIEmbeddings } from '@langchain/openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

let app: TestApp
let chat: ChatOpenAI
beforeAll(async () => {
  app = await startApp()
  chat = new ChatOpenAI({
    model: 'fake',
    apiKey: app.secret,
    maxRetries: 0,
    configuration: { baseURL: `${app.url}/std/v1` },
  })
})
afterAll(() => app[Symbol.asyncDispose]())

test('chat', async () => {
  const answer = await chat.invoke('Hello')
  expect(answer.text).toBeTruthy()
  expect(answer.usage_metadata!.total_tokens).toBeGreaterThan(0)
})

test('a stream', async () => {
  let text = ''
  for await (const chunk of await chat.stream('Hello')) text += chunk.text
  expect(text).toBe((await chat.invoke('Hello')).text)
})

test('tools', async () => {
  const answer = await chat
    .bindTools([{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }], {
      tool_choice: 'required',
    })
    .invoke('Hello')
  expect(answer.tool_calls![0]!.name).toBe('weather')
})

test('structured output', async () => {
  const schema = {
    title: 'thing',
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  }
  expect(await chat.withStructuredOutput(schema, { method: 'jsonSchema' }).invoke('Hello')).toBeTypeOf('object')
})

test('embeddings', async () => {
  const embeddings = new OpenAIEmbeddings({
    model: 'fake',
    apiKey: app.secret,
    maxRetries: 0,
    configuration: { baseURL: `${app.url}/std/v1` },
  })
  const [vector] = await embeddings.embedDocuments(['a', 'b'])
  expect(vector!.length).toBeGreaterThan(1)
})

test('errors', async () => {
  const other = new ChatOpenAI({
    model: 'none',
    apiKey: app.secret,
    maxRetries: 0,
    configuration: { baseURL: `${app.url}/std/v1` },
  })
  await expect(other.invoke('Hello')).rejects.toThrow(/does not exist here/)
})
