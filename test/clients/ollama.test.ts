import { join } from 'node:path'
import { Ollama } from 'ollama'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tinyChat } from '../../bin/tiny-chat.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { openHub } from '../fixtures/hub.ts'

/** Ollama's official client, with nothing changed but its host and the header with the token. */
let app: TestApp
let hub: Awaited<ReturnType<typeof openHub>>
let client: Ollama
const kept = { endpoint: process.env.HF_ENDPOINT, home: process.env.HF_HOME }
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake', [], { context_length: 4096 })] })
  client = clientOf(app.secret)
  hub = await openHub({ 'Owner/Tiny-GGUF': { files: { 'tiny-Q4_K_M.gguf': tinyChat() } } })
  process.env.HF_ENDPOINT = hub.endpoint
  process.env.HF_HOME = join(app.dataDir, 'hub')
})
afterAll(async () => {
  if (kept.endpoint === undefined) delete process.env.HF_ENDPOINT
  else process.env.HF_ENDPOINT = kept.endpoint
  if (kept.home === undefined) delete process.env.HF_HOME
  else process.env.HF_HOME = kept.home
  await app[Symbol.asyncDispose]()
  await hub.close()
})

const clientOf = (secret: string) =>
  new Ollama({ host: `${app.url}/ollama`, headers: { authorization: `Bearer ${secret}` } })

async function all<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const part of parts) read.push(part)
  return read
}

const model = 'fake'
const messages = [{ role: 'user', content: 'Hello' }]
const text = 'Hello from the fake engine.'
const weather = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'Returns the weather.',
    parameters: { type: 'object', required: ['city'], properties: { city: { type: 'string' } } },
  },
}

test('chat, whole', async () => {
  const answer = await client.chat({ model, messages, options: { temperature: 0, num_predict: 20 } })
  expect(answer).toMatchObject({
    model,
    message: { role: 'assistant', content: text },
    done: true,
    done_reason: 'stop',
    eval_count: 5,
  })
  expect(answer.prompt_eval_count).toBeGreaterThan(0)
  expect(answer.total_duration).toBeGreaterThan(1e5)
  // The clock of the start has whole milliseconds.
  expect(answer.total_duration + 1e6).toBeGreaterThan(answer.eval_duration + answer.load_duration)
  expect(Date.parse(String(answer.created_at))).toBeGreaterThan(Date.now() - 60_000)
})

test('chat, streamed', async () => {
  const pieces: string[] = []
  let last: object | undefined
  for await (const part of await client.chat({ model: 'fake:latest', messages, stream: true })) {
    pieces.push(part.message.content)
    last = part
  }
  expect([pieces.length > 3, pieces.join('')]).toEqual([true, text])
  expect(last).toMatchObject({ model: 'fake:latest', done: true, done_reason: 'stop', eval_count: 5 })
})

test.each([false, true])('tools and their results, streamed: %s', async stream => {
  const request = { model, messages, tools: [weather] }
  const answers = stream ? await all(await client.chat({ ...request, stream: true })) : [await client.chat(request)]
  const calls = answers.flatMap(({ message }) => message.tool_calls ?? [])
  expect(calls).toMatchObject([{ function: { name: 'weather', arguments: { city: 'text' } } }])
  const next = await client.chat({
    model,
    messages: [
      ...messages,
      { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', tool_name: 'weather', content: '11 degrees' },
    ],
  })
  expect(next.message.content).toBe(text)
})

test('an answer by a schema', async () => {
  const format = { type: 'object', properties: { city: { const: 'Oslo' } }, required: ['city'] }
  const { message } = await client.chat({ model, messages, format })
  expect(JSON.parse(message.content)).toEqual({ city: 'Oslo' })
})

test('generate, whole and streamed, with an image', async () => {
  const image = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC',
    'base64',
  )
  const whole = await client.generate({ model, prompt: 'Hello', system: 'Be brief.', images: [image] })
  expect(whole).toMatchObject({ response: text, done: true })
  const parts = await all(await client.generate({ model, prompt: 'Hello', stream: true }))
  expect(parts.map(({ response }) => response).join('')).toBe(text)
})

