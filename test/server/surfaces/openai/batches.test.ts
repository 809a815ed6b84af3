import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { maxInputBytes } from '../../../../core/batches/batch-line.ts'
import { openDatabase } from '../../../../core/store/sqlite/database.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { openScriptedEngine, type ScriptedEngine, type Seen, well } from '../../_scripted-engine.ts'
import { toneModel } from './_speech.ts'

/** Batches over the API: how they end early, their limits, and lines that make files. */
let app: TestApp
let engine: ScriptedEngine
/** Requests that the engine has not answered, by their text. */
const held = new Map<string, () => void>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen: Seen, response: ServerResponse) => {
    const said = String(seen.body.input)
    if (said.startsWith('hold')) held.set(said, () => well(seen, response))
    else well(seen, response)
  })
  app = await startApp({
    models: [
      engine.model('far', { concurrency: 2, price: { per_thousand_documents: 1_000 } }),
      toneModel({
        id: 'all',
        tasks: ['std/audio-speech', 'std/audio-transcription', 'slug/text-to-image'],
        args: ['--step-ms', '0'],
      }),
    ],
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

type Endpoint = OpenAI.BatchCreateParams['endpoint']
interface OutputLine {
  custom_id: string
  response: { status_code: number; body: Record<string, never> & { error?: { code: string } } } | null
  error: { code: string } | null
}

/** A client, and what tests do with the batches of its organization. */
function batchesOf(apiKey: string) {
  const client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey, maxRetries: 0 })
  const create = (url: string, input_file_id: string) =>
    client.batches.create({ input_file_id, endpoint: url as Endpoint, completion_window: '24h' })
  return {
    client,
    start: async (url: string, bodies: Record<string, object>): Promise<OpenAI.Batch> => {
      const lines = Object.entries(bodies).map(([custom_id, body]) =>
        JSON.stringify({ custom_id, method: 'POST', url, body }),
      )
      const file = await client.files.create({
        file: await toFile(Buffer.from(lines.join('\n')), 'in.jsonl'),
        purpose: 'batch',
      })
      return create(url, file.id)
    },
    create,
    /** Resolves with the batch once the condition holds. */
    until: async (id: string, holds: (batch: OpenAI.Batch) => boolean): Promise<OpenAI.Batch> => {
      let batch = await client.batches.retrieve(id)
      await expect.poll(async () => holds((batch = await client.batches.retrieve(id)))).toBe(true)
      return batch
    },
    lines: async (fileId: string | null | undefined): Promise<Record<string, OutputLine>> => {
      const text = await (await client.files.content(fileId!)).text()
      const lines = text
        .trimEnd()
        .split('\n')
        .map(line => JSON.parse(line) as OutputLine)
      return Object.fromEntries(lines.map(line => [line.custom_id, line]))
    },
  }
}
const hasEnded = ({ status }: OpenAI.Batch) => ['completed', 'failed', 'expired', 'cancelled'].includes(status)
const change = (sql: string, ...values: unknown[]) => {
  const connection = openDatabase(join(app.dataDir, 'infer.db'))
  expect(connection.prepare(sql).run(...values).changes).toBe(1)
  connection.close()
}

