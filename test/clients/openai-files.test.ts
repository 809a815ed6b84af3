import { createHash, randomBytes } from 'node:crypto'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../_app.ts'

/** Stores files with the official client: every method of `files` and `uploads`. */
let app: TestApp
let client: OpenAI
beforeAll(async () => {
  app = await startApp({ models: [] })
  client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, maxRetries: 0 })
})
afterAll(() => app[Symbol.asyncDispose]())

const lines = '{"custom_id":"a"}\n{"custom_id":"b"}\n'

test('files: create, wait, retrieve, list, content, delete', async () => {
  const created = await client.files.create({ file: await toFile(Buffer.from(lines), 'in.jsonl'), purpose: 'batch' })
  expect(created).toEqual({
    id: expect.stringMatching(/^file-/),
    object: 'file',
    bytes: lines.length,
    created_at: expect.any(Number),
    expires_at: created.created_at + 30 * 86_400,
    filename: 'in.jsonl',
    purpose: 'batch',
    status: 'processed',
  })
  expect(await client.files.waitForProcessing(created.id)).toEqual(created)
  expect(await client.files.retrieve(created.id)).toEqual(created)
  const content = await client.files.content(created.id)
  expect(content.headers.get('content-type')).toBe('application/jsonl')
  expect(content.headers.get('content-disposition')).toBe(`attachment; filename="in.jsonl"; filename*=UTF-8''in.jsonl`)
  expect(await content.text()).toBe(lines)
  expect(await client.files.delete(created.id)).toEqual({ id: created.id, object: 'file', deleted: true })
  const absent = await client.files.retrieve(created.id).catch((thrown: unknown) => thrown)
  expect(absent).toMatchObject({
    status: 404,
    code: 'not_found',
    type: 'not_found_error',
    param: 'id',
    message: `404 No such File object: ${created.id}`,
  })
})

test('files: pages in both orders, and a purpose', async () => {
  const ids: string[] = []
  for (let at = 0; at < 5; at++) {
    const file = await toFile(Buffer.from(String(at)), `${at}.txt`)
    ids.push((await client.files.create({ file, purpose: at % 2 === 0 ? 'user_data' : 'evals' })).id)
  }
  const all = async (query: OpenAI.FileListParams) => {
    const found: string[] = []
    for await (const { id } of client.files.list(query)) found.push(id)
    return found
  }
  expect(await all({ limit: 2 })).toEqual(ids.toReversed())
  expect(await all({ limit: 2, order: 'asc' })).toEqual(ids)
  expect(await all({ purpose: 'evals' })).toEqual([ids[3], ids[1]])
  const page = await client.files.list({ limit: 2, order: 'asc' }).asResponse()
  expect(await page.json()).toMatchObject({ object: 'list', first_id: ids[0], last_id: ids[1], has_more: true })
  expect((await client.files.list({ after: ids[4]!, order: 'asc' })).data).toEqual([])
  for (const id of ids) await client.files.delete(id)
})

test('files: an expiry is kept, and names and types are those of the file', async () => {
  const created = await client.files.create({
    file: await toFile(Buffer.from('{}'), 'Bericht für Anna.json', { type: 'application/json' }),
    purpose: 'user_data',
    expires_after: { anchor: 'created_at', seconds: 3600 },
  })
  expect(created).toMatchObject({ filename: 'Bericht für Anna.json', expires_at: created.created_at + 3600 })
  const content = await client.files.content(created.id)
  expect(content.headers.get('content-type')).toBe('application/json')
  expect(content.headers.get('content-disposition')).toContain(`filename*=UTF-8''Bericht%20f%C3%BCr%20Anna.json`)
})

const partsOf = (bytes: Buffer, count: number) => {
  const size = Math.ceil(bytes.length / count)
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * size, (at + 1) * size))
}

test('uploads: parts at once in any order, joined in the order of their ids', async () => {
  const bytes = randomBytes(2_000_003)
  const upload = await client.uploads.create({
    bytes: bytes.length,
    filename: 'big.bin',
    mime_type: 'application/octet-stream',
    purpose: 'user_data',
  })
  expect(upload).toEqual({
    id: expect.stringMatching(/^upload_/),
    object: 'upload',
    bytes: bytes.length,
    created_at: expect.any(Number),
    expires_at: upload.created_at + 3600,
    filename: 'big.bin',
    purpose: 'user_data',
    status: 'pending',
  })
  const parts = await Promise.all(
    partsOf(bytes, 5).map(async part => client.uploads.parts.create(upload.id, { data: await toFile(part, 'blob') })),
  )
  expect(parts[0]).toEqual({
    id: expect.stringMatching(/^part_/),
    object: 'upload.part',
    created_at: expect.any(Number),
    upload_id: upload.id,
  })
  const part_ids = parts.map(({ id }) => id)
  const md5 = createHash('md5').update(bytes).digest('hex')
  const wrong = await client.uploads
    .complete(upload.id, { part_ids: part_ids.toReversed(), md5 })
    .catch(thrown => thrown)
  expect(wrong).toMatchObject({ status: 400, param: 'md5' })
  const short = await client.uploads.complete(upload.id, { part_ids: part_ids.slice(1) }).catch(thrown => thrown)
  expect(short).toMatchObject({ status: 400, param: 'part_ids' })
  const completed = await client.uploads.complete(upload.id, { part_ids, md5 })
  expect(completed).toEqual({ ...upload, status: 'completed', file: expect.objectContaining({ bytes: bytes.length }) })
  const content = Buffer.from(await (await client.files.content(completed.file!.id)).arrayBuffer())
  expect(content.equals(bytes)).toBe(true)
  expect(await client.files.retrieve(completed.file!.id)).toEqual(completed.file)
  const again = await client.uploads.complete(upload.id, { part_ids }).catch(thrown => thrown)
  expect(again).toMatchObject({ status: 409, code: 'conflict' })
})

test('uploads: a cancelled one takes no part, and an unknown one does not exist', async () => {
  const upload = await client.uploads.create({
    bytes: 5,
    filename: 'a.txt',
    mime_type: 'text/plain',
    purpose: 'assistants',
    expires_after: { anchor: 'created_at', seconds: 7200 },
  })
  const data = () => toFile(Buffer.from('hello'), 'part')
  await client.uploads.parts.create(upload.id, { data: await data() })
  expect(await client.uploads.cancel(upload.id)).toEqual({ ...upload, status: 'cancelled' })
  const late = await client.uploads.parts.create(upload.id, { data: await data() }).catch(thrown => thrown)
  expect(late).toMatchObject({ status: 409, code: 'conflict' })
  const absent = await client.uploads.cancel('upload_01K8Q6Z4M3T8V9W0X1Y2Z3A4B5').catch(thrown => thrown)
  expect(absent).toMatchObject({ status: 404, code: 'not_found' })
})
