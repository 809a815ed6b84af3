import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseConfig } from '../../../../core/models/config.ts'
import { routeTable } from '../../../../server/routes.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { heardInWav, toneModel } from './_speech.ts'

/** What clients of other vendors of OpenAI-compatible APIs send and read. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('acme/chat-8b'),
      fakeModel('acme/picture', [], { tasks: ['slug/text-to-image'], aliases: ['gpt-image-1'] }),
      toneModel(),
      toneModel({ id: 'aliased', voice_aliases: { alloy: 'bass', narrator: 'soprano' } }),
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const ask = async (path: string, body?: unknown) => {
  const response = await app.fetch(path, body === undefined ? {} : { body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const chat = { model: 'acme/chat-8b', messages: [{ role: 'user', content: 'a' }] }

describe('prefixes', () => {
  test('every route below /std/v1 answers below /v1 and /std/openai/v1 too', () => {
    const std = routeTable().filter(({ path }) => path.startsWith('/std/v1/'))
    expect(std.length).toBeGreaterThan(12)
    for (const { path, aliases = [] } of std)
      for (const prefix of ['/v1', '/std/openai/v1']) expect(aliases).toContain(path.replace('/std/v1', prefix))
  })

  test.each(['/std/v1', '/v1', '/std/openai/v1'])('%s', async prefix => {
    expect((await ask(`${prefix}/chat/completions`, chat)).status).toBe(200)
    expect((await ask(`${prefix}/models`)).status).toBe(200)
    expect((await ask(`${prefix}/models/acme%2Fchat-8b`)).body).toMatchObject({ id: 'acme/chat-8b' })
    expect((await ask(`${prefix}/models/acme/chat-8b`)).body).toMatchObject({ id: 'acme/chat-8b' })
  })
})

test('rerank has a usage with completion_tokens, which Together’s provider of the AI SDK requires', async () => {
  const { body } = await ask('/std/v1/rerank', { model: 'acme/chat-8b', query: 'a', documents: ['a', 'b'] })
  const { prompt_tokens, completion_tokens, total_tokens } = body.usage as Record<string, number>
  expect([completion_tokens, total_tokens]).toEqual([0, prompt_tokens])
})

test('images: response_format base64 is b64_json', async () => {
  const { status, body } = await ask('/std/v1/images/generations', {
    model: 'acme/picture',
    prompt: 'a cat',
    size: '64x64',
    response_format: 'base64',
  })
  expect(status).toBe(200)
  const [image] = body.data as { b64_json?: string; url?: string }[]
  expect([image!.url, Buffer.from(image!.b64_json!, 'base64').subarray(1, 4).toString()]).toEqual([undefined, 'PNG'])
})

test.each([
  ['gpt-image-1', undefined, 'b64_json'],
  ['gpt-image-1', 'url', 'url'],
  ['acme/picture', undefined, 'url'],
] as const)('images of %s with response_format %s have %s', async (model, response_format, form) => {
  const { body } = await ask('/std/v1/images/generations', { model, prompt: 'a cat', size: '64x64', response_format })
  expect(Object.keys((body.data as object[])[0]!).filter(key => key === 'url' || key === 'b64_json')).toEqual([form])
})

describe('voices', () => {
  const say = async (model: string, voice: unknown) => {
    const response = await app.fetch('/std/v1/audio/speech', {
      body: { model, input: 'Hello!', voice, response_format: 'wav' },
    })
    const bytes = new Uint8Array(await response.arrayBuffer())
    return { status: response.status, bytes, text: Buffer.from(bytes).toString('utf8') }
  }

  test.each([
    'alloy',
    'ash',
    'ballad',
    'cedar',
    'coral',
    'echo',
    'fable',
    'marin',
    'nova',
    'onyx',
    'sage',
    'shimmer',
    'verse',
  ])('OpenAI’s voice %s is mapped to a voice of the toy', async voice => {
    const { status, bytes } = await say('tones', voice)
    expect([status, heardInWav(bytes)]).toEqual([200, 'Hello!'])
  })

  test('voice_aliases in infer.yaml are resolved before the engine’s voices', async () => {
    const [bass, aliased, named, soprano] = await Promise.all([
      say('aliased', 'bass'),
      say('aliased', 'alloy'),
      say('aliased', { id: 'narrator' }),
      say('aliased', 'soprano'),
    ])
    expect(Buffer.from(aliased.bytes).equals(Buffer.from(bass.bytes))).toBe(true)
    expect(Buffer.from(named.bytes).equals(Buffer.from(soprano.bytes))).toBe(true)
    expect(Buffer.from(bass.bytes).equals(Buffer.from(soprano.bytes))).toBe(false)
  })

  test('another voice is refused with the list of voices', async () => {
    const { status, text } = await say('aliased', 'shouting')
    expect(status).toBe(400)
    expect(text).toMatch(/has no voice 'shouting'\. It has: alto, bass, soprano\. Aliases: .*narrator/)
  })

  test('aliases are listed with the models', async () => {
    const { models } = (await ask('/api/voice/models')).body as unknown as {
      models: { model_id: string; voice_aliases: Record<string, string> }[]
    }
    expect(models.find(({ model_id }) => model_id === 'aliased')!.voice_aliases).toMatchObject({
      alloy: 'bass',
      narrator: 'soprano',
    })
  })

  test('an alias of a voice that the model lacks is an error in infer.yaml', () => {
    const model = (aliases: string) =>
      `models: [{id: a, engine: remote, url: "http://h/v1", tasks: [std/audio-speech], voices: [af_heart], voice_aliases: ${aliases}}]`
    expect(() => parseConfig(model('{alloy: af_heart}'), 'infer.yaml')).not.toThrow()
    expect(() => parseConfig(model('{alloy: af_hart}'), 'infer.yaml')).toThrow(
      /'models\[0\]\.voice_aliases\.alloy': .*'af_hart'.*af_heart/,
    )
  })
})

describe('a mistyped model', () => {
  test.each([
    ['/std/v1/chat/completions', { ...chat, model: 'acme/chat8b' }],
    ['/std/v1/chat/completions', { ...chat, model: 'chat-8b' }],
    ['/std/v1/chat/completions', { ...chat, model: 'ACME/Chat-8B' }],
    ['/std/v1/embeddings', { model: 'chat-8', input: 'a' }],
    ['/std/v1/models/acme/chat-8', undefined],
    ['/api/models/acme/chat-8', undefined],
  ])('%s %j is answered with the nearest name', async (path, body) => {
    const { status, body: answer } = await ask(path, body)
    expect([status, answer]).toMatchObject([
      404,
      {
        error: { code: 'model_not_found', message: expect.stringContaining("Did you mean 'acme/chat-8b'?") as string },
      },
    ])
  })

  test('a name without a similar one is answered with the models of the task', async () => {
    const { body } = await ask('/std/v1/chat/completions', { ...chat, model: 'gpt-4o' })
    expect((body.error as { message: string }).message).toMatch(/does not exist here\. For .* there is 'acme\/chat-8b'/)
    expect((body.error as { message: string }).message).not.toContain('Did you mean')
  })
})