test('a batch that expires keeps what was done, and its other lines say so', async () => {
  const { client, start, until, lines } = batchesOf(app.secret)
  const inputs = ['one', 'hold 1', 'hold 2', 'hold 3']
  const bodies = Object.fromEntries(inputs.map(input => [input, { model: 'far', input }]))
  const { id } = await start('/v1/embeddings', bodies)
  await engine.until(() => held.size === 2)
  await until(id, ({ request_counts }) => request_counts!.completed === 1)
  const hour = 3_600_000
  const old = `created_at = created_at - ${2 * hour}, output_lifetime_ms = ${hour}`
  change(`UPDATE batches SET expires_at = ?, ${old} WHERE id = ?`, Date.now() - 1, id)
  const [[second, answer]] = [...held] as [[string, () => void]]
  // The batch looks at its window again when a line has ended.
  answer()
  const batch = await until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'expired', request_counts: { total: 4, completed: 2, failed: 2 } })
  expect(batch.expired_at).toBeGreaterThan(0)
  const done = await lines(batch.output_file_id)
  expect(Object.keys(done)).toEqual(['one', second])
  for (const { response } of Object.values(done))
    expect(response).toMatchObject({ status_code: 200, body: { object: 'list' } })
  const errors = await lines(batch.error_file_id)
  expect(Object.keys(errors)).toEqual(inputs.filter(input => !(input in done)))
  for (const { response, error } of Object.values(errors))
    expect([response, error?.code]).toEqual([null, 'batch_expired'])
  // Its files are kept from their own creation on, however long the batch took.
  for (const made of [batch.output_file_id, batch.error_file_id]) {
    const file = await client.files.retrieve(made!)
    expect(file.expires_at! - file.created_at).toBe(3_600)
  }
})

test('once the spend limit is reached the other lines fail with it, and those that have ended are kept', async () => {
  const { secret } = await makeOrganization(app, { monthlySpendLimit: 5_000_000 })
  const { start, until, lines } = batchesOf(secret)
  const body = { model: 'far', query: 'a', documents: ['b'] }
  const { id } = await start('/v1/rerank', Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`${at}`, body])))
  const batch = await until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 12, completed: 5, failed: 7 } })
  expect(Object.keys(await lines(batch.output_file_id))).toHaveLength(5)
  for (const { response } of Object.values(await lines(batch.error_file_id)))
    expect(response).toMatchObject({ status_code: 429, body: { error: { code: 'quota_exceeded' } } })
})

const silence = 'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'
const isLink = expect.stringMatching(/^http:\/\/.*\/files\//) as unknown

test.each<[url: string, body: object, wrong: object, answer: object]>([
  [
    '/v1/images/generations',
    { model: 'all', prompt: 'A cat', size: '64x64' },
    { size: 'huge' },
    { data: [{ url: isLink }] },
  ],
  ['/v1/audio/speech', { model: 'all', input: 'Hello', response_format: 'wav' }, { speed: 99 }, { audio_url: isLink }],
  [
    '/v1/audio/transcriptions',
    { model: 'all', url: silence },
    { url: 'no address' },
    { text: expect.any(String) as unknown },
  ],
  [
    'slug/all/text-to-image',
    { prompt: 'A cat', width: 64, height: 64 },
    { width: -1 },
    { images: [{ url: isLink, width: 64 }] },
  ],
])('lines of %s are answered as by that endpoint', async (url, body, wrong, answer) => {
  const { start, until, lines } = batchesOf(app.secret)
  const { id } = await start(url, { right: body, wrong: { ...body, ...wrong } })
  const batch = await until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 2, completed: 1, failed: 1 } })
  const { right } = await lines(batch.output_file_id)
  expect(right!.response).toMatchObject({ status_code: 200, body: answer })
  const link = /http:[^"]+\/files\/[^"]+/.exec(JSON.stringify(right))?.[0]
  if (link !== undefined) expect((await fetch(link)).status).toBe(200)
  const { wrong: refused } = await lines(batch.error_file_id)
  expect(refused!.response).toMatchObject({
    status_code: 400,
    body: { error: { code: expect.any(String) as unknown } },
  })
})

/** A second token of the organization, with a batch of which one line has ended and others wait in the engine. */
async function tokenWithBatch() {
  held.clear()
  const me = (await (await app.fetch('/api/me')).json()) as { organization: { id: string } }
  const path = `/api/organizations/${me.organization.id}/tokens`
  const made = await app.fetch(path, { body: { name: 'leaked' } })
  const { token, secret } = (await made.json()) as { token: { id: string }; secret: string }
  const bodies = Object.fromEntries(['one', 'hold 1', 'hold 2'].map(input => [input, { model: 'far', input }]))
  const { id } = await batchesOf(secret).start('/v1/embeddings', bodies)
  await engine.until(() => held.size === 2)
  await batchesOf(app.secret).until(id, ({ request_counts }) => request_counts!.completed === 1)
  const revoke = async (query: string) =>
    (await (await app.fetch(`${path}/${token.id}${query}`, { method: 'DELETE' })).json()) as object
  return { id, secret, revoke }
}

