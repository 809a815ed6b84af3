import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateObject, generateText, jsonSchema, tool } from 'ai'
import { Ollama } from 'ollama'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { tinyChatRandom, tinyChatSentence, writeTinyModels } from '../../bin/tiny-models.ts'
import { startApp, type TestApp } from '../_app.ts'
import { templates } from '../gpu/engines/gguf/tools/_templates.ts'

/** The official clients with the built-in engine: the toy that ships, and random weights that reason and call tools. */
const folder = mkdtempSync(join(tmpdir(), 'infer-clients-'))
let app: TestApp
let client: OpenAI
let provider: ReturnType<typeof createOpenAICompatible>
beforeAll(async () => {
  const [toy] = writeTinyModels(folder)
  const thinker = join(folder, 'thinker.gguf')
  const controls = ['<think>', '</think>', '<tool_call>', '</tool_call>']
  writeFileSync(thinker, tinyChatRandom(1, { template: templates.qwen3, controls }))
  const models = [
    { id: 'toy', source: toy },
    { id: 'thinker', source: thinker },
  ]
  app = await startApp({ models: models.map(model => ({ ...model, tasks: ['std/chat-completion'] })) })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  provider = createOpenAICompatible({
    name: 'infer',
    baseURL: `${app.url}/std/v1`,
    apiKey: app.secret,
    supportsStructuredOutputs: true,
    includeUsage: true,
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const messages = [{ role: 'user' as const, content: 'What is the weather in Rome?' }]
const schema = {
  type: 'object' as const,
  properties: { city: { type: 'string', maxLength: 8, pattern: '^[a-zA-Z ]*$' }, unit: { enum: ['c', 'f'] } },
  required: ['city', 'unit'],
  additionalProperties: false,
}
const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters: schema } }]
const expectWeather = (value: unknown) => {
  const { city, unit, ...rest } = value as { city: string; unit: string }
  expect(city).toMatch(/^[a-zA-Z ]{0,8}$/)
  expect(['c', 'f']).toContain(unit)
  expect(rest).toEqual({})
}
type Call = OpenAI.ChatCompletionMessageFunctionToolCall

describe.each(['toy', 'thinker'])('the official client and %s', model => {
  // Random weights never end their reasoning.
  const quick = { reasoning_effort: 'none' as const }

  test('a required tool call', async () => {
    const { choices } = await client.chat.completions.create({
      ...quick,
      model,
      messages,
      tools,
      tool_choice: 'required',
    })
    const [{ message, finish_reason }] = choices as [OpenAI.ChatCompletion.Choice]
    expect([finish_reason, message.content]).toEqual(['tool_calls', null])
    for (const call of message.tool_calls as Call[]) {
      expect(call.function.name).toBe('get_weather')
      expectWeather(JSON.parse(call.function.arguments))
    }
  })

  test('the same in a stream, with the helper of the client that assembles it', async () => {
    const stream = client.chat.completions.stream({
      ...quick,
      model,
      messages,
      tools,
      tool_choice: { type: 'function', function: { name: 'get_weather' } },
      stream_options: { include_usage: true },
    })
    const done: { name: string; arguments: string }[] = []
    stream.on('tool_calls.function.arguments.done', ({ name, arguments: given }) =>
      done.push({ name, arguments: given }),
    )
    const final = await stream.finalChatCompletion()
    const [{ message, finish_reason }] = final.choices as [(typeof final.choices)[number]]
    expect([finish_reason, message.content]).toEqual(['tool_calls', null])
    const [call] = message.tool_calls as Call[]
    expectWeather(JSON.parse(call!.function.arguments))
    expect(done).toEqual([{ name: 'get_weather', arguments: call!.function.arguments }])
    expect(final.usage!.completion_tokens).toBeGreaterThan(10)
  })

  test('the result of the call goes back into the conversation', async () => {
    const first = await client.chat.completions.create({ ...quick, model, messages, tools, tool_choice: 'required' })
    const { message } = first.choices[0]!
    const results = message.tool_calls!.map(({ id }) => ({ role: 'tool' as const, tool_call_id: id, content: '21 °C' }))
    const next = await client.chat.completions.create({
      ...quick,
      model,
      tools,
      tool_choice: 'none',
      max_tokens: 40,
      messages: [...messages, message, ...results],
    })
    expect(next.choices[0]!.message.tool_calls).toBeUndefined()
    if (model === 'toy') expect(next.choices[0]!.message.content).toBe(tinyChatSentence)
  })

  test('an answer in JSON', async () => {
    const { choices } = await client.chat.completions.create({
      ...quick,
      model,
      messages,
      response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema } },
    })
    expect(choices[0]!.finish_reason).toBe('stop')
    expectWeather(JSON.parse(choices[0]!.message.content!))
  })
})

