import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** The official client, with only the base URL changed, with an engine that has every feature. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp()
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const messages = [{ role: 'user' as const, content: 'Hello' }]
const weather = {
  type: 'function' as const,
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
}

test('chat', async () => {
  const { data, response, request_id } = await client.chat.completions
    .create({ model: 'fake', messages })
    .withResponse()
  expect(data.choices[0]!.message.content).toBeTruthy()
  expect(data.usage!.total_tokens).toBe(data.usage!.prompt_tokens + data.usage!.completion_tokens)
  expect(request_id).toMatch(/^req_[0-9A-Z]{26}$/)
  expect(response.headers.get('x-job-id')).toMatch(/^job_/)
})

test('a stream has the same text as a whole answer', async () => {
  const whole = await client.chat.completions.create({ model: 'fake', messages })
  let text = ''
  let usage: OpenAI.CompletionUsage | null | undefined
  for await (const chunk of await client.chat.completions.create({
    model: 'fake',
    messages,
    stream: true,
    stream_options: { include_usage: true },
  })) {
    text += chunk.choices[0]?.delta.content ?? ''
    usage = chunk.usage ?? usage
  }
  expect(text).toBe(whole.choices[0]!.message.content)
  expect(usage!.completion_tokens).toBeGreaterThan(0)
})

test('the helper of the client that accumulates a stream', async () => {
  const stream = client.chat.completions.stream({ model: 'fake', messages })
  const final = await stream.finalChatCompletion()
  expect(final.choices[0]!.finish_reason).toBe('stop')
  expect(final.choices[0]!.message.content).toBeTruthy()
})

test('tools, whole and streamed', async () => {
  const request = { model: 'fake', messages, tools: [weather], tool_choice: 'required' as const }
  const whole = await client.chat.completions.create(request)
  const call = whole.choices[0]!.message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall
  expect(call.function.name).toBe('weather')
  expect(JSON.parse(call.function.arguments)).toBeTypeOf('object')
  const streamed = await client.chat.completions.stream(request).finalChatCompletion()
  expect(
    (streamed.choices[0]!.message.tool_calls![0] as OpenAI.ChatCompletionMessageFunctionToolCall).function.name,
  ).toBe('weather')
})

test('structured output', async () => {
  const answer = await client.chat.completions.create({
    model: 'fake',
    messages,
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'n',
        strict: true,
        schema: { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false },
      },
    },
  })
  expect(JSON.parse(answer.choices[0]!.message.content!)).toBeTypeOf('object')
})

test('embeddings: the client asks for base64 and decodes it', async () => {
  const { data, usage } = await client.embeddings.create({ model: 'fake', input: ['a', 'b'] })
  expect(data.map(({ index }) => index)).toEqual([0, 1])
  expect(data[0]!.embedding.length).toBeGreaterThan(1)
  expect(data[0]!.embedding.every(Number.isFinite)).toBe(true)
  expect(usage.prompt_tokens).toBeGreaterThan(0)
  const floats = await client.embeddings.create({ model: 'fake', input: ['a', 'b'], encoding_format: 'float' })
  floats.data[0]!.embedding.forEach((value, at) => expect(data[0]!.embedding[at]).toBeCloseTo(value, 5))
})

test('models, listed and retrieved', async () => {
  const list = await client.models.list()
  expect(list.data.map(({ id }) => id)).toEqual(['fake'])
  expect(await client.models.retrieve('fake')).toMatchObject({ id: 'fake', object: 'model', owned_by: 'local' })
})

test('errors become the classes of the client, with their request id', async () => {
  await expect(client.models.retrieve('org/none')).rejects.toSatisfy(
    error =>
      error instanceof OpenAI.NotFoundError &&
      error.code === 'model_not_found' &&
      error.requestID?.startsWith('req_') === true,
  )
  await expect(client.chat.completions.create({ model: 'none', messages })).rejects.toBeInstanceOf(OpenAI.NotFoundError)
  await expect(client.chat.completions.create({ model: 'fake', messages: [] })).rejects.toBeInstanceOf(
    OpenAI.BadRequestError,
  )
  await expect(
    new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: 'sk-wrong', maxRetries: 0 }).models.list(),
  ).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
})

test('an error in the middle of a stream is raised', async () => {
  const stream = await client.chat.completions.create({
    model: 'fake',
    messages: [{ role: 'user', content: 'mode:error-frame' }],
    stream: true,
  })
  await expect(
    (async () => {
      for await (const _ of stream);
    })(),
  ).rejects.toSatisfy(error => error instanceof OpenAI.APIError && error.code === 'worker_error')
})

test('the alias /v1 works the same way', async () => {
  const plain = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: app.secret, maxRetries: 0 })
  expect((await plain.chat.completions.create({ model: 'fake', messages })).choices.length).toBe(1)
})

test('completions, whole and streamed, have the same text', async () => {
  const request = { model: 'fake', prompt: 'Once upon a time', logprobs: 2 }
  const { data, response } = await client.completions.create(request).withResponse()
  const [choice] = data.choices
  expect([choice!.text, choice!.finish_reason]).toEqual([' and so on', 'stop'])
  expect(choice!.logprobs!.tokens!.join('')).toBe(choice!.text)
  expect(data.usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 })
  const job = await app.fetch(`/api/jobs/${response.headers.get('x-job-id')!}`)
  expect(await job.json()).toMatchObject({ task: 'std/completion', usage: { input_tokens: 4, output_tokens: 3 } })
  let text = ''
  let usage: OpenAI.CompletionUsage | null | undefined
  const stream = await client.completions.create({ ...request, stream: true, stream_options: { include_usage: true } })
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? ''
    usage = chunk.usage ?? usage
  }
  expect([text, usage!.total_tokens]).toEqual([choice!.text, 7])
})
