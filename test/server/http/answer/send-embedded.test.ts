import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
/** A job whose result is 15 MB. */
let path: string

beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')], limits: { write_deadline: '1s' } })
  const inputs = { messages: [{ role: 'user', content: 'mode:wordy,kb=15000' }] }
  const submitted = await app.fetch('/api/jobs', { body: { task: 'std/chat-completion', model_id: 'fake', inputs } })
  path = `/api/jobs/${((await submitted.json()) as { id: string }).id}`
  expect((await app.fetch(`${path}?wait=60`, { method: 'HEAD' })).headers.get('content-length')).toMatch(/^15\d{6}$/)
})
afterAll(() => app[Symbol.asyncDispose]())

async function open(): Promise<IncomingMessage> {
  const request = get(`${app.url}${path}`, { headers: { authorization: `Bearer ${app.secret}` }, agent: false })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  response.on('error', () => {})
  return response
}

async function bytesOf(response: IncomingMessage): Promise<number> {
  let bytes = 0
  for await (const chunk of response) bytes += (chunk as Buffer).length
  return bytes
}

test('a reader that pauses and resumes in time gets everything', async () => {
  const response = await open()
  let pauses = 0
  let bytes = 0
  for await (const chunk of response) {
    bytes += (chunk as Buffer).length
    if (bytes > 3_000_000 * (pauses + 1) && ++pauses) await new Promise(resolve => setImmediate(resolve))
  }
  expect(pauses).toBeGreaterThan(2)
  expect(bytes).toBe(Number(response.headers['content-length']))
})

test('a reader that does not read is cut, and can tell that the result is incomplete', async () => {
  const response = await open()
  response.pause()
  // Metrics count the responses under way without reading from the socket.
  const streams = async () => Number(/^infer_streams (\d+)/m.exec(await (await app.fetch('/metrics')).text())?.[1])
  await expect.poll(streams).toBe(1)
  await expect.poll(streams).toBe(0)
  await expect(bytesOf(response)).rejects.toMatchObject({ code: 'ECONNRESET' })
})

test('a reader that disconnects causes no error', async () => {
  const response = await open()
  await once(response, 'data')
  response.destroy()
  expect(await bytesOf(await open())).toBeGreaterThan(15_000_000)
  expect(app.errors).toEqual([])
})
