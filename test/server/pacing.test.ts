import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** An engine or upstream that answers with `Retry-After` is not called before that time, by jobs and calls alike. */

const answer = { choices: [{ index: 0, message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }] }
/** The requests to each path, as milliseconds, and how many of them the upstream still refuses. */
const asked = new Map<string, number[]>()
const refusals = new Map<string, { left: number; status: number; seconds: number }>()
const upstream = createServer((request, response) => {
  request.resume()
  const path = request.url!.split('/')[1]!
  asked.set(path, [...(asked.get(path) ?? []), performance.now()])
  const refusal = refusals.get(path)
  const headers = { 'content-type': 'application/json' }
  if (!refusal || refusal.left === 0) return void response.writeHead(200, headers).end(JSON.stringify(answer))
  refusal.left--
  response.writeHead(refusal.status, { ...headers, 'retry-after': String(refusal.seconds) })
  response.end(JSON.stringify({ error: { message: 'You exceeded your current quota.' } }))
})

let app: TestApp
beforeAll(async () => {
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const origin = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`
  const remote = (id: string, more: object = {}) => ({ id, engine: 'remote', url: `${origin}/${id}/v1`, ...more })
  app = await startApp({
    models: [remote('busy'), remote('long', { dispatch_wait_ms: '30s' }), remote('soon', { concurrency: 8 })],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  upstream.close()
})

async function chat(model: string) {
  const response = await app.fetch('/std/v1/chat/completions', {
    body: { model, messages: [{ role: 'user', content: 'Hello' }] },
  })
  const { error } = (await response.json()) as { error?: { code: string; message: string; retry_after: number } }
  return { status: response.status, headers: response.headers, error }
}

interface Job {
  id: string
  status: string
  attempts: number
  waiting_for: { reason: string; detail: string } | null
}
async function submit(model: string): Promise<Job> {
  const inputs = { messages: [{ role: 'user', content: 'Hello' }] }
  const response = await app.fetch('/api/jobs', { body: { model, task: 'std/chat-completion', inputs } })
  return (await response.json()) as Job
}
const jobOf = async (id: string): Promise<Job> => (await (await app.fetch(`/api/jobs/${id}`)).json()) as Job

test('a pause of an upstream is passed on to callers as it is, and nobody else is sent there', async () => {
  refusals.set('long', { left: 100, status: 429, seconds: 120 })
  const first = await chat('long')
  expect([first.status, first.error?.code, first.error?.retry_after]).toEqual([503, 'no_capacity', 120])
  expect(first.error?.message).toMatch(/takes no requests for another 120 s/)
  expect(first.headers.get('retry-after')).toBe('120')
  const [second, job] = [await chat('long'), await submit('long')]
  expect([second.status, second.headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^1(20|19|18)$/)])
  await expect.poll(async () => (await jobOf(job.id)).waiting_for?.detail).toMatch(/as it has asked/)
  expect(asked.get('long')).toHaveLength(1)
})

test.each([
  [429, 'busy'],
  [503, 'soon'],
])('after a %i, jobs and calls wait until the pause has ended, and then are answered', async (status, model) => {
  refusals.set(model, { left: 1, status, seconds: 1 })
  const refused = await submit(model)
  await expect.poll(() => asked.get(model)?.length).toBe(1)
  await expect.poll(async () => (await jobOf(refused.id)).status).toBe('pending')
  const [called, ...jobs] = await Promise.all([chat(model), submit(model), submit(model)])
  expect(called.status).toBe(200)
  for (const { id } of [refused, ...jobs]) await expect.poll(() => jobOf(id)).toMatchObject({ status: 'completed' })
  expect((await jobOf(refused.id)).attempts).toBe(1)
  const [at, next, ...later] = asked.get(model)!
  expect(next! - at!).toBeGreaterThan(990)
  expect(later).toHaveLength(3)
})
