import { afterAll, expect, test } from 'vitest'
import { openCpu } from '../../../core/cpu/cpu.ts'
import type { PreparedRequest } from '../../../core/tasks/engine-request.ts'
import { openPreparation, prepare } from '../../../core/tasks/preparation.ts'
import { catalogOf } from './_catalog.ts'

const threads = openCpu({ threads: 1 })
const cpu = openPreparation(threads)
afterAll(() => threads.close())
const bounds = { depth: 64, keys: 10_000 }
const catalog = catalogOf()
const image = `data:image/png;base64,${'A'.repeat(200_000)}`
const chat = (model = 'm') =>
  Buffer.from(
    JSON.stringify({
      model,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: image } },
            { type: 'text', text: 'ö' },
          ],
        },
      ],
    }),
  )
const text = (body: string | Uint8Array) => (typeof body === 'string' ? body : Buffer.from(body).toString('utf8'))
/** The same with one name for the marks of images, which are random. */
const unmarked = ({ bodies, images, ...rest }: PreparedRequest) => ({
  ...rest,
  bodies: bodies.map(body => text(body).replace(/image:[0-9a-f]{32}/g, 'image')),
  images: images?.map(image => ({ ...image, mark: 'image' })),
})

test('small bodies are prepared at once, large ones in a thread, with the same result', async () => {
  const small = cpu.prepare(
    'std/chat-completion',
    Buffer.from('{"model":"m","messages":[{"role":"user","content":"hi"}]}'),
    catalog,
    bounds,
  )
  expect(small).not.toBeInstanceOf(Promise)
  const pending = cpu.prepare('std/chat-completion', chat(), catalog, bounds)
  expect(pending).toBeInstanceOf(Promise)
  const inThread: PreparedRequest = await pending
  const here = prepare('std/chat-completion', chat(), catalog, bounds)
  expect(unmarked(inThread)).toEqual(unmarked(here))
  expect(inThread.images?.map(({ value }) => value.length)).toEqual([150_000])
})

test('images replace their marks at once if they are small, else in a thread, with the same result', async () => {
  const mark = `image:${'0a'.repeat(16)}`
  const filling = (bytes: number) => ({
    bodies: [`{"ü":"${mark}"}`],
    droppable: undefined,
    replacements: [[mark, Buffer.alloc(bytes, 'A')] as [string, Buffer]],
  })
  const small = cpu.insertImages(filling(1_000))
  expect(small).not.toBeInstanceOf(Promise)
  const large = cpu.insertImages(filling(300_000))
  expect(large).toBeInstanceOf(Promise)
  for (const [{ bodies }, bytes] of [
    [await small, 1_000],
    [await large, 300_000],
  ] as const)
    expect(bodies.map(text)).toEqual([`{"ü":"${'A'.repeat(bytes)}"}`])
})

test('a failure in the thread is the same failure here', async () => {
  await expect(cpu.prepare('std/chat-completion', chat('none'), catalog, bounds)).rejects.toMatchObject({
    name: 'Failure',
    code: 'model_not_found',
    param: 'model',
    status: 404,
  })
})

test('many segments whose compression ratio must be computed are shaped in a thread, however small they are', async () => {
  const answer = (segments: number) =>
    Buffer.from(JSON.stringify({ segments: Array.from({ length: segments }, () => ({ text: 'a' })) }))
  const answerFormat = {
    task: 'std/audio-transcription',
    modelId: 'm',
    words: false,
    logprobs: false,
    language: null,
    seconds: 10,
    requestId: null,
  } as const
  expect(cpu.shape([answer(2_000)], { ...answerFormat, format: 'text' })).not.toBeInstanceOf(Promise)
  expect(cpu.shape([answer(10)], { ...answerFormat, format: 'verbose_json' })).not.toBeInstanceOf(Promise)
  const shaped = cpu.shape([answer(2_000)], { ...answerFormat, format: 'verbose_json' })
  expect(shaped).toBeInstanceOf(Promise)
  expect(JSON.parse(text((await shaped).body))).toHaveProperty('segments.length', 2_000)
  expect(cpu.shape([answer(2_000)], { ...answerFormat, format: 'text', result: true })).toBeInstanceOf(Promise)
})

test('large answers are shaped in a thread', async () => {
  const answer = Buffer.from(
    JSON.stringify({
      choices: [{ message: { content: 'ö'.repeat(100_000) }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 2 },
    }),
  )
  const pending = cpu.shape([answer], {
    task: 'std/chat-completion',
    modelId: 'm',
    includeUsage: false,
    legacyFunctions: false,
  })
  expect(pending).toBeInstanceOf(Promise)
  const { body, usage } = await pending
  expect(usage).toMatchObject({ inputTokens: 1, outputTokens: 2 })
  expect((JSON.parse(text(body)) as { choices: { message: { content: string } }[] }).choices[0]!.message.content).toBe(
    'ö'.repeat(100_000),
  )
})

test.each([
  ['in the event loop', 'hi'],
  ['in a thread', 'x'.repeat(200_000)],
])('a request in another form is prepared as a chat and answered in its form, %s', async (_, content) => {
  const request = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content }] }
  const body = () => Buffer.from(JSON.stringify(request))
  const prepared = await cpu.prepare('std/chat-completion', body(), catalog, bounds, { form: 'anthropic' })
  const sent = JSON.parse(text(prepared.bodies[0]!)) as object
  expect(JSON.stringify(sent) === JSON.stringify({ ...sent, model: 'm', messages: request.messages })).toBe(true)
  expect(prepared.form).toEqual({ name: 'anthropic', request: { inputTokens: 0 }, schemas: [] })
  const answer = { choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }] }
  const { body: shaped } = await cpu.shape([Buffer.from(JSON.stringify(answer))], prepared.answerFormat, {
    ...prepared.form!,
    facts: { createdAt: 0, queuedMs: 0 },
  })
  const message = JSON.parse(text(shaped)) as { type: string; content: { text: string }[] }
  expect([message.type, message.content[0]!.text === content]).toEqual(['message', true])
})

test('a stream in another form asks the engine for its usage', async () => {
  const request = { model: 'm', max_tokens: 5, stream: true, messages: [{ role: 'user', content: 'hi' }] }
  const body = Buffer.from(JSON.stringify(request))
  const { stream, answerFormat } = await cpu.prepare('std/chat-completion', body, catalog, bounds, {
    form: 'anthropic',
  })
  expect([stream, answerFormat]).toEqual([true, expect.objectContaining({ includeUsage: true })])
})
