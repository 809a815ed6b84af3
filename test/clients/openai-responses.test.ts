import OpenAI from 'openai'
import type { ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { type OwnEngine, startEngine } from '../_engine.ts'

let engine: OwnEngine
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  engine = await startEngine()
  app = await startApp({ models: [{ id: 'm', engine: 'remote', url: `${engine.url}/v1`, concurrency: 8 }] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})
const all = async (stream: AsyncIterable<ResponseStreamEvent>) => {
  const events: ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

test('a response has its text, its usage and the members that it repeats of the request', async () => {
  const response = await client.responses.create({
    model: 'm',
    input: 'Hello',
    instructions: 'Be short.',
    metadata: { team: 'a' },
  })
  expect(response.output_text).not.toBe('')
  expect(response).toMatchObject({
    object: 'response',
    status: 'completed',
    model: 'm',
    instructions: 'Be short.',
    store: true,
    metadata: { team: 'a' },
    output: [{ type: 'message', role: 'assistant', status: 'completed' }],
  })
  expect(response.usage!.total_tokens).toBe(response.usage!.input_tokens + response.usage!.output_tokens)
})

test('a stream has numbered events whose pieces are the text, and ends with the same response as is kept', async () => {
  const events = await all(await client.responses.create({ model: 'm', input: 'Hello', stream: true }))
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
  const types = events.map(({ type }) => type)
  expect(types.filter((type, at) => type !== types[at - 1])).toEqual([
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
  const last = events.at(-1)!
  if (last.type !== 'response.completed') throw new Error(last.type)
  const text = events.map(event => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
  expect(last.response.output[0]).toMatchObject({ content: [{ text }] })
  expect(await client.responses.retrieve(last.response.id)).toMatchObject({ output: last.response.output })
})

test('a kept response is read, listed by its input, continued and deleted', async () => {
  const first = await client.responses.create({ model: 'm', input: 'first' })
  const second = await client.responses.create({ model: 'm', input: 'second', previous_response_id: first.id })
  expect(second.usage!.input_tokens).toBeGreaterThan(first.usage!.input_tokens)
  const items = await client.responses.inputItems.list(first.id)
  expect(items.data).toMatchObject([
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'first' }] },
  ])
  await client.responses.delete(first.id)
  await expect(client.responses.retrieve(first.id)).rejects.toMatchObject({ status: 404 })
  await expect(
    client.responses.create({ model: 'm', input: 'third', previous_response_id: first.id }),
  ).rejects.toMatchObject({ code: 'previous_response_not_found', param: 'previous_response_id' })
})

test('a response without store is not kept', async () => {
  const { id, store } = (await client.responses.create({ model: 'm', input: 'x', store: false })) as {
    id: string
    store?: boolean
  }
  expect(store).toBe(false)
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
})

test('a response in the background is queued, polled, and streamed from any event', async () => {
  const queued = await client.responses.create({ model: 'm', input: 'Hello', background: true })
  expect(['queued', 'in_progress']).toContain(queued.status)
  const events = await all(await client.responses.retrieve(queued.id, { stream: true }))
  expect(events.at(-1)!.type).toBe('response.completed')
  const rest = await all(await client.responses.retrieve(queued.id, { stream: true, starting_after: 3 }))
  expect(rest).toEqual(events.slice(4))
  const done = await client.responses.retrieve(queued.id)
  expect(done.status).toBe('completed')
  expect((await client.responses.cancel(queued.id)).status).toBe('completed')
  const stream = await all(await client.responses.create({ model: 'm', input: 'Hi', background: true, stream: true }))
  expect(stream.at(-1)!.type).toBe('response.completed')
})

test('tokens of an input are counted, those of the conversation that it continues too', async () => {
  const { input_tokens: alone } = await client.responses.inputTokens.count({ model: 'm', input: 'Hello, world.' })
  const { id } = await client.responses.create({ model: 'm', input: 'A longer question than that.' })
  const { input_tokens: continued } = await client.responses.inputTokens.count({
    model: 'm',
    input: 'Hello, world.',
    previous_response_id: id,
  })
  expect(alone).toBeGreaterThan(3)
  expect(continued).toBeGreaterThan(alone + 8)
  await expect(client.responses.inputTokens.count({ model: 'none', input: 'a' })).rejects.toMatchObject({ status: 404 })
})
