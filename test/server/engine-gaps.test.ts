import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** What an engine or a machine lacks is told as such, with what to do: trying again does not help. */

const engine = createServer((request, response) => {
  request.resume()
  const [path, status, body] = answers.find(([path]) => request.url === path) ?? ['', 404, 'Not Found']
  response.writeHead(status, { 'content-type': path ? 'application/json' : 'text/plain' }).end(body)
})
const error = (message: string, type: string) => JSON.stringify({ error: { message, type } })
const answers: [path: string, status: number, body: string][] = [
  ['/v1/chat/completions', 404, error('The model `other` does not exist.', 'NotFoundError')],
]

let app: TestApp
beforeAll(async () => {
  await new Promise<void>(resolve => engine.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
  app = await startApp({
    models: [
      { id: 'far', engine: 'remote', url, tasks: ['std/chat-completion', 'std/rerank', 'std/embeddings'] },
      { id: 'reader', engine: 'llama-server', source: '/none.gguf', memory: '1MiB', tasks: ['std/embeddings'] },
      { id: 'demo/film', engine: 'demo', tasks: ['slug/text-to-video'], args: ['--ffmpeg', '/no/such/ffmpeg'] },
      {
        id: 'demo/mixed',
        engine: 'demo',
        tasks: ['slug/text-to-image', 'slug/text-to-video'],
        args: ['--ffmpeg', '/no/such/ffmpeg'],
      },
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  engine.close()
})

async function ask(path: string, body: object) {
  const response = await app.fetch(path, { body })
  const { error: told } = (await response.json()) as { error: { code: string; message: string } }
  return { status: response.status, headers: response.headers, code: told.code, message: told.message }
}

test('a route that the engine lacks is named, with the presets that have it', async () => {
  const refused = await ask('/std/v1/rerank', { model: 'far', query: 'q', documents: ['a'] })
  expect([refused.status, refused.code]).toEqual([400, 'unsupported_task'])
  expect(refused.message).toBe(
    "The engine of 'far' (remote) has no route for 'std/rerank': it answered 404 at /v1/rerank. These have one: 'gguf', 'llama-server', 'vllm'; set 'engine' in infer.yaml.",
  )
})

test('a model that the engine does not know is not a missing route', async () => {
  const messages = [{ role: 'user', content: 'Hi' }]
  const refused = await ask('/std/v1/chat/completions', { model: 'far', messages })
  expect([refused.status, refused.code]).toEqual([400, 'unsupported_task'])
  expect(refused.message).toMatch(/does not know the model 'far'\. Set 'upstream_id'/)
})

interface Status {
  model_id: string
  status: string
  reason: string | null
  capabilities: string[]
  features: Record<string, string[]>
}
async function statusOf(id: string): Promise<Status> {
  const { models } = (await (await app.fetch('/api/model-status')).json()) as { models: Status[] }
  return models.find(({ model_id }) => model_id === id)!
}

test('videos without ffmpeg: the model is unavailable with the reason, and requests are 503 with what to install', async () => {
  const reason = /needs the program '\/no\/such\/ffmpeg', which is not installed\. Install it \(.*apt install ffmpeg/
  expect(await statusOf('demo/film')).toMatchObject({ status: 'unavailable', reason: expect.stringMatching(reason) })
  for (const [path, body] of [
    ['/slug/demo/film/text-to-video', { prompt: 'x' }],
    ['/slug/demo/film/text-to-video', { prompt: 'x', sync_mode: true }],
    ['/slug/demo/mixed/text-to-video', { prompt: 'x' }],
    ['/api/jobs', { task: 'slug/text-to-video', model_id: 'demo/film', inputs: { prompt: 'x' } }],
  ] as const) {
    const refused = await ask(path, body)
    expect([path, refused.status, refused.code]).toEqual([path, 503, 'no_capacity'])
    expect(refused.message).toMatch(reason)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('retry-after')).toBeNull()
  }
  expect((await statusOf('demo/mixed')).status).toBe('cold')
})

test('features are told by task: an embedding model has no tools', async () => {
  expect(await statusOf('reader')).toMatchObject({ capabilities: [], features: { 'std/embeddings': [] } })
  const far = await statusOf('far')
  expect(far.features['std/chat-completion']).toContain('tools')
  expect(far.features['std/chat-completion']).not.toContain('echo')
  expect(far.features['std/embeddings']).toEqual([])
  expect(far.capabilities).toEqual(far.features['std/chat-completion'])
})