test('a batch goes on after its token was revoked', async () => {
  const { id, revoke } = await tokenWithBatch()
  expect(await revoke('')).toEqual({ id: expect.any(String), object: 'token', deleted: true })
  for (const answer of held.values()) answer()
  const batch = await batchesOf(app.secret).until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'completed', request_counts: { total: 3, completed: 3, failed: 0 } })
})

test('a token that is revoked with its work leaves no job, execution or batch, and those of others alone', async () => {
  const { id, secret, revoke } = await tokenWithBatch()
  const job = { task: 'std/embeddings', model_id: 'far', inputs: { input: 'x' }, not_before: 4_000_000_000 }
  const begin = async (path: string, body: object, token: string) =>
    (await (await app.fetch(path, { body, token })).json()) as { id: string; execution: { id: string } }
  const [own, other] = [await begin('/api/jobs', job, secret), await begin('/api/jobs', job, app.secret)]
  const dag = { nodes: { a: { model_id: 'far', task: 'std/embeddings', inputs: { input: 'hold 3' } } }, edges: [] }
  const { execution } = await begin('/api/workflows/run', { dag }, secret)
  const counts = { jobs_cancelled: 1, executions_cancelled: 1, batches_cancelled: 1 }
  expect(await revoke('?cancel_work=true')).toMatchObject({ deleted: true, ...counts })
  const read = async (path: string) => (await (await app.fetch(path)).json()) as { status: string; execution: object }
  expect((await read(`/api/workflow-executions/${execution.id}`)).execution).toMatchObject({ status: 'cancelled' })
  expect((await read(`/api/jobs/${own.id}`)).status).toBe('cancelled')
  expect((await read(`/api/jobs/${other.id}`)).status).toBe('pending')
  const batch = await batchesOf(app.secret).until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'cancelled', request_counts: { total: 3, completed: 1, failed: 2 } })
  // Nothing is left, and asking again is harmless.
  expect(await revoke('?cancel_work=true')).toMatchObject({ jobs_cancelled: 0, executions_cancelled: 0 })
  await app.fetch(`/api/jobs/${other.id}/cancel`, { body: {} })
})

test('a line that is nested too deep fails its batch when the file is checked', async () => {
  const { client, create, until } = batchesOf(app.secret)
  const user = `${'['.repeat(5_000)}${']'.repeat(5_000)}`
  const line = `{"custom_id":"deep","method":"POST","url":"/v1/embeddings","body":{"model":"far","input":"x","user":${user}}}`
  const file = await client.files.create({ file: await toFile(Buffer.from(line), 'in.jsonl'), purpose: 'batch' })
  const batch = await until((await create('/v1/embeddings', file.id)).id, hasEnded)
  expect(batch).toMatchObject({ status: 'failed', errors: { data: [{ code: 'invalid_json_line', line: 1 }] } })
  expect(batch.errors?.data?.[0]?.message).toBe('The line nests deeper than 65 levels. Flatten it.')
})

test('an input file of more than 200 MiB fails the batch before a line is read', async () => {
  const { start, create, until } = batchesOf(app.secret)
  const bodies = { a: { model: 'far', input: 'one' } }
  const first = await start('/v1/embeddings', bodies)
  await until(first.id, hasEnded)
  // A file of this size would take longer to write than all other tests here.
  change('UPDATE files SET bytes = ? WHERE id = ?', maxInputBytes + 1, first.input_file_id)
  const { id } = await create('/v1/embeddings', first.input_file_id)
  const batch = await until(id, hasEnded)
  expect(batch).toMatchObject({ status: 'failed', errors: { data: [{ code: 'file_too_large', line: null }] } })
  expect(batch.errors!.data![0]!.message).toContain('200 MiB')
})
