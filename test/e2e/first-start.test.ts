import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { apiText } from '../golden/api-text.ts'
import { faults } from '../golden/openai.ts'
import { type Ended, type Home, median, openHome, type Server, say, until } from './_home.ts'

const messages = [{ role: 'user' as const, content: 'Hello' }]
const offered = [
  'infer/tiny-chat',
  'infer/tiny-embed',
  'infer/tiny-rerank',
  'infer/demo',
  'infer/tiny-speech',
  'infer/tiny-transcription',
]
const mode = (path: string) => statSync(path).mode & 0o777

/** A machine without any infer data, and the first server on it. */
let home: Home
let server: Server
beforeAll(async () => {
  home = openHome()
  server = home.serve()
  await server.ready
})
afterAll(() => home?.[Symbol.asyncDispose]())

test('the first start prints its address and keeps the secret readable by its owner only', async () => {
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  const secret = home.secret()
  expect(secret).toMatch(/^sk-infer-[A-Za-z0-9]{12}-[A-Za-z0-9]{49}$/)
  expect(server.out()).not.toContain(secret)
  expect(server.err()).not.toContain(secret)
  expect([mode(home.dataDir), mode(join(home.dataDir, 'root-token'))]).toEqual([0o700, 0o600])
  for (const path of ['/livez', '/readyz']) {
    const answer = await fetch(server.url + path)
    expect([path, answer.status]).toEqual([path, 200])
  }
})

