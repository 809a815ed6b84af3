import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { embed, generateImage, generateText, jsonSchema, Output, streamText, tool } from 'ai'
import sharp from 'sharp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

let app: TestApp
let provider: ReturnType<typeof createOpenAICompatible>
beforeAll(async () => {
  app = await startApp({
    models: [fakeModel('fake'), fakeModel('painter', [], { tasks: ['slug/text-to-image', 'slug/inpainting'] })],
  })
  provider = createOpenAICompatible({
    name: 'infer',
    baseURL: `${app.url}/std/v1`,
    apiKey: app.secret,
    supportsStructuredOutputs: true,
    includeUsage: true,
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const prompt = 'Hello'

test('chat', async () => {
  const { text, usage, finishReason } = await generateText({ model: provider('fake'), prompt, maxRetries: 0 })
  expect(text).toBeTruthy()
  expect(finishReason).toBe('stop')
  expect(usage.outputTokens).toBeGreaterThan(0)
})

test('a stream', async () => {
  const result = streamText({ model: provider('fake'), prompt, maxRetries: 0 })
  let text = ''
  for await (const part of result.textStream) text += part
  expect(text).toBe((await generateText({ model: provider('fake'), prompt })).text)
  expect((await result.usage).outputTokens).toBeGreaterThan(0)
})

test('tools', async () => {
  const weather = tool({
    description: 'Weather',
    inputSchema: jsonSchema<{ city?: string }>({ type: 'object', properties: { city: { type: 'string' } } }),
  })
  const { toolCalls } = await generateText({
    model: provider('fake'),
    prompt,
    tools: { weather },
    toolChoice: 'required',
    maxRetries: 0,
  })
  expect(toolCalls[0]!.toolName).toBe('weather')
})

test('structured output, whose schema names its dialect', async () => {
  const schema = jsonSchema<Record<string, unknown>>({
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'object',
    properties: {},
  })
  const { output } = await generateText({
    model: provider('fake'),
    prompt,
    output: Output.object({ schema }),
    maxRetries: 0,
  })
  expect(output).toBeTypeOf('object')
})

test('embeddings', async () => {
  const { embedding } = await embed({ model: provider.embeddingModel('fake'), value: 'a', maxRetries: 0 })
  expect(embedding.length).toBeGreaterThan(1)
})

test('images, and an image edited with a mask', async () => {
  const model = provider.imageModel('painter')
  const { images } = await generateImage({ model, prompt, n: 2, size: '64x64', maxRetries: 0 })
  expect(images.map(({ mediaType }) => mediaType)).toEqual(['image/png', 'image/png'])
  const [first] = images
  const { image } = await generateImage({
    model,
    prompt: { text: prompt, images: [first!.uint8Array], mask: await maskOf(64) },
    maxRetries: 0,
  })
  expect(await sharp(image.uint8Array).metadata()).toMatchObject({ format: 'png', width: 64, height: 64 })
})

const maskOf = async (side: number) =>
  new Uint8Array(
    await sharp({ create: { width: side, height: side, channels: 4, background: '#0000' } })
      .png()
      .toBuffer(),
  )

test('errors contain the message of infer', async () => {
  await expect(generateText({ model: provider('none'), prompt, maxRetries: 0 })).rejects.toThrow(
    /The model 'none' does not exist here/,
  )
})
