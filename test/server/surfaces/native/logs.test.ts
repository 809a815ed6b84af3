import { expect, test } from 'vitest'
import { openSseParser, type SseEvent } from '../../../../cli/client/http.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

interface Line {
  time: string
  source: string
  level: string | null
  model_id: string | null
  engine_id: string | null
  message: string
  fields: Record<string, unknown>
}

const wake = (app: TestApp, model: string) => app.fetch('/std/v1/embeddings', { body: { model, input: 'wake up' } })
const lines = async (app: TestApp, query = '') =>
  ((await (await app.fetch(`/api/system/logs${query}`)).json()) as { lines: Line[] }).lines

async function follow(app: TestApp, query = '', signal?: AbortSignal) {
  const response = await app.fetch(`/api/system/logs?follow=true${query}`, signal ? { signal } : {})
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  const parser = openSseParser()
  const events: SseEvent[] = []
  const ended = (async () => {
    for await (const bytes of response.body!) events.push(...parser.feed(bytes as Uint8Array))
  })().catch(() => undefined)
  const said = () => events.filter(({ event }) => event === 'message').map(({ data }) => JSON.parse(data) as Line)
  return { events, said, ended }
}

test('the log of the server and the output of engines are merged, oldest first', async () => {
  await using app = await startApp({ models: [fakeModel('fake'), fakeModel('other')] })
  await wake(app, 'fake')
  await wake(app, 'other')
  const all = await lines(app)
  expect(all.some(({ source, message }) => source === 'server' && message === 'Ready')).toBe(true)
  const ready = all.find(({ message, model_id }) => message === 'Engine ready' && model_id === 'fake')!
  expect(ready).toMatchObject({ source: 'server', level: 'info', fields: { load_ms: expect.any(Number) as number } })
  const printed = all.find(({ source, model_id }) => source === 'engine' && model_id === 'fake')!
  expect(printed).toMatchObject({
    level: null,
    engine_id: ready.engine_id,
    message: expect.stringContaining('listening') as string,
  })
  expect(all.map(({ time }) => time)).toEqual(all.map(({ time }) => time).toSorted((a, b) => (a < b ? -1 : 1)))
  expect((await lines(app, '?model=other')).every(({ model_id }) => model_id === 'other')).toBe(true)
  expect((await lines(app, '?model=other&source=engine')).map(({ source }) => source)).toEqual(['engine'])
  expect(await lines(app, '?lines=1')).toEqual((await lines(app)).slice(-1))
})

test('a follower gets each further line at once, of the requested model only', async () => {
  await using app = await startApp({ models: [fakeModel('fake'), fakeModel('other')] })
  const gone = new AbortController()
  const { said } = await follow(app, '&model=fake&lines=0', gone.signal)
  await wake(app, 'other')
  await wake(app, 'fake')
  await expect.poll(() => said().map(({ message }) => message)).toContain('Engine ready')
  expect(said().every(({ model_id }) => model_id === 'fake')).toBe(true)
  expect(said().some(({ source }) => source === 'engine')).toBe(true)
  gone.abort()
  await expect
    .poll(async () => ((await (await app.fetch('/api/system/status')).json()) as { requests: number }).requests)
    .toBe(1)
})

test('a follower does not delay the stop of the server, and gets a closing event', async () => {
  const app = await startApp()
  const { events, ended } = await follow(app)
  const startedAt = performance.now()
  await app[Symbol.asyncDispose]()
  await ended
  expect(performance.now() - startedAt).toBeLessThan(1_900)
  expect(events.at(-1)).toMatchObject({ event: 'end' })
})

test('secrets that an engine prints are redacted', async () => {
  const node = process.execPath
  const print = `console.log('my key is', process.env.SOME_KEY, 'and sk-infer-0123456789abcdef'); process.exit(3)`
  await using app = await startApp({
    models: [fakeModel('leaky', [], { command: [node, '-e', print, '{port}'], env: { SOME_KEY: 'hunter2hunter2' } })],
  })
  expect((await wake(app, 'leaky')).status).toBe(503)
  const text = JSON.stringify(await lines(app))
  expect(text).toContain('my key is [redacted] and [redacted]')
  expect(text).not.toContain('hunter2hunter2')
})

test.each([
  ['?lines=-1', 'lines'],
  ['?lines=100000', 'lines'],
  ['?source=nobody', 'source'],
  ['?follow=perhaps', 'follow'],
])('%s is refused with a message that names %s', async (query, param) => {
  await using app = await startApp()
  const response = await app.fetch(`/api/system/logs${query}`)
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({ error: { param } })
})

test('an unknown model is named in the error', async () => {
  await using app = await startApp()
  const response = await app.fetch('/api/system/logs?model=ghost')
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { code: 'model_not_found', param: 'model' } })
})

test("another organization's token reads no logs, whatever its scopes", async () => {
  await using app = await startApp()
  const { secret } = await makeOrganization(app, {})
  const response = await app.fetch('/api/system/logs', { token: secret })
  expect(response.status).toBe(403)
  expect(await response.json()).toMatchObject({ error: { code: 'organization_mismatch' } })
})
