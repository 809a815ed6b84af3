import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** Batches with the official client, with only the base URL changed. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('fake', [], { price: { input_per_million_tokens: 1_000, output_per_million_tokens: 1_000 } }),
      fakeModel('slow', ['--hang'], { concurrency: 1 }),
    ],
    batch_price_factor: 0.5,
  })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const chat = (at: number, model = 'fake', more: object = {}) => ({
  custom_id: `line ${at}`,
  method: 'POST',
  url: '/v1/chat/completions',
  body: { model, messages: [{ role: 'user', content: `Hello ${at}` }], ...more },
})
const upload = async (lines: readonly object[]) =>
  (
    await client.files.create({
      file: await toFile(Buffer.from(lines.map(line => JSON.stringify(line)).join('\n')), 'in.jsonl'),
      purpose: 'batch',
    })
  ).id

const start = async (lines: readonly object[], more: object = {}) =>
  client.batches.create({
    input_file_id: await upload(lines),
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
    ...more,
  })

/** The batch once it is in one of these states; waits for the events of the server. */
async function until(id: string, ...states: OpenAI.Batch['status'][]): Promise<OpenAI.Batch> {
  for (;;) {
    const batch = await client.batches.retrieve(id)
    if (states.includes(batch.status)) return batch
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

interface OutputLine {
  custom_id: string
  response: { status_code: number; body: { object?: string; error?: { code: string } } } | null
  error: { code: string } | null
}
const linesOf = async (id: string | null | undefined): Promise<OutputLine[]> =>
  (await (await client.files.content(id!)).text())
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as OutputLine)

test('create, retrieve and the output files: each line once, wrong requests with their own error', async () => {
  const lines = Array.from({ length: 150 }, (_, at) => chat(at, 'fake', at % 50 === 7 ? { temperature: 'warm' } : {}))
  const created = await start(lines, { metadata: { night: 'ly' } })
  expect(created).toMatchObject({ object: 'batch', status: 'validating', metadata: { night: 'ly' }, errors: null })
  const batch = await until(created.id, 'completed', 'failed')
  expect(batch).toMatchObject({
    status: 'completed',
    model: 'fake',
    request_counts: { total: 150, completed: 147, failed: 3 },
    output_file_id: expect.stringMatching(/^file-/),
    error_file_id: expect.stringMatching(/^file-/),
  })
  expect(batch.usage!.total_tokens).toBe(batch.usage!.input_tokens + batch.usage!.output_tokens)
  const outputs = await linesOf(batch.output_file_id)
  expect(outputs).toHaveLength(147)
  for (const { response } of outputs)
    expect(response).toMatchObject({ status_code: 200, body: { object: 'chat.completion' } })
  const errors = await linesOf(batch.error_file_id)
  expect(errors.map(({ custom_id }) => custom_id).toSorted()).toEqual(['line 107', 'line 57', 'line 7'])
  for (const { response } of errors)
    expect(response).toMatchObject({ status_code: 400, body: { error: { code: 'invalid_type' } } })
  const ids = new Set([...outputs, ...errors].map(({ custom_id }) => custom_id))
  expect(ids.size).toBe(150)
  await expect(client.batches.cancel(batch.id)).rejects.toMatchObject({ status: 409, code: 'batch_not_cancellable' })
  // Half the price: each of these tokens costs 1000 millionths.
  const { jobs } = (await (
    await app.fetch(`/api/jobs?metadata[batch_id]=${batch.id}&status=completed&limit=1`)
  ).json()) as {
    jobs: { cost: number; usage: { input_tokens: number; output_tokens: number }; metadata: object }[]
  }
  expect(jobs[0]!.metadata).toMatchObject({ batch_id: batch.id })
  const { cost, usage } = jobs[0]!
  expect(cost * 1e6).toBe((usage.input_tokens + usage.output_tokens) * 500)
})

test('a wrong line fails the batch with its number, and no line runs', async () => {
  const lines = [chat(1), { ...chat(2), method: 'GET' }, chat(1), chat(4, 'absent'), chat(5, 'fake', { stream: true })]
  const batch = await until((await start(lines)).id, 'failed', 'completed')
  expect(batch.errors!.data!.map(({ code, line, param }) => [code, line, param])).toEqual([
    ['invalid_method', 2, 'method'],
    ['duplicate_custom_id', 3, 'custom_id'],
    ['model_not_found', 4, 'body.model'],
    ['unsupported_parameter', 5, 'body.stream'],
  ])
  expect(batch).toMatchObject({
    status: 'failed',
    output_file_id: null,
    error_file_id: null,
    failed_at: expect.any(Number),
  })
  expect(batch.request_counts).toEqual({ total: 0, completed: 0, failed: 0 })
})

test('cancel: lines that have not ended are in the error file, and the input file is kept until then', async () => {
  const created = await start([chat(1, 'slow'), chat(2, 'slow'), chat(3, 'slow')])
  await until(created.id, 'in_progress')
  await expect(client.files.delete(created.input_file_id)).rejects.toMatchObject({ status: 409, code: 'conflict' })
  expect(await client.batches.cancel(created.id)).toMatchObject({ status: 'cancelling' })
  const batch = await until(created.id, 'cancelled')
  expect(batch).toMatchObject({ output_file_id: null, request_counts: { total: 3, completed: 0, failed: 3 } })
  for (const line of await linesOf(batch.error_file_id))
    expect(line).toMatchObject({ response: null, error: { code: 'batch_cancelled' } })
  expect((await client.files.delete(created.input_file_id)).deleted).toBe(true)
})

test('list goes through all batches, newest first', async () => {
  const created: string[] = []
  for (let at = 0; at < 3; at++) created.push((await start([chat(at)])).id)
  const listed: string[] = []
  for await (const { id } of client.batches.list({ limit: 2 })) listed.push(id)
  expect(listed.slice(0, 3)).toEqual(created.toReversed())
  expect(new Set(listed).size).toBe(listed.length)
  for (const id of created) await until(id, 'completed')
})

test.each<[rule: string, more: object, code: string, param: string]>([
  ['an unknown endpoint', { endpoint: '/v1/none' }, 'invalid_value', 'endpoint'],
  ['an unknown slug', { endpoint: 'slug/none' }, 'invalid_value', 'endpoint'],
  ['a window of a week and an hour', { completion_window: '169h' }, 'invalid_value', 'completion_window'],
  ['a file that does not exist', { input_file_id: 'file-01KAPT31G0W9YV5QXJ7Q2N4C5D' }, 'not_found', 'input_file_id'],
])('%s is refused', async (_, more, code, param) => {
  await expect(start([chat(1)], more)).rejects.toMatchObject({ code, param })
})

test('a batch of another organization does not exist', async () => {
  const id = 'batch_01KAPT31G0W9YV5QXJ7Q2N4C5D'
  await expect(client.batches.retrieve(id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
  await expect(client.batches.cancel(id)).rejects.toMatchObject({ status: 404, code: 'not_found' })
})

test('responses: each line is answered in that form, and what needs a stored response is refused', async () => {
  const line = (at: number, more: object) => ({
    custom_id: `${at}`,
    method: 'POST',
    url: '/v1/responses',
    body: { model: 'fake', input: 'Hello', ...more },
  })
  const lines = [line(1, { instructions: 'Be short.' }), line(2, { previous_response_id: 'resp_1' })]
  const { id } = await start(lines, { endpoint: '/v1/responses' })
  const batch = await until(id, 'completed', 'failed')
  expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
  const [done] = await linesOf(batch.output_file_id)
  expect(done).toMatchObject({
    custom_id: '1',
    response: {
      status_code: 200,
      body: { object: 'response', status: 'completed', store: false, instructions: 'Be short.' },
    },
  })
  const [refused] = await linesOf(batch.error_file_id)
  expect(refused).toMatchObject({
    custom_id: '2',
    response: { status_code: 400, body: { error: { code: 'unsupported_parameter', param: 'previous_response_id' } } },
  })
})
