import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openAccounts } from '../../../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../../../core/accounts/keys.ts'
import { openLog } from '../../../../core/log.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
/** The promise that the engine waits for, by the text of the request. */
const held = new Map<string, ServerResponse>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input ?? seen.body.messages?.[0]?.content)
    if (!said.startsWith('hold')) return well(seen, response)
    held.set(said, response)
    if (seen.body.stream) response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  })
  app = await startApp({
    // The first ping sends the headers of a chat whose engine has not answered yet.
    limits: { stream_ping: '200ms' },
    models: [
      engine.model('far', { concurrency: 8 }),
      fakeModel('cold', ['--ready-after', '60000'], { slug: 'fake/cold', tasks: ['slug/text-to-image'] }),
      fakeModel('painter', [], { slug: 'fake/paint', tasks: ['slug/text-to-image'] }),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

// oxlint-disable-next-line no-explicit-any
type Json = any
const ask = async (path: string, options?: Parameters<TestApp['fetch']>[1]): Promise<Json> => {
  const response = await app.fetch(path, options)
  expect(response.status, path).toBeLessThan(300)
  return response.json()
}
const tokens = () => `/api/organizations/${app.organizationId}/tokens`
const makeToken = async (more: object = {}): Promise<{ id: string; secret: string }> => {
  const body = { name: 'held', scopes: ['user:read', 'user:write', 'admin:read'], ...more }
  const { token, secret } = (await ask(tokens(), { body })) as { token: { id: string }; secret: string }
  return { id: token.id, secret }
}

/** Changes a token as the command line does, beside the running server. */
async function beside(id: string, expiresAt: number): Promise<void> {
  const log = openLog('error')
  const store = await openAdminStore(app.dataDir, log)
  try {
    await openAccounts({ store, keys: openStoredKeys(app.dataDir), log }).update(app.organizationId, id, { expiresAt })
  } finally {
    await store.close()
  }
}

/** The paths of all streams and waits that stay open until a job, an execution or a generation request ends. */
async function paths(): Promise<{ streams: string[]; waits: string[] }> {
  const node = { model_id: 'far', task: 'std/embeddings', inputs: { input: 'hold' } }
  const job = await ask('/api/jobs', { body: node })
  const { execution } = await ask('/api/workflows/run', { body: { dag: { nodes: { one: node } } } })
  const request = await ask('/slug/fake/cold/text-to-image', { body: { prompt: 'a cat' } })
  return {
    streams: [
      '/api/events',
      `/api/jobs/${job.id}/events`,
      `/api/workflow-executions/${execution.id}/events`,
      `/slug/requests/${request.request_id}/status/stream`,
      `/fal/queue/fake/cold/requests/${request.request_id}/status/stream`,
      '/api/system/logs?follow=true&lines=0',
    ],
    waits: [`/api/jobs/${job.id}?wait=60`, `/api/workflow-executions/${execution.id}?wait=60`],
  }
}

test('a running generation continues to its end', async () => {
  const token = await makeToken()
  const events = await app.fetch('/api/events', { token: token.secret })
  const body = { model: 'far', stream: true, messages: [{ role: 'user', content: 'hold on' }] }
  const chat = await app.fetch('/std/v1/chat/completions', { token: token.secret, body })
  const drawn = await app.fetch('/fal/run/fake/paint/text-to-image/stream', {
    token: token.secret,
    body: { prompt: 'mode:slow,ms=1000,steps=3', image_size: { width: 64, height: 64 } },
  })
  await ask(`${tokens()}/${token.id}`, { method: 'DELETE' })
  expect(await events.text()).toContain('event: error')
  const piece = { choices: [{ index: 0, delta: { content: 'late' }, finish_reason: 'stop' }] }
  held.get('hold on')!.end(`data: ${JSON.stringify(piece)}\n\ndata: [DONE]\n\n`)
  const text = await chat.text()
  expect(text).toContain('late')
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  expect((await drawn.text()).trimEnd().split('\n\n').at(-1)).toContain('"images"')
})

describe.each<[string, (token: { id: string }) => Promise<unknown>, string, [number, string]]>([
  ['revoked', ({ id }) => ask(`${tokens()}/${id}`, { method: 'DELETE' }), 'invalid_api_key', [401, 'token_revoked']],
  [
    'narrowed',
    ({ id }) => ask(`${tokens()}/${id}`, { method: 'PATCH', body: { scopes: ['user:write'] } }),
    'insufficient_scope',
    [403, 'insufficient_scope'],
  ],
  ['expired', ({ id }) => beside(id, Date.now()), 'invalid_api_key', [401, 'token_expired']],
])('a token that is %s', (how, change, code, refused) => {
  test('ends its streams with an error event and its waits with a refusal; those of other tokens continue', async () => {
    const { streams, waits } = await paths()
    const token = await makeToken()
    const open = await Promise.all(streams.map(path => app.fetch(path, { token: token.secret })))
    const other = await app.fetch('/api/events')
    expect([...open, other].map(({ status }) => status)).toEqual([...open, other].map(() => 200))
    const waiting = waits.map(path => app.fetch(path, { token: token.secret }))
    await change(token)
    for (const [at, response] of open.entries()) {
      const last = (await response.text()).trimEnd().split('\n\n').at(-1)!
      const [, body] = /^event: error\ndata: (.*)$/m.exec(last) ?? []
      expect(JSON.parse(body ?? JSON.stringify({ path: streams[at], last })), streams[at]).toMatchObject({
        error: { code, request_id: response.headers.get('x-request-id') },
      })
    }
    for (const response of await Promise.all(waiting)) {
      const { error } = (await response.json()) as { error: { code: string; message: string } }
      expect([response.status, error.code]).toEqual(refused)
      expect(error.message).toContain("'held'")
    }
    // A new event still reaches the stream of another token.
    const { id } = await ask('/api/jobs', { body: { task: 'std/embeddings', model_id: 'far', inputs: { input: how } } })
    const reader = other.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (let text = ''; !text.includes(id as string); ) {
      const piece = await reader.read()
      expect(piece.done).toBe(false)
      text += piece.value ?? ''
    }
    await reader.cancel()
  })
})
