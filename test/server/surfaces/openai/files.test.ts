import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import type { FileRecord, NewFile } from '../../../../core/store/store.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { newFile } from '../../../store/conformance/records.ts'
import { makeOrganization } from '../../_organization.ts'

/** Attacks on the files API, and its limits. */
let app: TestApp
const source = createServer((req, res) => {
  if (req.url === '/in%20put.jsonl') res.end('{"a":1}\n')
  else res.writeHead(404).end()
})
beforeAll(async () => {
  source.listen(0, '127.0.0.1')
  await once(source, 'listening')
  app = await startApp({
    models: [],
    media: { allowed_addresses: ['127.0.0.1/32'] },
  })
})
afterAll(async () => {
  source.close()
  await app[Symbol.asyncDispose]()
})

type Answer = { id: string; filename: string; bytes: number; error: { code: string; message: string; param: string } }
const jsonOf = async (answer: Response) => (await answer.json()) as Answer

async function upload(
  { name = 'a.txt', content = 'hello', purpose = 'user_data', token = app.secret }: Record<string, string> = {},
  more: Record<string, string> = {},
): Promise<Response> {
  const form = new FormData()
  for (const [field, value] of Object.entries({ purpose, ...more })) form.append(field, value)
  form.append('file', new Blob([content]), name)
  return fetch(`${app.url}/v1/files`, { method: 'POST', body: form, headers: { authorization: `Bearer ${token}` } })
}
const read = (path: string, headers: Record<string, string> = {}, token = app.secret) =>
  app.fetch(`/std/v1/files/${path}`, { headers, token })

/** Sends a form whose file has exactly these bytes as its name. Resolves with the answer's text. */
async function rawUpload(disposition: string): Promise<string> {
  const body = `--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name="file"; ${disposition}\r\n\r\nx\r\n--b--\r\n`
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /v1/files HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${app.secret}\r\nConnection: close\r\n` +
      `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

test.each([
  ['filename="../../../etc/passwd"', 'passwd'],
  ['filename="..\\\\..\\\\boot.ini"', 'boot.ini'],
  ['filename=".."', 'file'],
  ['filename="a\u0001b\u202egpj.exe"', 'a_b_gpj.exe'],
  ['filename="a\u0085Set-Cookie: x=1.txt"', 'a_Set-Cookie_ x=1.txt'],
  ['filename="a%0d%0aSet-Cookie: x=1.txt"', 'a%0d%0aSet-Cookie_ x=1.txt'],
  ['filename="<script>.html"', '_script_.html'],
])('a file named by %j is stored as %s', async (disposition, name) => {
  const answer = await rawUpload(disposition)
  expect(answer).toContain('HTTP/1.1 200')
  const file = JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1)) as Answer
  expect(file.filename).toBe(name)
  const content = await read(`${file.id}/content`)
  expect(content.headers.get('set-cookie')).toBeNull()
  expect(content.headers.get('content-type')).not.toContain('html')
  expect(content.headers.get('x-content-type-options')).toBe('nosniff')
  expect(content.headers.get('content-security-policy')).toBe("default-src 'none'; sandbox")
  expect(await content.text()).toBe('x')
  const stored = readdirSync(join(app.dataDir, 'files', app.organizationId))
  expect(stored.filter(one => !/^file-[0-9A-Z]{26}\.\w+$/.test(one))).toEqual([])
})

test('the file of another organization is answered byte for byte like an absent one', async () => {
  const { secret } = await makeOrganization(app, {})
  const { id } = await jsonOf(await upload({ token: secret }))
  const job = await addRow({ purpose: 'output', apiPurpose: null })
  const absent = newId('file')
  const asked = (one: string) => [
    ['GET', `/std/v1/files/${one}`],
    ['GET', `/std/v1/files/${one}/content`],
    ['DELETE', `/std/v1/files/${one}`],
    ['GET', `/std/v1/files?after=${one}`],
  ]
  const shape = async (one: string) =>
    Promise.all(
      asked(one).map(async ([method, path]) => {
        const answer = await app.fetch(path!, { method: method! })
        const text = await answer.text()
        return [answer.status, text.replaceAll(one, 'ID').replace(/req_\w+/, 'REQ')]
      }),
    )
  const list = await shape(absent)
  expect(list[0]).toEqual([
    404,
    '{"error":{"code":"not_found","message":"No such File object: ID","type":"not_found_error","param":"id","request_id":"REQ"}}',
  ])
  expect((await shape(id)).slice(0, 3)).toEqual(list.slice(0, 3))
  // The result of a job is not a file of this API either.
  expect((await shape(job.id)).slice(0, 3)).toEqual(list.slice(0, 3))
  expect((await read(id, {}, secret)).status).toBe(200)
})

