import { once } from 'node:events'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
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
    models: [
      fakeModel('fake'),
      fakeModel('hears', [], { tasks: ['std/audio-transcription'] }),
      { id: 'remote', engine: 'remote', url: `${remote.url}/v1` },
    ],
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

test('an execution has the trace of its request; so have the jobs of all its nodes and its webhooks', async () => {
  const node = { task: 'std/chat-completion', model_id: 'fake', inputs: { messages } }
  const inputs = { messages: [...messages, { role: 'assistant', content: '${nodes.a.result.id}' }, ...messages] }
  const body = {
    dag: { nodes: { a: node, b: { ...node, inputs } }, edges: [] },
    webhook_url: `${receiver.url}/execution`,
  }
  const started = await app.fetch('/api/workflows/run', { body, headers: { traceparent } })
  expect(started.status).toBe(202)
  const ended = await receiver.next(({ body: { type } }) => type === 'workflow_execution.completed')
  expect(ended.headers.traceparent).toBe(traceparent)
  const { id } = ((await started.json()) as { execution: { id: string } }).execution
  const { execution } = (await (await app.fetch(`/api/workflow-executions/${id}`)).json()) as {
    execution: { traceparent: string; nodes: { job_id: string }[] }
  }
  expect(execution.traceparent).toBe(traceparent)
  for (const { job_id } of execution.nodes) {
    const job = (await (await app.fetch(`/api/jobs/${job_id}`)).json()) as { traceparent: string; result: unknown }
    expect(job.traceparent).toBe(traceparent)
    expect(traceIn(job.result)).toBe(traceparent)
  }
})

test('a batch has the trace of its request; so have the jobs of its lines and its webhook', async () => {
  const endpoint = { name: 'ends', url: `${receiver.url}/batch`, event_types: ['batch.completed'] }
  expect((await app.fetch('/api/webhooks', { body: endpoint })).status).toBe(201)
  const client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
  const url = '/v1/chat/completions'
  const line = { custom_id: 'one', method: 'POST', url, body: { model: 'fake', messages } }
  const file = await toFile(Buffer.from(JSON.stringify(line)), 'in.jsonl')
  const { id } = await client.files.create({ file, purpose: 'batch' })
  await client.batches.create(
    { input_file_id: id, endpoint: url, completion_window: '24h' },
    { headers: { traceparent } },
  )
  const completed = await receiver.next(({ body: { type } }) => type === 'batch.completed')
  expect(completed.headers.traceparent).toBe(traceparent)
  const output = (completed.body.data as { output_file_id: string }).output_file_id
  const answer = JSON.parse(await (await client.files.content(output)).text()) as { response: { body: unknown } }
  expect(traceIn(answer.response.body)).toBe(traceparent)
})

test('what a realtime session transcribes has the trace of its request', async () => {
  const logged = app.logged('An engine failed')
  const socket = new WebSocket(`${app.url.replace('http', 'ws')}/std/v1/realtime?intent=transcription&model=hears`, {
    headers: { authorization: `Bearer ${app.secret}`, traceparent },
  })
  await once(socket, 'open')
  const input = { turn_detection: null, transcription: { prompt: 'mode:status,code=500,text=out_of_luck' } }
  const loud = Buffer.from(Array.from({ length: 48_000 }, (_, at) => (at % 2 === 0 ? 0 : at % 100 < 50 ? 0x20 : 0xe0)))
  for (const event of [
    { type: 'session.update', session: { type: 'transcription', audio: { input } } },
    { type: 'input_audio_buffer.append', audio: loud.toString('base64') },
    { type: 'input_audio_buffer.commit' },
  ])
    socket.send(JSON.stringify(event))
  expect(await logged).toMatchObject({ model: 'hears', traceparent })
  socket.close()
  await once(socket, 'close')
})