test('several answers with log probabilities, whole and streamed', async () => {
  const request = { model: 'toy', messages, n: 3, logprobs: true, top_logprobs: 2 }
  const { choices } = await client.chat.completions.create(request)
  const words = (content: readonly OpenAI.ChatCompletionTokenLogprob[] | null) =>
    content!.map(({ token }) => token).join('')
  expect(choices.map(({ index }) => index)).toEqual([0, 1, 2])
  for (const { message, logprobs } of choices) {
    expect(message.content).toBe(tinyChatSentence)
    expect(words(logprobs!.content)).toBe(tinyChatSentence)
    expect(logprobs!.content!.every(({ top_logprobs, logprob }) => top_logprobs.length === 2 && logprob <= 0)).toBe(
      true,
    )
  }
  const final = await client.chat.completions.stream(request).finalChatCompletion()
  expect(final.choices.map(({ message }) => message.content)).toEqual(choices.map(() => tinyChatSentence))
  for (const { logprobs } of final.choices) expect(words(logprobs!.content)).toBe(tinyChatSentence)
})

test('reasoning, whole and streamed, counted in the usage', async () => {
  // The reasoning marks are the first two tokens after those of the toy.
  const request = { model: 'thinker', messages, max_tokens: 80, seed: 1, logit_bias: { 377: 9, 378: 1 } }
  type Thinking = { reasoning_content?: string }
  const { choices, usage } = await client.chat.completions.create(request)
  const thoughts = (choices[0]!.message as Thinking).reasoning_content
  expect(thoughts).toBeTruthy()
  expect(choices[0]!.message.content).not.toContain('<think>')
  expect(usage!.completion_tokens_details!.reasoning_tokens).toBeGreaterThan(0)
  let streamed = ''
  let counted: number | undefined
  for await (const chunk of await client.chat.completions.create({
    ...request,
    stream: true,
    stream_options: { include_usage: true },
  })) {
    streamed += (chunk.choices[0]?.delta as Thinking | undefined)?.reasoning_content ?? ''
    counted = chunk.usage?.completion_tokens_details?.reasoning_tokens ?? counted
  }
  expect(streamed).toBe(thoughts)
  expect(counted).toBe(usage!.completion_tokens_details!.reasoning_tokens)
})

test('a strict schema that no grammar supports is refused by name', async () => {
  const request = client.chat.completions.create({
    model: 'toy',
    messages,
    tools: [
      {
        type: 'function',
        function: { name: 'f', strict: true, parameters: { type: 'object', not: { required: ['a'] } } },
      },
    ],
  })
  await expect(request).rejects.toSatisfy(
    error =>
      error instanceof OpenAI.BadRequestError &&
      error.param === 'tools[0].function.parameters' &&
      error.message.includes("'not'"),
  )
})

describe('the AI SDK', () => {
  test('generateObject with a schema', async () => {
    const { object } = await generateObject({
      model: provider('toy'),
      schema: jsonSchema({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema } as Parameters<
        typeof jsonSchema
      >[0]),
      prompt: 'The weather in Rome',
      maxRetries: 0,
    })
    expectWeather(object)
  })

  test('generateText with a tool that is run', async () => {
    const asked: unknown[] = []
    const { toolCalls, toolResults } = await generateText({
      model: provider('toy'),
      prompt: 'The weather in Rome',
      tools: {
        get_weather: tool({
          description: 'Weather',
          inputSchema: jsonSchema<object>(schema as Parameters<typeof jsonSchema>[0]),
          execute: input => {
            asked.push(input)
            return { degrees: 21 }
          },
        }),
      },
      toolChoice: 'required',
      maxRetries: 0,
    })
    expect(toolCalls.length).toBe(toolResults.length)
    for (const input of asked) expectWeather(input)
    expect(asked.length).toBeGreaterThan(0)
  })
})

test('a response that is too long loses its oldest items with truncation: auto, and is refused without', async () => {
  const input = Array.from({ length: 41 }, (_, at) => ({
    role: at % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `Message ${at}: ${'many words '.repeat(30)}`,
  }))
  const request = { model: 'toy', input, max_output_tokens: 16 }
  await expect(client.responses.create(request)).rejects.toMatchObject({ code: 'context_length_exceeded' })
  const response = await client.responses.create({ ...request, truncation: 'auto' })
  expect(response).toMatchObject({ truncation: 'auto', output: [{ type: 'message' }] })
  const { input_tokens } = response.usage!
  let last: string | undefined
  for await (const { type } of await client.responses.create({ ...request, truncation: 'auto', stream: true }))
    last = type
  expect(last).toMatch(/^response\.(completed|incomplete)$/)
  // As much of the conversation as fits, and not only its last message.
  const alone = await client.responses.create({ ...request, input: [input.at(-1)!] })
  expect(input_tokens).toBeGreaterThan(2 * alone.usage!.input_tokens)
})

