import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../_app.ts'
import { type OwnEngine, startEngine } from '../../_engine.ts'

/** Streams whose requests wait for a slot: what their clients get meanwhile, and when they fail. */
let engine: OwnEngine
let app: TestApp
beforeAll(async () => {
  engine = await startEngine()
  const remote = { engine: 'remote', url: `${engine.url}/v1`, concurrency: 1 }
  app = await startApp({
    models: [
      { id: 'narrow', ...remote },
      { id: 'first', ...remote, fallbacks: [{ model: 'narrow' }] },
    ],
    limits: { stream_ping: '100ms' },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const isWaiting = /^: waiting/m
const long = 'mode:stream,tokens=6000,rate=50'

async function ask(model: string, content = 'Hello', prefer = '') {
  const leaving = new AbortController()
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model, stream: true, messages: [{ role: 'user', content }] },
    headers: { prefer },
    signal: leaving.signal,
  })
  return { answer, leave: () => leaving.abort(), job: answer.headers.get('x-job-id')! }
}
const cancel = (job: string) => app.fetch(`/api/jobs/${job}/cancel`, { method: 'POST' })
const resume = (job: string) => app.fetch(`/api/jobs/${job}/stream`)

/** Reads a stream piece by piece. */
function openReader({ body }: Response) {
  const pieces = body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]()
  return {
    /** Reads until what has come since the last call matches; false if the stream ends first. */
    async until(pattern: RegExp): Promise<boolean> {
      let text = ''
      for (;;) {
        const piece = await pieces.next()
        if (piece.done) return false
        text += piece.value
        if (pattern.test(text)) return true
      }
    },
    async rest(): Promise<string> {
      let text = ''
      for await (const piece of { [Symbol.asyncIterator]: () => pieces }) text += piece
      return text
    },
  }
}

test('whoever resumes a kept stream that waits gets its comments, and the error that ends it', async () => {
  const held = await ask('narrow', long)
  const { leave, job, answer } = await ask('narrow', 'Hello', 'resume=30')
  expect(answer.headers.get('preference-applied')).toBe('resume=30')
  leave()
  const reader = openReader(await resume(job))
  expect(await reader.until(isWaiting)).toBe(true)
  expect((await cancel(job)).status).toBe(200)
  const end = await reader.rest()
  expect(end).toMatch(/^id: 1\ndata: .*"code":"cancelled"/m)
  // And so does whoever comes after it.
  expect(await (await resume(job)).text()).toContain('"code":"cancelled"')
  held.leave()
})

test('a kept stream that waits and gets its slot is whole for whoever resumes it', async () => {
  const held = await ask('narrow', long)
  const { leave, job } = await ask('narrow', 'Hello', 'resume=30')
  leave()
  const reader = openReader(await resume(job))
  expect(await reader.until(isWaiting)).toBe(true)
  held.leave()
  const text = await reader.rest()
  expect(text).toMatch(/^id: 1\n/m)
  expect(text).toContain('data: [DONE]')
})

test('a stream that waits again, for the fallback of its model, gets comments again', async () => {
  const held = await ask('narrow', long)
  const before = await ask('first', long)
  const { answer, job } = await ask('first', 'mode:status,code=500')
  const reader = openReader(answer)
  expect(await reader.until(isWaiting)).toBe(true)
  before.leave()
  await expect.poll(async () => (await app.fetch(`/api/jobs/${job}`)).json()).toMatchObject({ model_id: 'narrow' })
  // Twice, as the first may have been sent before.
  expect(await reader.until(/^: waiting[^]*^: waiting/m)).toBe(true)
  await cancel(job)
  expect(await reader.rest()).toContain('"code":"cancelled"')
  held.leave()
})