test('the packed executable has the same API description as the source', async () => {
  const served = (await (await fetch(`${server.url}/openapi.json`)).json()) as object
  const golden = readFileSync(join(import.meta.dirname, '..', 'golden', 'api.txt'), 'utf8')
  // The golden file has no recorded examples of answers.
  const withoutExamples = (text: string) => text.replaceAll(/ examples?#[0-9a-f]+/g, '')
  expect(withoutExamples(apiText(served))).toBe(withoutExamples(golden))
})

describe('the official OpenAI client, with the base URL changed', () => {
  let client: OpenAI
  beforeAll(() => (client = new OpenAI({ baseURL: `${server.url}/std/v1`, apiKey: home.secret(), maxRetries: 0 })))

  test('chats return the same text whole and streamed', async () => {
    const whole = await client.chat.completions.create({ model: 'infer/tiny-chat', messages })
    expect(faults('CreateChatCompletionResponse', whole)).toEqual([])
    const said = whole.choices[0]!.message.content
    expect(said).toContain('toy model')

    let streamed = ''
    for await (const chunk of await client.chat.completions.create({
      model: 'infer/tiny-chat',
      messages,
      stream: true,
    })) {
      expect(faults('CreateChatCompletionStreamResponse', chunk)).toEqual([])
      streamed += chunk.choices[0]?.delta.content ?? ''
    }
    expect(streamed).toBe(said)
  })

  test('embeddings of texts that share words are nearer to each other', async () => {
    const input = ['a red apple', 'a red pear', 'quantum field theory']
    const answer = await client.embeddings.create({ model: 'infer/tiny-embed', input, encoding_format: 'float' })
    expect(faults('CreateEmbeddingResponse', answer)).toEqual([])
    const [apple, pear, physics] = answer.data.map(({ embedding }) => embedding)
    const product = (one: number[], other: number[]) => one.reduce((sum, value, at) => sum + value * other[at]!, 0)
    expect(product(apple!, pear!)).toBeGreaterThan(product(apple!, physics!))
    // The client requests base64 by default and decodes it.
    const decoded = await client.embeddings.create({ model: 'infer/tiny-embed', input: input[0]! })
    for (const [at, value] of decoded.data[0]!.embedding.entries()) expect(value).toBeCloseTo(apple![at]!, 3)
  })

  test('lists the models and retrieves one', async () => {
    const list = await client.models.list()
    expect(faults('ListModelsResponse', { object: 'list', data: list.data })).toEqual([])
    expect(list.data.map(({ id }) => id)).toEqual(offered)
    expect(faults('Model', await client.models.retrieve('infer/tiny-chat'))).toEqual([])
  })

  test('errors have the shape that the client knows', async () => {
    const wrong = [
      { path: '/std/v1/chat/completions', body: { model: 'gpt-9', messages }, status: 404 },
      { path: '/std/v1/chat/completions', body: { model: 'infer/tiny-chat' }, status: 400 },
      { path: '/std/v1/embeddings', body: { model: 'infer/tiny-chat', input: 'x' }, status: 400 },
    ]
    for (const { path, body, status } of wrong) {
      const answer = await server.fetch(path, { body })
      expect(answer.status).toBe(status)
      expect(faults('ErrorResponse', await answer.json())).toEqual([])
    }
    await expect(
      new OpenAI({ baseURL: `${server.url}/std/v1`, apiKey: 'sk-wrong', maxRetries: 0 }).models.list(),
    ).rejects.toMatchObject({ status: 401, code: 'invalid_api_key' })
  })
})

test('rerank puts the document that shares words first, in both forms of the API', async () => {
  const documents = ['the cat sat on the mat', 'stock markets fell', 'a dog barked']
  const body = { model: 'infer/tiny-rerank', query: 'where did the cat sit', documents, top_n: 2 }
  const answer = await server.fetch('/std/v1/rerank', { body })
  expect(answer.status).toBe(200)
  const { object, model, data, results, usage } = (await answer.json()) as {
    object: string
    model: string
    data: { index: number; relevance_score: number }[]
    results: { index: number; relevance_score: number }[]
    usage: { prompt_tokens: number; total_tokens: number }
  }
  expect([object, model, data.length]).toEqual(['list', 'infer/tiny-rerank', 2])
  expect(data[0]!.index).toBe(0)
  expect(data[0]!.relevance_score).toBeGreaterThan(data[1]!.relevance_score)
  expect(data.every(({ relevance_score }) => relevance_score >= 0 && relevance_score <= 1)).toBe(true)
  expect(results.map(({ index }) => index)).toEqual(data.map(({ index }) => index))
  expect(usage.total_tokens).toBeGreaterThan(0)
})

test('score answers in the order of the texts', async () => {
  const body = { model: 'infer/tiny-rerank', text_1: 'the cat', text_2: ['stock markets fell', 'the cat sat'] }
  const answer = await server.fetch('/std/v1/score', { body })
  expect(answer.status).toBe(200)
  const { object, data } = (await answer.json()) as { object: string; data: { index: number; score: number }[] }
  expect([object, data.map(({ index }) => index)]).toEqual(['list', [0, 1]])
  expect(data[1]!.score).toBeGreaterThan(data[0]!.score)
})

test('generates an image with the built-in model, and names what a video needs', async () => {
  const body = { prompt: 'a cat & 猫', sync_mode: true, image_size: { width: 256, height: 128 }, output_format: 'webp' }
  const answer = await server.fetch('/slug/demo/text-to-image', { body })
  const made = (await answer.json()) as { status: string; images: { url: string }[] }
  expect([answer.status, made.status]).toEqual([200, 'completed'])
  const bytes = Buffer.from(await (await fetch(made.images[0]!.url)).arrayBuffer())
  expect(await sharp(bytes).metadata()).toMatchObject({ format: 'webp', width: 256, height: 128 })
  const video = await server.fetch('/slug/demo/text-to-video', { body: { prompt: 'a cat', sync_mode: true } })
  const { error } = (await video.json()) as { error: { code: string; message: string } }
  expect([video.status, error.code]).toEqual([503, 'no_capacity'])
  expect(error.message).toContain('apt install ffmpeg')
})

test.each(['wav', 'mp3'] as const)('transcribes its own speech, as %s, without ffmpeg', async response_format => {
  const client = new OpenAI({ baseURL: `${server.url}/std/v1`, apiKey: home.secret(), maxRetries: 0 })
  const input = 'Grüße von der Katze.'
  const said = await client.audio.speech.create({ model: 'infer/tiny-speech', voice: 'alto', input, response_format })
  const file = await toFile(said, `said.${response_format}`)
  const told = await client.audio.transcriptions.create({ model: 'infer/tiny-transcription', file })
  expect(told.text).toBe(input)
})

describe('the command line', () => {
  test('prints the answer to a pipe', async () => {
    const { code, out, err } = await home.run(['chat'], { input: 'Hello\n' })
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/toy model.*\n$/)
  })

  test('prints one JSON document with --json', async () => {
    const json = async (...args: string[]) => {
      const { code, out, err } = await home.run([...args, '--json'])
      expect([args, code, err]).toEqual([args, 0, ''])
      return JSON.parse(out) as unknown
    }
    expect(await json('model', 'list')).toMatchObject({
      models: offered.map(model_id => ({
        model_id,
        status: expect.any(String) as string,
      })),
    })
    expect(await json('routes')).toEqual(
      expect.arrayContaining([expect.objectContaining({ method: 'POST', path: '/api/jobs', scope: 'user:write' })]),
    )
    const { healthy, findings } = (await json('doctor')) as { healthy: boolean; findings: { name: string }[] }
    expect(healthy).toBe(true)
    expect(findings.map(({ name }) => name)).toEqual(expect.arrayContaining(['database', 'engine wrapper', 'address']))
  })

  test('creates tokens while the server writes, and a revoked token is refused within a second', async () => {
    const submissions = new AbortController()
    const statuses = new Set<number>()
    async function submit(): Promise<void> {
      while (!submissions.signal.aborted) {
        const body = { task: 'std/embeddings', model_id: 'infer/tiny-embed', inputs: { input: 'hello' } }
        statuses.add((await server.fetch('/api/jobs', { body })).status)
      }
    }
    const load = Promise.all([submit(), submit(), submit(), submit()])
    const made = await Promise.all(
      ['one', 'two', 'three'].map(name => home.run(['token', 'create', '--name', name, '--json'])),
    )
    const tokens = made.map(({ out }) => JSON.parse(out) as { secret: string; token: { id: string } })
    const status = async (token: string) => (await server.fetch('/std/v1/models', { token })).status
    for (const { secret } of tokens) expect(await status(secret)).toBe(200)

    const [{ secret, token }] = tokens as [(typeof tokens)[0]]
    expect(await home.run(['token', 'revoke', token.id])).toMatchObject({ code: 0 })
    const revoked = performance.now()
    await until('the revoked token refused', async () => (await status(secret)) === 401)
    expect(performance.now() - revoked).toBeLessThan(1000)
    submissions.abort()
    await load
    expect([...statuses]).toEqual([202])
  })
})