test('show and the lists of Ollama have what the file of a model says', async () => {
  const ollama = new Ollama({ host: `${app.url}/ollama`, headers: { authorization: `Bearer ${app.secret}` } })
  const { details, template, model_info, capabilities } = await ollama.show({ model: 'toy' })
  expect(details).toMatchObject({
    format: 'gguf',
    family: 'llama',
    families: ['llama'],
    parameter_size: expect.stringMatching(/^[\d.]+[KM]$/) as string,
  })
  expect(template).toContain('{%')
  expect(model_info).toMatchObject({
    'general.architecture': 'llama',
    'llama.block_count': expect.any(Number) as unknown,
  })
  expect(capabilities).toContain('completion')
  const named = await app.fetch('/ollama/api/show', { body: { name: 'toy' } })
  expect(await named.json()).toMatchObject({ details })
  const listed = [await ollama.list(), await ollama.ps()].map(({ models }) => models.find(({ name }) => name === 'toy'))
  expect(listed).toMatchObject([{ details }, { details }])
})

/** The schemas of tools that zod writes: formats, patterns with lookaheads, unions, records, tuples. */
const zodTools: [what: string, schema: z.ZodType][] = [
  ['email', z.email()],
  ['url', z.url()],
  ['uuid', z.uuid()],
  ['ipv6', z.ipv6()],
  ['base64', z.base64()],
  ['emoji', z.emoji()],
  ['datetime', z.iso.datetime()],
  ['duration', z.iso.duration()],
  ['a pattern with a lookahead', z.string().regex(/^(?!a)\w+$/)],
  ['a class of Unicode', z.string().regex(/^\p{L}+$/u)],
  ['a step', z.number().multipleOf(0.01)],
  ['a set of one type or another', z.union([z.string(), z.number(), z.null()])],
  [
    'a discriminated union',
    z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b'), n: z.int() })]),
  ],
  ['a record', z.record(z.string().regex(/^[a-z]+$/), z.number())],
  ['a tuple', z.tuple([z.string(), z.number()], z.boolean())],
  ['an intersection', z.intersection(z.object({ a: z.string() }), z.object({ b: z.string().optional() }))],
  ['nested defaults', z.object({ list: z.array(z.string()).min(1).max(3).default(['x']), any: z.unknown() }).loose()],
]
test.each(zodTools)('a tool of the AI SDK with %s', async (_what, schema) => {
  const weather = tool({ description: 'x', inputSchema: z.object({ value: schema }) })
  const { finishReason } = await generateText({
    model: provider('toy'),
    prompt: 'Hello',
    tools: { weather },
    maxOutputTokens: 16,
    maxRetries: 0,
  })
  expect(['stop', 'length', 'tool-calls']).toContain(finishReason)
})

describe('what is left out of a request is named in x-infer-ignored', () => {
  const described = { type: 'object', properties: { url: { type: 'string', format: 'uri' }, any: { not: {} } } }
  const ask = (path: string, body: object) =>
    app.fetch(path, { body: { model: 'toy', max_tokens: 4, messages, ...body } })
  const called = { tools: [{ type: 'function', function: { name: 'f', parameters: described } }] }
  const inChat = ['any.not', 'url.format'].map(end => `tools[0].function.parameters.properties.${end}`).join(', ')

  test.each([
    ['a whole answer', '/v1/chat/completions', called, inChat],
    ['a stream', '/v1/chat/completions', { ...called, stream: true }, inChat],
    ['nothing', '/v1/chat/completions', { tools }, null],
    [
      'a response',
      '/v1/responses',
      {
        input: 'Hi',
        messages: undefined,
        max_output_tokens: 16,
        tools: [{ type: 'web_search' }, { type: 'function', name: 'f', strict: false, parameters: described }],
      },
      `tools[0], ${inChat.replaceAll('tools[0].function.parameters', 'tools[1].parameters')}`,
    ],
    [
      'a message',
      '/anthropic/v1/messages',
      {
        tools: [
          { type: 'bash_20250124', name: 'bash' },
          { name: 'f', input_schema: described },
        ],
        stream: true,
      },
      `tools[0], ${inChat.replaceAll('tools[0].function.parameters', 'tools[1].input_schema')}`,
    ],
  ])('%s', async (_what, path, body, ignored) => {
    const answer = await ask(path, body)
    expect([answer.status, answer.headers.get('x-infer-ignored')]).toEqual([200, ignored])
    await answer.text()
  })

  test('and in the log of a job', async () => {
    const inputs = { messages, max_tokens: 4, ...called }
    const submitted = await app.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'toy', inputs } })
    const { id } = (await submitted.json()) as { id: string }
    await app.fetch(`/api/jobs/${id}?wait=30`)
    const log = await (await app.fetch(`/api/jobs/${id}/logs`)).text()
    expect(log).toContain(`Left out, because the engine of 'toy' cannot keep to it: ${inChat}`)
  })

  test('but what promises is refused by name', async () => {
    const strict = { tools: [{ type: 'function', function: { ...called.tools[0]!.function, strict: true } }] }
    const promised = { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: described } } }
    for (const body of [strict, promised]) {
      const answer = await ask('/v1/chat/completions', body)
      expect(answer.status).toBe(400)
      expect(await answer.text()).toMatch(/cannot keep to '[\w.[\]]+properties\.any\.not'/)
    }
  })
})
