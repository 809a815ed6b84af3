import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

/** What passes the server unchanged, what does not, and what the server adds. */
let app: TestApp
let engine: ScriptedEngine
beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    well(seen, response)
  })
  app = await startApp({
    models: [engine.model('far'), engine.model('open', { extra_params: ['chat_template', 'mirostat'] })],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const chat = (more: object = {}) => ({ model: 'far', messages: [{ role: 'user', content: 'Hello' }], ...more })
async function ask(path: string, body: object, headers: Record<string, string> = {}, token?: string) {
  const response = await app.fetch(path, { body, headers, ...(token ? { token } : {}) })
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  }
}
const forwarded = async (body: object, path = '/std/v1/chat/completions') => {
  const { status } = await ask(path, body)
  expect(status).toBe(200)
  return engine.seen.at(-1)!
}

describe('the request to the engine', () => {
  test.each<[string, object, object]>([
    ['what is documented', { temperature: 0.5, seed: 7, stop: ['x'] }, { temperature: 0.5, seed: 7, stop: ['x'] }],
    ['what engines add to it', { top_k: 5, min_p: 0.1, cache_salt: 's' }, { top_k: 5, min_p: 0.1, cache_salt: 's' }],
    ['nothing that is null', { temperature: null, tools: null, stop: null }, {}],
    ['nothing unknown', { api_base: 'http://evil', prompt_embeds: 'x', chat_template: 'x', foo: { bar: 1 } }, {}],
    ['nothing about the caller', { user: 'me', metadata: { a: 'b' }, store: true, service_tier: 'auto' }, {}],
    ['the newer of two limits', { max_tokens: 5, max_completion_tokens: 6 }, { max_completion_tokens: 6 }],
    ['the older one where it is alone', { max_tokens: 5 }, { max_tokens: 5 }],
    [
      'a schema without its dialect',
      {
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { $schema: 'x', type: 'object' } } },
      },
      { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } } },
    ],
  ])('is %s', async (_, sent, expected) => {
    const { body, path } = await forwarded(chat(sent))
    expect(path).toBe('/v1/chat/completions')
    const { stream: _stream, ...rest } = body
    expect(rest).toEqual({ ...chat(), ...expected })
  })

  test('has the further fields that its configuration allows', async () => {
    const { body } = await forwarded({ ...chat({ chat_template: 'x', mirostat: 2, foo: 1 }), model: 'open' })
    expect(body).toMatchObject({ chat_template: 'x', mirostat: 2 })
    expect(body).not.toHaveProperty('foo')
  })

  test('has none of the caller’s headers', async () => {
    await ask(
      '/std/v1/embeddings',
      { model: 'far', input: 'a' },
      { cookie: 'a=b', 'x-client-request-id': 'mine', 'x-secret': 's' },
    )
    const { headers } = engine.seen.at(-1)!
    expect(JSON.stringify(headers)).not.toContain(app.secret)
    for (const name of ['authorization', 'cookie', 'x-client-request-id', 'x-secret'])
      expect(headers[name]).toBeUndefined()
  })
})

describe('the answer', () => {
  test('has the time, the model and the duration', async () => {
    const from = Math.floor(Date.now() / 1000)
    const { body, headers } = await ask('/std/v1/chat/completions', chat())
    expect(body.created).toBeGreaterThanOrEqual(from)
    expect(body.created).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000))
    expect(body).toMatchObject({ object: 'chat.completion', model: 'far' })
    expect(headers.get('x-model-status')).toBe('warm')
    expect(headers.get('x-job-id')).toMatch(/^job_/)
    // It got a free slot at once.
    expect(headers.get('x-queue-ms')).toBe('0')
  })

  test.each<[string, string, object | undefined]>([
    ['an answer', '/std/v1/embeddings', { model: 'far', input: 'a' }],
    ['a stream', '/std/v1/chat/completions', chat({ stream: true })],
    ['an error', '/std/v1/embeddings', { model: 'far' }],
    ['a list', '/std/v1/models', undefined],
    ['an alias', '/v1/embeddings', { model: 'far', input: 'a' }],
  ])('openai-processing-ms is on %s', async (_, path, body) => {
    const { headers } = await app.fetch(path, { body })
    expect(headers.get('openai-processing-ms')).toMatch(/^\d+$/)
  })

  test('floats and base64 are the same 32-bit numbers', async () => {
    const [floats, packed] = await Promise.all(
      ['float', 'base64'].map(async encoding_format => {
        const { body } = await ask('/std/v1/embeddings', { model: 'far', input: ['one', 'two'], encoding_format })
        return (body.data as { embedding: number[] | string }[]).map(({ embedding }) => embedding)
      }),
    )
    for (const [at, vector] of (floats as number[][]).entries()) {
      const bytes = Buffer.from((packed as string[])[at]!, 'base64')
      expect(vector.map((_, place) => bytes.readFloatLE(place * 4))).toEqual(vector.map(Math.fround))
    }
  })
})

describe('the token', () => {
  test.each([
    ['authorization', (secret: string) => `Bearer ${secret}`],
    ['authorization', (secret: string) => `bearer ${secret}`],
    ['authorization', (secret: string) => `Key ${secret}`],
    ['x-api-key', (secret: string) => secret],
    ['api-key', (secret: string) => secret],
  ])('may be in %s', async (name, value) => {
    const response = await app.fetch('/std/v1/models', { token: null, headers: { [name]: value(app.secret) } })
    expect(response.status).toBe(200)
  })

  test.each(['?api_key=x', '?access_token=x', '?key=x'])('but not in the address: %s', async query => {
    const response = await app.fetch(`/std/v1/models${query.replace('x', app.secret)}`, { token: null })
    expect(response.status).toBe(401)
  })
})

describe('what clients send unintentionally', () => {
  test.each([
    ['GET', '/std/v1/models', 200],
    ['GET', '/api/me', 200],
    ['DELETE', '/api/organizations/:organization/tokens/tok_x', 404],
    ['POST', '/api/jobs/job_x/cancel', 404],
    ['POST', '/api/organizations/:organization/tokens/tok_x/rotate', 404],
  ])('%s %s with a JSON content type and no body', async (method, path, status) => {
    const response = await app.fetch(path.replace(':organization', app.organizationId), {
      method,
      headers: { 'content-type': 'application/json' },
    })
    expect(response.status).toBe(status)
  })

  test('any Accept is accepted', async () => {
    for (const accept of ['application/octet-stream', 'text/plain', 'application/binary'])
      expect((await ask('/std/v1/embeddings', { model: 'far', input: 'a' }, { accept })).status).toBe(200)
  })

  test('a body without a length', async () => {
    const response = await fetch(`${app.url}/std/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${app.secret}`, 'content-type': 'application/json; charset=utf-8' },
      body: new Blob([JSON.stringify({ model: 'far', input: 'a' })]).stream(),
      duplex: 'half',
    })
    expect(response.status).toBe(200)
  })
})
