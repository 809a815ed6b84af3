import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** Missing features of an engine or a machine are reported as such, with what to do: a retry does not help. */

const engine = createServer((request, response) => {
  request.resume()
  const [path, status, body] = answers.find(([path]) => request.url === path) ?? ['', 404, 'Not Found']
  response.writeHead(status, { 'content-type': path ? 'application/json' : 'text/plain' }).end(body)
})
const error = (message: string, type: string) => JSON.stringify({ error: { message, type } })
const answers: [path: string, status: number, body: string][] = [
  ['/v1/chat/completions', 404, error('The model `other` does not exist.', 'NotFoundError')],
]

/** An ffmpeg of this version that can only report its version. */
function fakeFfmpeg(version: string): void {
  writeFileSync(`${ffmpeg}.new`, `#!/bin/sh\necho 'ffmpeg version ${version} Copyright (c) 2000-2019'\n`, {
    mode: 0o755,
  })
  renameSync(`${ffmpeg}.new`, ffmpeg)
}
const folder = mkdtempSync(join(tmpdir(), 'infer-ffmpeg-'))
const ffmpeg = join(folder, 'ffmpeg')

let app: TestApp
beforeAll(async () => {
  await new Promise<void>(resolve => engine.listen(0, '127.0.0.1', resolve))
  fakeFfmpeg('3.4.8-0ubuntu0.2')
  const url = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`
  app = await startApp({
    models: [
      { id: 'far', engine: 'remote', url, tasks: ['std/chat-completion', 'std/rerank', 'std/embeddings'] },
      { id: 'reader', engine: 'llama-server', source: '/none.gguf', memory: '1MiB', tasks: ['std/embeddings'] },
      { id: 'demo/film', engine: 'demo', tasks: ['slug/text-to-video'], args: ['--ffmpeg', '/no/such/ffmpeg'] },
      { id: 'demo/old', engine: 'demo', tasks: ['slug/text-to-video'], args: ['--ffmpeg', ffmpeg] },
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
  rmSync(folder, { recursive: true, force: true })
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
    "The engine of 'far' (remote) has no route for 'std/rerank': it answered 404 at /v1/rerank. These have one: 'gguf', 'llama-server', 'vllm', 'sglang', 'tei', 'infinity', 'python'; set 'engine' in infer.yaml.",
  )
})

test('a model unknown to the engine is not reported as a missing route', async () => {
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

test('videos with an ffmpeg that is too old: the model is unavailable with the reason until another is installed', async () => {
  const reason =
    /needs the program '.*\/ffmpeg', which has version 3\.4\.8-0ubuntu0\.2, which is too old: 4 or newer is needed\. Install it/
  expect(await statusOf('demo/old')).toMatchObject({ status: 'unavailable', reason: expect.stringMatching(reason) })
  const refused = await ask('/slug/demo/old/text-to-video', { prompt: 'x' })
  expect([refused.status, refused.code]).toEqual([503, 'no_capacity'])
  expect(refused.message).toMatch(reason)
  fakeFfmpeg('7.1')
  await expect.poll(async () => (await statusOf('demo/old')).status).toBe('cold')
  fakeFfmpeg('n2.8.1')
  await expect.poll(async () => (await statusOf('demo/old')).status).toBe('unavailable')
})

test('features are reported by task: an embedding model has no tools', async () => {
  expect(await statusOf('reader')).toMatchObject({ capabilities: [], features: { 'std/embeddings': [] } })
  const far = await statusOf('far')
  expect(far.features['std/chat-completion']).toContain('tools')
  expect(far.features['std/chat-completion']).not.toContain('echo')
  expect(far.features['std/embeddings']).toEqual([])
  expect(far.capabilities).toEqual(far.features['std/chat-completion'])
})
