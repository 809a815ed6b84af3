import { CohereClient, CohereClientV2, CohereError } from 'cohere-ai'
import Groq from 'groq-sdk'
import OpenAI from 'openai'
import Together from 'together-ai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { VoyageAIClient } from 'voyageai'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { heardInWav, toneModel } from '../server/surfaces/openai/_speech.ts'

/** The official clients of Cohere, Voyage, Together and Groq, with only the base URL changed. */
let app: TestApp
let cohere: CohereClientV2
let together: Together
let groq: Groq
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('fake', [], { tasks: ['std/chat-completion', 'std/completion', 'std/embeddings', 'std/rerank'] }),
      fakeModel('judge', [], { tasks: ['std/chat-completion', 'std/moderation'] }),
      fakeModel('labels', [], { tasks: ['std/moderation'] }),
      toneModel(),
      toneModel({ id: 'ears', tasks: ['std/audio-transcription'] }),
    ],
  })
  cohere = new CohereClientV2({ token: app.secret, environment: app.url })
  together = new Together({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  groq = new Groq({ baseURL: `${app.url}/std`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const messages = [{ role: 'user' as const, content: 'Hello' }]
const text = 'Hello from the fake engine.'
const documents = ['The dog barked.', 'A cat sat on the mat.']
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const tools = [{ type: 'function' as const, function: { name: 'weather', parameters } }]

test('Cohere: chat with documents, and with tools', async () => {
  const answer = await cohere.chat({ model: 'fake', messages, documents: [{ id: 'a', data: { text: 'One.' } }] })
  expect(answer).toMatchObject({ finishReason: 'COMPLETE', message: { content: [{ type: 'text', text }] } })
  expect(answer.usage!.tokens!.outputTokens).toBeGreaterThan(0)
  const called = await cohere.chat({ model: 'fake', messages, tools, toolChoice: 'REQUIRED' })
  expect(called).toMatchObject({
    finishReason: 'TOOL_CALL',
    message: { toolCalls: [{ type: 'function', function: { name: 'weather', arguments: '{"city":"text"}' } }] },
  })
})

test('Cohere: a streamed chat', async () => {
  let said = ''
  let last: unknown
  for await (const event of await cohere.chatStream({ model: 'fake', messages })) {
    if (event.type === 'content-delta') said += event.delta?.message?.content?.text ?? ''
    last = event
  }
  expect(said).toBe(text)
  expect(last).toMatchObject({ type: 'message-end', delta: { finishReason: 'COMPLETE', usage: { tokens: {} } } })
})

test('Cohere: embeddings of several types', async () => {
  const { embeddings, texts } = await cohere.embed({
    model: 'fake',
    texts: documents,
    inputType: 'search_document',
    embeddingTypes: ['float', 'int8', 'ubinary'],
  })
  expect(texts).toEqual(documents)
  expect(embeddings.float).toHaveLength(2)
  expect(embeddings.int8![0]).toHaveLength(embeddings.float![0]!.length)
  expect(embeddings.ubinary![0]).toHaveLength(Math.ceil(embeddings.float![0]!.length / 8))
})

test('Cohere: embeddings of the first version', async () => {
  const old = new CohereClient({ token: app.secret, environment: app.url })
  const floats = await old.embed({ model: 'fake', texts: documents, inputType: 'search_query' })
  expect(floats).toMatchObject({ responseType: 'embeddings_floats', texts: documents })
  expect((floats.embeddings as number[][]).map(vector => vector.length > 1)).toEqual([true, true])
  const typed = await old.embed({
    model: 'fake',
    texts: documents,
    inputType: 'search_query',
    embeddingTypes: ['int8'],
  })
  expect(typed).toMatchObject({
    responseType: 'embeddings_by_type',
    embeddings: { int8: expect.any(Array) as unknown },
  })
  await expect(old.embed({ model: 'fake', images: ['data:image/png;base64,AAAA'] })).rejects.toSatisfy(
    error => error instanceof CohereError && JSON.stringify(error.body).includes("'images' is not supported"),
  )
})

test('Cohere: rerank, in both versions', async () => {
  const request = { model: 'fake', query: 'Who sat?', documents, topN: 1 }
  const old = new CohereClient({ token: app.secret, environment: app.url })
  for (const { results } of [await cohere.rerank(request), await old.rerank(request)])
    expect(results).toMatchObject([{ index: expect.any(Number), relevanceScore: expect.any(Number) }])
})

test('Cohere: an error', async () => {
  await expect(cohere.chat({ model: 'none', messages })).rejects.toSatisfy(
    error => error instanceof CohereError && error.statusCode === 404 && JSON.stringify(error.body).includes("'none'"),
  )
})

test('Voyage: embeddings and rerank', async () => {
  const voyage = new VoyageAIClient({ apiKey: app.secret, environment: `${app.url}/std/v1` })
  const embedded = await voyage.embed({
    model: 'fake',
    input: documents,
    inputType: 'document',
    truncation: true,
    outputDtype: 'int8',
  })
  expect(embedded.data!.map(({ index }) => index)).toEqual([0, 1])
  for (const { embedding } of embedded.data!) for (const number of embedding!) expect(number).toBe(Math.trunc(number))
  expect(embedded.usage!.totalTokens).toBeGreaterThan(0)
  const ranked = await voyage.rerank({ model: 'fake', query: 'Who?', documents, topK: 1, returnDocuments: true })
  expect(ranked.data).toMatchObject([{ document: expect.any(String), relevanceScore: expect.any(Number) }])
})

test('Together: chat, completions, embeddings and rerank', async () => {
  const chat = await together.chat.completions.create({ model: 'fake', messages })
  expect(chat.choices[0]!.message!.content).toBe(text)
  let said = ''
  for await (const chunk of await together.chat.completions.create({ model: 'fake', messages, stream: true }))
    said += chunk.choices[0]?.delta.content ?? ''
  expect(said).toBe(text)
  const completed = await together.completions.create({ model: 'fake', prompt: 'Once upon a time' })
  expect(completed.choices[0]!.text).toBe(' and so on')
  const { data } = await together.embeddings.create({ model: 'fake', input: documents })
  expect(data.map(({ embedding }) => embedding.length > 1)).toEqual([true, true])
  const ranked = await together.rerank.create({
    model: 'fake',
    query: 'Who?',
    documents: documents.map(one => ({ title: one, body: 'x' })),
    rank_fields: ['title'],
    return_documents: true,
    top_n: 1,
  })
  expect(ranked.results).toMatchObject([{ index: expect.any(Number), document: { text: expect.any(String) } }])
})

test('Groq: chat, models, speech and transcription', async () => {
  const chat = await groq.chat.completions.create({ model: 'fake', messages })
  expect(chat.choices[0]!.message.content).toBe(text)
  let said = ''
  for await (const chunk of await groq.chat.completions.create({ model: 'fake', messages, stream: true }))
    said += chunk.choices[0]?.delta.content ?? ''
  expect(said).toBe(text)
  expect((await groq.models.list()).data.map(({ id }) => id)).toContain('fake')
  const spoken = await groq.audio.speech.create({ model: 'tones', voice: 'alto', input: text, response_format: 'wav' })
  const audio = new Uint8Array(await spoken.arrayBuffer())
  expect(heardInWav(audio)).toBe(text)
  const file = new File([audio], 'a.wav', { type: 'audio/wav' })
  expect((await groq.audio.transcriptions.create({ model: 'ears', file })).text).toBe(text)
})

test('OpenAI: moderations by a classifier', async () => {
  const openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  const { results, model } = await openai.moderations.create({ model: 'labels', input: ['I hate you.', 'A cat.'] })
  expect(model).toBe('labels')
  expect(results).toMatchObject([
    { flagged: true, categories: { hate: true, sexual: false }, category_scores: { hate: 0.9 } },
    { flagged: false, categories: { hate: false } },
  ])
})

test('OpenAI: moderations by a chat model', async () => {
  const openai = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  const named = await openai.moderations.create({ model: 'omni-moderation-latest', input: documents })
  expect([named.model, named.results.length]).toEqual(['judge', 2])
  expect(named.results[0]).toMatchObject({ flagged: false, categories: { hate: false, 'violence/graphic': false } })
  const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC'
  const image_url = { url: `data:image/png;base64,${pixel}` }
  const parts = await openai.moderations.create({
    input: [
      { type: 'text', text: 'Look!' },
      { type: 'image_url', image_url },
    ],
  })
  expect(parts.results[0]!.category_applied_input_types.violence).toEqual(['text', 'image'])
  await expect(openai.moderations.create({ model: 'fake', input: 'a' })).rejects.toThrow(
    "The model 'fake' does not do moderation. For moderation there is 'judge', 'labels'.",
  )
})