test('ranges of the content', async () => {
  const { id } = await jsonOf(await upload({ content: '0123456789' }))
  const content = (range: string) => read(`${id}/content`, { range })
  const part = await content('bytes=2-4')
  expect([part.status, part.headers.get('content-range'), await part.text()]).toEqual([206, 'bytes 2-4/10', '234'])
  expect(await (await content('bytes=-3')).text()).toBe('789')
  const beyond = await content('bytes=10-')
  expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */10'])
  for (const range of ['bytes=0-1,3-4,5-6', 'bytes=9-2', 'bytes=x', `bytes=${'0-0,'.repeat(500)}0-0`]) {
    const whole = await content(range)
    expect([range.slice(0, 20), whole.status, (await whole.text()).length]).toEqual([range.slice(0, 20), 200, 10])
  }
  const etag = part.headers.get('etag')!
  expect((await read(`${id}/content`, { 'if-none-match': etag })).status).toBe(304)
  const head = await fetch(`${app.url}/v1/files/${id}/content`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${app.secret}` },
  })
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '10', ''])
})

test.each([
  ['without a purpose', { purpose: 'null' }, {}, 'purpose'],
  ['with a purpose that only the server gives', { purpose: 'batch_output' }, {}, 'purpose'],
  [
    'that expires too soon',
    {},
    { 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3599' },
    'expires_after.seconds',
  ],
  [
    'that expires after something else',
    {},
    { 'expires_after[anchor]': 'x', 'expires_after[seconds]': '3600' },
    'expires_after.anchor',
  ],
  ['that is empty', { content: '' }, {}, 'file'],
])('a file %s is refused, and nothing of it is stored', async (_, what, more, param) => {
  const before = onDisk()
  const answer = await upload(what, more)
  expect([answer.status, (await jsonOf(answer)).error.param]).toEqual([400, param])
  expect(onDisk()).toEqual(before)
})

const onDisk = () => [
  ...readdirSync(join(app.dataDir, 'files'), { recursive: true, encoding: 'utf8' }),
  ...readdirSync(join(app.dataDir, 'work'), { recursive: true, encoding: 'utf8' }),
]

test('a file is fetched from a URL by the rules for media, and a list refuses wrong values', async () => {
  const { port } = source.address() as AddressInfo
  const url = `http://127.0.0.1:${port}/in%20put.jsonl`
  const made = await app.fetch('/v1/files', { body: { url, purpose: 'batch' } })
  expect(await jsonOf(made)).toMatchObject({ filename: 'in put.jsonl', bytes: 8, purpose: 'batch' })
  const inside = await app.fetch('/v1/files', { body: { url: ' data:a/b;base64,AAAA', purpose: 'batch' } })
  expect(await jsonOf(inside)).toMatchObject({ filename: 'file', bytes: 3 })
  for (const one of ['http://127.0.0.1:1/x', 'file:///etc/passwd', `http://127.0.0.1:${port}/absent`]) {
    const refused = await app.fetch('/v1/files', { body: { url: one, purpose: 'batch' } })
    expect([one, refused.status, (await jsonOf(refused)).error.param]).toEqual([one, 400, 'url'])
  }
  for (const query of ['limit=0', 'limit=10001', 'order=x', 'after=job_1', 'purpose=x']) {
    const refused = await app.fetch(`/v1/files?${query}`)
    expect([query, refused.status, (await jsonOf(refused)).error.param]).toEqual([query, 400, query.split('=')[0]])
  }
})

test('50 uploads at once at the limit of a day: 6 are stored, 44 are refused, and so is an upload in parts', async () => {
  const { secret } = await makeOrganization(app, { organization: { uploadsPerDay: 6 } })
  const answers = await Promise.all(Array.from({ length: 50 }, () => upload({ token: secret })))
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(6)
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(44)
  const list = (await (await app.fetch('/v1/files', { token: secret })).json()) as {
    data: unknown[]
  }
  expect(list.data).toHaveLength(6)
  const body = { bytes: 5, filename: 'a', mime_type: 'text/plain', purpose: 'user_data' }
  expect((await app.fetch('/v1/uploads', { body, token: secret })).status).toBe(429)
})

test('an organization may not promise more bytes than it may store', async () => {
  const { secret } = await makeOrganization(app, { organization: { storedBytes: 1000 } })
  const create = (bytes: number) =>
    app.fetch('/v1/uploads', {
      body: { bytes, filename: 'a', mime_type: 'text/plain', purpose: 'user_data' },
      token: secret,
    })
  const first = await create(600)
  expect(first.status).toBe(200)
  const second = await create(600)
  expect([second.status, (await jsonOf(second)).error.code]).toEqual([403, 'storage_full'])
  const { id } = await jsonOf(first)
  const part = new FormData()
  part.append('data', new Blob(['x'.repeat(601)]), 'part')
  const large = await fetch(`${app.url}/v1/uploads/${id}/parts`, {
    method: 'POST',
    body: part,
    headers: { authorization: `Bearer ${secret}` },
  })
  expect([large.status, (await jsonOf(large)).error.code]).toEqual([413, 'payload_too_large'])
  expect((await app.fetch(`/v1/uploads/${id}/cancel`, { method: 'POST', token: secret })).status).toBe(200)
  expect((await create(1000)).status).toBe(200)
})

test('an upload that is cut in the middle leaves nothing', async () => {
  const before = onDisk()
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `POST /v1/files HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${app.secret}\r\n` +
      'Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 9000000\r\n\r\n' +
      '--b\r\nContent-Disposition: form-data; name="file"; filename="cut.bin"\r\n\r\n' +
      'x'.repeat(1_000_000),
  )
  await expect.poll(() => onDisk().length).toBeGreaterThan(before.length)
  socket.destroy()
  await expect.poll(onDisk).toEqual(before)
})

test('an expired file is gone for every reader at once, before the sweep', async () => {
  const file = await addRow({ purpose: 'upload', apiPurpose: 'user_data', expiresAt: Date.now() - 1 })
  expect((await read(file.id)).status).toBe(404)
  expect((await read(`${file.id}/content`)).status).toBe(404)
  expect((await app.fetch(`/v1/files/${file.id}`, { method: 'DELETE' })).status).toBe(404)
  expect(await (await app.fetch('/v1/files')).text()).not.toContain(file.id)
})

/** Adds only the row of a file. */
async function addRow(file: Partial<NewFile>): Promise<FileRecord> {
  const store = await openAdminStore(app.dataDir, openLog('error'))
  try {
    return await store.files.add(newFile({ organizationId: app.organizationId, ...file }))
  } finally {
    await store.close()
  }
}