test('a second server on the same data directory is refused at once, in one sentence', async () => {
  // They use the same address too: the message about the directory comes first, because it explains both conflicts.
  const attempts: Ended[] = []
  const bare: number[] = []
  for (let round = 0; round < 5; round++) {
    bare.push((await home.run(['--version'])).ms)
    attempts.push(await home.run(['serve', '--listen', server.url.replace('http://', '')]))
  }
  for (const { code, out, err } of attempts) {
    expect([code, out]).toEqual([64, ''])
    expect(err.trimEnd().split('\n')).toEqual([expect.stringMatching(/Another infer is running on the data directory/)])
    expect(err).toContain('--data-dir')
  }
  // Each beside the executable alone, because other load makes both slower.
  const took = median(attempts.map(({ ms }) => ms))
  const times = took / median(bare)
  say(`second server: refused in ${Math.round(took)} ms, ${times.toFixed(1)} × infer --version`)
  // On an idle machine 3; on one that is busy up to 9.
  expect(times).toBeLessThan(15)
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
})

test('later starts are quick, and do not print the secret', async () => {
  const secret = home.secret()
  server.kill('SIGTERM')
  expect(await server.ended).toEqual({ code: 0, signal: null })
  expect(existsSync(join(home.dataDir, 'server.json'))).toBe(false)

  // Each start beside one of the executable alone, because other load makes both slower.
  const starts: number[] = []
  const bare: number[] = []
  for (let round = 0; round < 7; round++) {
    bare.push((await home.run(['--version'])).ms)
    const began = performance.now()
    const again = home.serve()
    const readiness = await fetch(`${await again.ready}/readyz`)
    starts.push(performance.now() - began)
    expect(readiness.status).toBe(200)
    expect(again.out()).not.toContain(secret)
    again.kill('SIGTERM')
    expect(await again.ended).toEqual({ code: 0, signal: null })
  }
  expect(home.secret()).toBe(secret)
  expect(readFileSync(join(home.dataDir, 'root-token'), 'utf8')).toBe(`${secret}\n`)
  const times = median(starts) / median(bare)
  say(`start to /readyz: median ${Math.round(median(starts))} ms, ${times.toFixed(1)} × infer --version`)
  // On an idle machine 3.8.
  expect(times).toBeLessThan(8)
})
