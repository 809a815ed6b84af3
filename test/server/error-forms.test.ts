import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'
import { badly, openScriptedEngine, type ScriptedEngine } from './_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
beforeAll(async () => {
  engine = await openScriptedEngine((_, response) => badly(response, 400, 'not like this'))
  app = await startApp({ models: [engine.model('far')], limits: { chat_body: '64KiB', json_body: '64KiB' } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

/** What the errors of each API have that no other has. */
const forms: Record<string, object> = {
  anthropic: {
    type: 'error',
    error: { type: expect.stringMatching(/_error$|^request_too_large$/) },
    request_id: expect.any(String),
  },
  cohere: { message: expect.any(String), id: expect.stringMatching(/^req_/), error: { code: expect.any(String) } },
  fal: { detail: expect.anything(), error: { code: expect.any(String) } },
  ollama: { error: expect.any(String), code: expect.any(String), request_id: expect.any(String) },
  replicate: { title: expect.any(String), detail: expect.any(String), status: expect.any(Number) },
  slug: { detail: expect.anything(), message: expect.any(String), error: { code: expect.any(String) } },
  std: { error: { code: expect.any(String), param: null, request_id: expect.any(String) } },
}

const messages = [{ role: 'user', content: 'hi' }]
describe('a failed request that is sent again with its Idempotency-Key is answered in the form of its API', () => {
  test.each([
    ['anthropic', '/anthropic/v1/messages', { messages, max_tokens: 9 }],
    ['cohere', '/v2/chat', { messages }],
    ['cohere', '/v2/embed', { texts: ['hi'], input_type: 'search_query', embedding_types: ['float'] }],
    ['ollama', '/ollama/api/chat', { messages, stream: false }],
    ['std', '/std/v1/chat/completions', { messages }],
  ])('%s: %s', async (form, path, body) => {
    const send = () => app.fetch(path, { body: { model: 'far', ...body }, headers: { 'idempotency-key': path } })
    const [first, second] = [await send(), await send()]
    expect([second.status, second.headers.get('idempotent-replayed')]).toEqual([400, 'true'])
    const answer = await first.json()
    expect(answer).toMatchObject(forms[form]!)
    expect(await second.json()).toEqual(answer)
  })
})

/** Sends a request with headers that `fetch` does not set. */
async function raw(method: string, path: string, headers: Record<string, string>) {
  const { hostname, port } = new URL(app.url)
  const [answer] = (await once(request({ hostname, port, method, path, headers }).end(), 'response')) as [
    IncomingMessage,
  ]
  return { status: answer.statusCode!, body: (await json(answer)) as object }
}

describe('an error before any route is in the form of the API', () => {
  const authorization = () => ({ authorization: `Bearer ${app.secret}` })
  test.each([
    ['anthropic', '/anthropic/v1/messages/batches'],
    ['anthropic', '/anthropic/v2'],
    ['cohere', '/v2/classify'],
    ['cohere', '/std/v2/classify?x=1'],
    ['fal', '/fal/queues/x'],
    ['ollama', '/ollama/api/nothing'],
    ['replicate', '/replicate/v1/trainings'],
    ['slug', '/slug'],
    ['std', '/std/v1/assistants'],
    ['std', '/anthropical'],
  ])('unknown path, %s: %s', async (form, path) => {
    const { status, body } = await raw('GET', path, authorization())
    expect(status).toBe(404)
    expect(body).toMatchObject(forms[form]!)
  })

  test.each([
    ['anthropic', 'PUT', '/anthropic/v1/messages', {}, 405],
    ['ollama', 'PUT', '/ollama/api/chat', {}, 405],
    ['anthropic', 'GET', '/anthropic/v1/models', { host: 'evil.example.com' }, 421],
    ['ollama', 'GET', '/ollama/api/tags', { host: 'evil.example.com' }, 421],
    ['replicate', 'GET', '/replicate/v1/predictions', { host: 'evil.example.com' }, 421],
    ['std', 'GET', '/std/v1/models', { host: 'evil.example.com' }, 421],
    ['replicate', 'GET', '/replicate/v1/%ff', {}, 400],
  ])('%s: %s %s %j → %s', async (form, method, path, headers, status) => {
    const answer = await raw(method, path, { ...authorization(), ...headers })
    expect(answer).toMatchObject({ status, body: forms[form]! })
  })

  test('a body that is too large', async () => {
    const large = { model: 'far', messages, version: 'far', input: { prompt: 'x'.repeat(70_000) } }
    for (const [form, path] of [
      ['anthropic', '/anthropic/v1/messages'],
      ['ollama', '/ollama/api/chat'],
      ['replicate', '/replicate/v1/predictions'],
    ] as const) {
      const answer = await app.fetch(path, { body: large })
      expect(answer.status).toBe(413)
      expect(await answer.json()).toMatchObject(forms[form]!)
    }
  })
})
