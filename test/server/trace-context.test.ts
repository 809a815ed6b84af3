import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { startEngine } from '../_engine.ts'
import { openReceiver, type Receiver } from '../_receiver.ts'

let app: TestApp
let receiver: Receiver
let remote: Awaited<ReturnType<typeof startEngine>>
const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const messages = [{ role: 'user', content: 'mode:stats' }]

beforeAll(async () => {
  receiver = await openReceiver()
  remote = await startEngine()
  app = await startApp({
    models: [fakeModel('fake'), { id: 'remote', engine: 'remote', url: `${remote.url}/v1` }],
    webhooks: { allowed_addresses: ['127.0.0.1'], retry_delays: [] },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await remote[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

/** The trace of its request, as the engine of the model got it. */
async function heard(model: string, headers: Record<string, string>): Promise<string | undefined> {
  const response = await app.fetch('/std/v1/chat/completions', { body: { model, messages }, headers })
  expect(response.status).toBe(200)
  return traceIn(await response.json())
}

const traceIn = (answer: unknown): string | undefined => {
  const { choices } = answer as { choices: { message: { content: string } }[] }
  return (JSON.parse(choices[0]!.message.content) as { traceparent?: string }).traceparent
}

test('an engine on this machine gets the trace of a request, without its tracestate', async () => {
  expect(await heard('fake', { traceparent, tracestate: 'vendor=1' })).toBe(traceparent)
  expect(await heard('fake', {})).toBeUndefined()
})

test('an invalid trace is ignored', async () => {
  expect(await heard('fake', { traceparent: traceparent.replace('00f067aa0ba902b7', '0'.repeat(16)) })).toBeUndefined()
})

test('a remote service gets none', async () => {
  expect(await heard('remote', { traceparent })).toBeUndefined()
})

test('a job keeps its trace for its engine, its record and its webhooks', async () => {
  const body = {
    task: 'std/chat-completion',
    model_id: 'fake',
    inputs: { messages },
    webhook_url: `${receiver.url}/hook`,
  }
  const submitted = await app.fetch('/api/jobs', { body, headers: { traceparent } })
  expect(submitted.status).toBe(202)
  const completed = await receiver.next(({ body: { type } }) => type === 'job.completed')
  expect(completed.headers.traceparent).toBe(traceparent)
  const id = submitted.headers.get('x-job-id')
  const job = (await (await app.fetch(`/api/jobs/${id}`)).json()) as { traceparent: string; result: unknown }
  expect(job.traceparent).toBe(traceparent)
  expect(traceIn(job.result)).toBe(traceparent)
})

test('the log names the trace of a request whose engine failed', async () => {
  const logged = app.logged('An engine failed')
  const failing = [{ role: 'user', content: 'mode:status,code=500,text=out_of_luck' }]
  await app.fetch('/std/v1/chat/completions', { body: { model: 'fake', messages: failing }, headers: { traceparent } })
  expect(await logged).toMatchObject({ traceparent })
})
