import { createOpenAI } from '@ai-sdk/openai'
import { ChatOpenAI } from '@langchain/openai'
import { Agent, tool as agentTool, OpenAIProvider, Runner, setTracingDisabled } from '@openai/agents'
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai'
import OpenAI, { BadRequestError } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** The clients that send responses by default, with only the base URL changed. */
let app: TestApp
let client: OpenAI
let provider: ReturnType<typeof createOpenAI>
beforeAll(async () => {
  app = await startApp()
  const connection = { baseURL: `${app.url}/std/v1`, apiKey: app.secret }
  client = new OpenAI({ ...connection, maxRetries: 0 })
  provider = createOpenAI(connection)
})
afterAll(() => app[Symbol.asyncDispose]())

const base = { model: 'fake', input: 'Hello' }
const answer = 'Hello from the fake engine.'
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const weather = { type: 'function' as const, name: 'weather', parameters, strict: false }

test('a response', async () => {
  const data = await client.responses.create({ ...base, metadata: { a: 'b' } })
  expect(data).toMatchObject({ object: 'response', status: 'completed', output_text: answer, metadata: { a: 'b' } })
  expect(data.usage!.output_tokens).toBeGreaterThan(0)
})

test('a stream by its events, and by the helper', async () => {
  const types: string[] = []
  let sequence = 0
  for await (const event of await client.responses.create({ ...base, stream: true })) {
    expect(event.sequence_number).toBe(sequence++)
    if (types.at(-1) !== event.type) types.push(event.type)
  }
  expect(types).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  const final = await client.responses.stream(base).finalResponse()
  expect([final.output_text, final.status]).toEqual([answer, 'completed'])
})

test('a token limit, whole and streamed', async () => {
  const request = { ...base, max_output_tokens: 2 }
  for (const response of [
    await client.responses.create(request),
    await client.responses.stream(request).finalResponse(),
  ])
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ status: 'incomplete' }],
    })
})

test('tools, whole and streamed, and the answer to their result', async () => {
  const request = { ...base, tools: [weather], tool_choice: 'required' as const }
  const whole = await client.responses.create(request)
  const streamed = await client.responses.stream(request).finalResponse()
  for (const { output } of [whole, streamed])
    expect(output).toMatchObject([{ type: 'function_call', name: 'weather', status: 'completed' }])
  const [call] = whole.output as OpenAI.Responses.ResponseFunctionToolCall[]
  expect(JSON.parse(call!.arguments)).toEqual({ city: 'text' })
  const next = await client.responses.create({
    ...base,
    instructions: 'Be brief.',
    tools: [weather],
    tool_choice: 'none',
    input: [
      { role: 'user', content: [{ type: 'input_text', text: 'Hello' }] },
      ...whole.output,
      { type: 'function_call_output', call_id: call!.call_id, output: 'sunny' },
    ] as OpenAI.Responses.ResponseInput,
  })
  expect(next.output[0]!.type).toBe('message')
})

test('structured output', async () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const { output_parsed } = await client.responses.parse({
    ...base,
    text: { format: { type: 'json_schema', name: 'thing', schema } },
  })
  expect(output_parsed).toBeTypeOf('object')
})

test('what is not available is refused by name', async () => {
  for (const [request, param] of [
    [{ conversation: 'conv_1' }, 'conversation'],
    [{ input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'a' }] }] }, 'input[0].content[0].file_id'],
  ] as const) {
    const refused = client.responses.create({ ...base, ...(request as object) })
    await expect(refused).rejects.toBeInstanceOf(BadRequestError)
    await expect(refused).rejects.toMatchObject({ code: 'unsupported_parameter', param })
  }
  await expect(client.responses.create({ ...base, previous_response_id: 'resp_1' })).rejects.toMatchObject({
    status: 400,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
  await expect(
    client.responses.create({ ...base, input: [{ type: 'item_reference', id: 'msg_1' }] }),
  ).rejects.toMatchObject({ status: 404, param: 'input[0].id' })
  await expect(client.responses.create({ ...base, model: 'none' })).rejects.toMatchObject({ code: 'model_not_found' })
})

const retries = { maxRetries: 0 }
const city = tool({
  description: 'Weather',
  inputSchema: jsonSchema<{ city?: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: () => 'sunny',
})

test('the AI SDK by its default model', async () => {
  const model = provider('fake')
  const { text, usage, finishReason } = await generateText({ model, prompt: 'Hello', ...retries })
  expect([text, finishReason]).toEqual([answer, 'stop'])
  expect(usage.outputTokens).toBeGreaterThan(0)
  const streamed = streamText({ model, prompt: 'Hello', ...retries })
  let pieces = ''
  for await (const piece of streamed.textStream) pieces += piece
  expect([pieces, await streamed.finishReason]).toEqual([answer, 'stop'])
  const schema = jsonSchema<Record<string, unknown>>({ type: 'object', properties: {} })
  const { output } = await generateText({ model, prompt: 'Hello', output: Output.object({ schema }), ...retries })
  expect(output).toBeTypeOf('object')
})

test.each([
  ['as references to stored items, its default', {}],
  ['as items', { openai: { store: false } }],
])('the AI SDK runs tools and sends its steps %s', async (_, providerOptions) => {
  const { steps } = await generateText({
    model: provider('fake'),
    prompt: 'Hello',
    tools: { city },
    toolChoice: 'required',
    stopWhen: stepCountIs(2),
    providerOptions,
    ...retries,
  })
  expect(steps).toHaveLength(2)
  expect(steps[0]!.toolResults[0]).toMatchObject({ toolName: 'city', output: 'sunny' })
})

test('an agent with a tool, whole and streamed', async () => {
  setTracingDisabled(true)
  const runner = new Runner({
    // The package may have a client of its own version.
    modelProvider: new OpenAIProvider({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, useResponses: true }),
  })
  let calls = 0
  const agent = new Agent({
    name: 'forecaster',
    instructions: 'Be brief.',
    model: 'fake',
    modelSettings: { toolChoice: 'required' },
    tools: [
      agentTool({
        name: 'weather',
        description: 'Weather',
        strict: false,
        parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
        execute: () => `sunny ${++calls}`,
      }),
    ],
  })
  expect((await runner.run(agent, 'Hello')).finalOutput).toBe(answer)
  const streamed = await runner.run(agent, 'Hello', { stream: true })
  const kinds = new Set<string>()
  for await (const event of streamed) kinds.add(event.type)
  await streamed.completed
  expect([streamed.finalOutput, calls]).toEqual([answer, 2])
  expect(kinds).toContain('run_item_stream_event')
})

test('LangChain with its mode for responses', async () => {
  const chat = new ChatOpenAI({
    model: 'fake',
    apiKey: app.secret,
    useResponsesApi: true,
    maxRetries: 0,
    configuration: { baseURL: `${app.url}/std/v1` },
  })
  expect((await chat.invoke('Hello')).text).toBe(answer)
  let text = ''
  for await (const chunk of await chat.stream('Hello')) text += chunk.text
  expect(text).toBe(answer)
  const bound = chat.bindTools([{ type: 'function', function: { name: 'weather', parameters } }], {
    tool_choice: 'required',
  })
  expect((await bound.invoke('Hello')).tool_calls![0]).toMatchObject({ name: 'weather' })
})