test('embed one and several, and the older call', async () => {
  const { embeddings, prompt_eval_count } = await client.embed({ model, input: ['a', 'b'] })
  expect([embeddings.length, prompt_eval_count > 0]).toEqual([2, true])
  const one = await client.embed({ model, input: 'a' })
  expect(one.embeddings[0]).toEqual(embeddings[0])
  expect((await client.embeddings({ model, prompt: 'a' })).embedding).toEqual(embeddings[0])
})

test('list, show, ps and version', async () => {
  expect((await client.list()).models).toMatchObject([{ name: 'fake', model: 'fake', details: { format: 'custom' } }])
  expect(await client.show({ model })).toMatchObject({
    capabilities: expect.arrayContaining(['completion', 'tools', 'embedding']) as unknown,
    model_info: { 'general.architecture': 'infer', 'infer.context_length': 4096 },
  })
  expect((await client.ps()).models).toMatchObject([{ name: 'fake', size_vram: 0, context_length: 4096 }])
  expect((await client.version()).version).toMatch(/^\d+\.\d+\.\d+$/)
})

test('a request without content loads the model, and keep_alive 0 unloads it', async () => {
  expect(await client.generate({ model, prompt: '', keep_alive: 0 })).toMatchObject({ done_reason: 'unload' })
  expect((await client.ps()).models).toEqual([])
  expect(await client.chat({ model, messages: [], keep_alive: '10m' })).toMatchObject({ done_reason: 'load' })
  expect((await client.ps()).models).toHaveLength(1)
})

test('abort ends a stream', async () => {
  const stream = await client.chat({
    model,
    messages: [{ role: 'user', content: 'Hello mode:stream,tokens=1000,rate=20' }],
    stream: true,
  })
  const read = async () => {
    for await (const _ of stream) stream.abort()
  }
  await expect(read()).rejects.toThrow(/abort/i)
})

test('errors are read by the client', async () => {
  await expect(client.chat({ model: 'nope', messages })).rejects.toThrow("The model 'nope' does not exist here.")
  await expect(client.generate({ model, prompt: 'a', suffix: 'b' })).rejects.toThrow("'suffix' is not supported here.")
  await expect(clientOf('sk-infer-wrong').list()).rejects.toThrow('Incorrect API key')
  await expect(client.delete({ model })).rejects.toThrow('infer model remove')
  await expect(client.copy({ source: model, destination: 'b' })).rejects.toThrow('infer model add --id')
  await expect(client.push({ model })).rejects.toThrow('not supported')
})

test('an error within a stream ends it', async () => {
  const stream = await client.chat({
    model,
    messages: [{ role: 'user', content: 'mode:crash,after=2' }],
    stream: true,
  })
  await expect(all(stream)).rejects.toThrow(/engine|model/i)
})

test('pull downloads a model with its progress and offers it', async () => {
  const lines = await all(await client.pull({ model: 'hf.co/Owner/Tiny-GGUF:Q4_K_M', stream: true }))
  expect(lines[0]).toEqual({ status: 'pulling manifest' })
  expect(lines).toContainEqual(
    expect.objectContaining({ digest: 'tiny-Q4_K_M.gguf', total: tinyChat().length, completed: tinyChat().length }),
  )
  expect(lines.at(-1)).toEqual({ status: 'success' })
  const names = (await client.list()).models.map(({ name }) => name)
  expect(names).toHaveLength(2)
  expect(names[1]).toMatch(/tiny/i)
  await expect(client.pull({ model: 'hf.co/Owner/Nothing' })).rejects.toThrow(/Owner\/Nothing/)
  await expect(client.pull({ model: '/etc/passwd' })).rejects.toThrow('The catalog has no model')
  await expect(client.pull({ model: 'http://127.0.0.1/x.gguf' })).rejects.toThrow('The catalog has no model')
})
