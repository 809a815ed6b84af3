import Anthropic from '@anthropic-ai/sdk'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** The official client, with only the base URL changed, with an engine that has every feature. */
let app: TestApp
let client: Anthropic
const open = (apiKey: string) => new Anthropic({ baseURL: `${app.url}/anthropic`, apiKey, maxRetries: 0 })
beforeAll(async () => {
  app = await startApp()
  client = open(app.secret)
})
afterAll(() => app[Symbol.asyncDispose]())

const base = { model: 'fake', max_tokens: 64, messages: [{ role: 'user' as const, content: 'Hello' }] }
const weather: Anthropic.Tool = {
  name: 'weather',
  description: 'The weather of a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } } },
}

test('a message', async () => {
  const { data, response, request_id } = await client.messages.create(base).withResponse()
  expect(data).toMatchObject({ type: 'message', role: 'assistant', model: 'fake', stop_reason: 'end_turn' })
  expect(data.content).toMatchObject([{ type: 'text', text: 'Hello from the fake engine.' }])
  expect(data.usage.input_tokens).toBeGreaterThan(0)
  expect(data.usage.output_tokens).toBeGreaterThan(0)
  expect(request_id).toMatch(/^req_[0-9A-Z]{26}$/)
  const job = await app.fetch(`/api/jobs/${response.headers.get('x-job-id')!}`)
  expect(await job.json()).toMatchObject({ task: 'std/chat-completion', status: 'completed' })
})

test('a stream by the helper, and by its events', async () => {
  const whole = await client.messages.create(base)
  let text = ''
  const stream = client.messages.stream(base).on('text', delta => (text += delta))
  const message = await stream.finalMessage()
  expect(message.content).toEqual(whole.content)
  expect([text, message.stop_reason]).toEqual(['Hello from the fake engine.', 'end_turn'])
  expect(message.usage).toMatchObject({
    input_tokens: whole.usage.input_tokens,
    output_tokens: whole.usage.output_tokens,
  })
  const types = new Set<string>()
  for await (const event of await client.messages.create({ ...base, stream: true })) types.add(event.type)
  expect([...types]).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

test('a token limit', async () =>
  expect((await client.messages.create({ ...base, max_tokens: 2 })).stop_reason).toBe('max_tokens'))

test('tools, whole and streamed, and the answer to their result', async () => {
  const request = { ...base, tools: [weather], tool_choice: { type: 'any' as const } }
  const whole = await client.messages.create(request)
  expect(whole.stop_reason).toBe('tool_use')
  const streamed = await client.messages.stream(request).finalMessage()
  for (const message of [whole, streamed])
    expect(message.content).toMatchObject([{ type: 'tool_use', name: 'weather', input: { city: 'text' } }])
  const [call] = whole.content as Anthropic.ToolUseBlock[]
  const result: Anthropic.ToolResultBlockParam = {
    type: 'tool_result',
    tool_use_id: call!.id,
    content: [{ type: 'text', text: 'sunny', cache_control: { type: 'ephemeral' } }],
  }
  const answer = await client.messages.create({
    ...base,
    system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
    tools: [weather],
    tool_choice: { type: 'none' },
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [
      ...base.messages,
      {
        role: 'assistant',
        content: [{ type: 'thinking', thinking: 'hm', signature: 'unsigned' }, ...(whole.content as [])],
      },
      { role: 'user', content: [result] },
    ],
  })
  expect(answer.content[0]).toMatchObject({ type: 'text' })
})

test('images and documents', async () => {
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const { content } = await client.messages.create({
    ...base,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: pixel } },
          { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Once upon a time.' } },
          { type: 'text', text: 'What is this?' },
        ],
      },
    ],
  })
  expect(content).toHaveLength(1)
})

test('structured output', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const { content } = await client.messages.create({
    ...base,
    output_config: { format: { type: 'json_schema', schema } },
  })
  expect(JSON.parse((content[0] as Anthropic.TextBlock).text)).toEqual({ a: 'text' })
})

test('the tokens of a message are estimated', async () => {
  const { input_tokens: few } = await client.messages.countTokens({ model: 'fake', messages: base.messages })
  const { input_tokens: more } = await client.messages.countTokens({
    model: 'fake',
    system: 'a'.repeat(300),
    messages: base.messages,
    tools: [weather],
  })
  expect(few).toBeGreaterThan(0)
  expect(more).toBeGreaterThan(few + 100)
})

test('models, listed and retrieved', async () => {
  const ids: string[] = []
  for await (const model of client.models.list()) ids.push(model.id)
  expect(ids).toEqual(['fake'])
  expect(await client.models.retrieve('fake')).toMatchObject({ type: 'model', id: 'fake', display_name: 'fake' })
})

test('the client with a token in place of a key', async () => {
  const bearer = new Anthropic({ baseURL: `${app.url}/anthropic`, authToken: app.secret, apiKey: null, maxRetries: 0 })
  expect((await bearer.messages.create(base)).role).toBe('assistant')
})

test('errors become the classes of the client, with their request id', async () => {
  await expect(client.messages.create({ ...base, model: 'none' })).rejects.toSatisfy(
    error =>
      error instanceof Anthropic.NotFoundError &&
      error.type === 'not_found_error' &&
      error.requestID?.startsWith('req_') === true,
  )
  await expect(client.models.retrieve('org/none')).rejects.toBeInstanceOf(Anthropic.NotFoundError)
  await expect(open('sk-wrong').messages.create(base)).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
  await expect(client.messages.create({ ...base, messages: [] })).rejects.toBeInstanceOf(Anthropic.BadRequestError)
})

test('a tool that Anthropic runs is left out, and named', async () => {
  const tools: Anthropic.ToolUnion[] = [{ type: 'web_search_20250305', name: 'web_search' }]
  const { data, response } = await client.messages.create({ ...base, tools }).withResponse()
  expect(data.content[0]!.type).toBe('text')
  expect(response.headers.get('x-infer-ignored')).toBe('tools[0]')
})

test('an error in the middle of a stream is raised', async () => {
  const stream = client.messages.stream({ ...base, messages: [{ role: 'user', content: 'mode:error-frame' }] })
  await expect(stream.finalMessage()).rejects.toSatisfy(
    error => error instanceof Anthropic.APIError && JSON.stringify(error.error).includes('"api_error"'),
  )
})
