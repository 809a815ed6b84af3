import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStoredKeys } from '../../../../core/accounts/keys.ts'
import { type FileUrls, openFileUrls } from '../../../../core/files/address.ts'
import { newId } from '../../../../core/ids.ts'
import { startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
let addresses: FileUrls
const day = 86_400_000
beforeAll(async () => {
  app = await startApp({ limits: { upload_size: '8MiB', write_deadline: '400ms' } })
  // The keys of this installation, so that addresses can be made without a job that makes a file.
  addresses = openFileUrls(openStoredKeys(app.dataDir).links)
})
afterAll(() => app[Symbol.asyncDispose]())

interface Answer {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** Sends the path unchanged on a socket: `fetch` would normalize it and refuse some headers. */
async function ask(method: string, path: string, headers: Record<string, string> = {}, body?: Uint8Array) {
  const { hostname, port } = new URL(app.url)
  const sent = request({ hostname, port, method, path, headers, agent: false })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) } as Answer
}
const codeOf = ({ body }: Answer) => (JSON.parse(String(body)) as { error: { code: string } }).error.code
const pathOf = (address: string) => address.slice(app.url.length)

function upload({ name = 'cat.png', contentType = 'image/png', keptMs = day } = {}) {
  const id = newId('file')
  const uploadRequest = { id, organizationId: app.organizationId, name, contentType, keptMs }
  return {
    id,
    put: pathOf(addresses.upload(uploadRequest, app.url, day)),
    get: pathOf(addresses.read({ id, name }, app.url, day)),
  }
}
async function stored(bytes: Uint8Array, facts: Parameters<typeof upload>[0] = {}) {
  const file = upload(facts)
  const answer = await ask('PUT', file.put, {}, bytes)
  expect([answer.status, String(answer.body)]).toEqual([200, expect.any(String)])
  return file
}
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

test('an upload to a signed address can be read at another, without a token', async () => {
  const bytes = randomBytes(700_001)
  const { id, put, get } = upload({ name: 'Käse 猫 (1).png' })
  const sent = await ask('PUT', put, { 'content-type': 'application/x-whatever' }, bytes)
  expect([sent.status, JSON.parse(String(sent.body))]).toEqual([
    200,
    { id, name: 'Käse 猫 (1).png', content_type: 'image/png', bytes: 700_001, sha256: sha256(bytes) },
  ])
  const read = await ask('GET', get)
  expect(read.status).toBe(200)
  expect(read.body.equals(bytes)).toBe(true)
  expect(read.headers).toMatchObject({
    'content-type': 'image/png',
    'content-length': '700001',
    'accept-ranges': 'bytes',
    etag: `"${sha256(bytes)}"`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'content-disposition': `inline; filename="K_se _ _1_.png"; filename*=UTF-8''K%C3%A4se%20%E7%8C%AB%20%281%29.png`,
    'access-control-allow-origin': '*',
    'cache-control': expect.stringMatching(/^private, max-age=8[0-6]\d{3}$/) as string,
    'x-request-id': expect.stringMatching(/^req_/) as string,
  })
})

test.each([
  ['bytes=0-9', 206, 'bytes 0-9/1000', [0, 10]],
  ['bytes=990-', 206, 'bytes 990-999/1000', [990, 1000]],
  ['bytes=-10', 206, 'bytes 990-999/1000', [990, 1000]],
  ['bytes=-5000', 206, 'bytes 0-999/1000', [0, 1000]],
  ['bytes=500-5000', 206, 'bytes 500-999/1000', [500, 1000]],
  ['bytes=1000-', 416, 'bytes */1000', [0, 0]],
  ['bytes=-0', 416, 'bytes */1000', [0, 0]],
  ['bytes=9-1', 200, undefined, [0, 1000]],
  ['bytes=0-1,5-6', 200, undefined, [0, 1000]],
  ['lines=0-1', 200, undefined, [0, 1000]],
])('Range: %s is answered with %i', async (range, status, contentRange, [from, to]) => {
  const bytes = randomBytes(1000)
  const { get } = await stored(bytes)
  const answer = await ask('GET', get, { range })
  expect([answer.status, answer.headers['content-range'], answer.headers['content-length']]).toEqual([
    status,
    contentRange,
    String(to! - from!),
  ])
  expect(answer.body.equals(bytes.subarray(from, to))).toBe(true)
})

test('HEAD answers like GET, and ignores ranges', async () => {
  const { get } = await stored(randomBytes(1000))
  const { headers } = await ask('GET', get)
  const head = await ask('HEAD', get, { range: 'bytes=0-9' })
  expect([head.status, head.body.length]).toEqual([200, 0])
  for (const name of ['content-length', 'content-type', 'etag', 'accept-ranges', 'content-disposition'])
    expect(head.headers[name]).toBe(headers[name])
})

test('a reader that has the file gets 304, and a range of another version is the whole of this one', async () => {
  const { get } = await stored(randomBytes(1000))
  const etag = (await ask('HEAD', get)).headers.etag!
  const fresh = await ask('GET', get, { 'if-none-match': `"x", W/${etag}` })
  expect([fresh.status, fresh.body.length, fresh.headers.etag]).toEqual([304, 0, etag])
  expect((await ask('GET', get, { 'if-none-match': '"x"' })).status).toBe(200)
  expect((await ask('GET', get, { range: 'bytes=0-9', 'if-range': etag })).status).toBe(206)
  expect((await ask('GET', get, { range: 'bytes=0-9', 'if-range': '"x"' })).status).toBe(200)
})

test('a signed address with a second expiry time is refused', async () => {
  const { get } = await stored(Buffer.from('x'))
  expect((await ask('GET', get)).status).toBe(200)
  for (const more of ['&exp=99999999999', '&sig=x']) {
    const refused = await ask('GET', `${get}${more}`)
    expect([refused.status, codeOf(refused)]).toEqual([400, 'invalid_value'])
  }
})

test('without its signature a file looks like one that does not exist', async () => {
  const { id } = await stored(Buffer.from('x'))
  const foreign = newId('file')
  const seen = new Set<string>()
  for (const one of [id, foreign]) {
    const other = new URL(addresses.read({ id: newId('file'), name: 'cat.png' }, app.url, day))
    const past = new URL(addresses.read({ id: one, name: 'cat.png' }, app.url, day, Date.now() - 2 * day))
    for (const query of ['', '?exp=1&sig=', other.search, past.search]) {
      const answer = await ask('GET', `/files/${one}/cat.png${query}`, { authorization: `Bearer ${app.secret}` })
      expect([answer.status, codeOf(answer)]).toEqual([403, 'invalid_signature'])
      seen.add(String(answer.body).replace(/req_\w+/, ''))
    }
  }
  expect(seen.size).toBe(1)
})

test('an expired file is 410, one that never existed is 404', async () => {
  const { get } = await stored(Buffer.from('x'), { keptMs: 0 })
  const gone = await ask('GET', get)
  expect([gone.status, codeOf(gone)]).toEqual([410, 'output_expired'])
  const never = await ask('GET', upload().get)
  expect([never.status, codeOf(never)]).toEqual([404, 'not_found'])
})

test('no path leads out of the folder of files', async () => {
  const { id, get } = await stored(Buffer.from('x'))
  const query = get.slice(get.indexOf('?'))
  const secrets = ['root-token', 'master-key', 'infer.yaml'].map(name =>
    readFileSync(join(app.dataDir, name), 'utf8').trim(),
  )
  const up = ['..', '%2e%2e', '%252e%252e', '..%2f', '..%5c', '%c0%ae%c0%ae', '....//', '%00', '\\..', '.%00.', '%']
  const paths = up.flatMap(step => [
    `/files/${step}/${step}/etc/passwd${query}`,
    `/files/${step}${query}`,
    `/files/${step}/cat.png${query}`,
    `/files/${id}${step}/cat.png${query}`,
    `/files/${id}/${step}/${step}/root-token${query}`,
    `/files/incoming/${step}${query}`,
    `/files/${app.organizationId}/${id}.png${query}`,
    `/files/${step}/master-key${query}`,
  ])
  for (const path of paths) {
    const { status, body } = await ask('GET', path)
    // `/files/..` is `/` for every URL parser: it must not be a stored file.
    expect([path, status < 500]).toEqual([path, true])
    for (const own of secrets) expect(String(body)).not.toContain(own)
  }
  // The name is for the program that saves the file: any is accepted, and none is looked up.
  expect(String((await ask('GET', `/files/${id}/..%2f..%2froot-token${query}`)).body)).toBe('x')
})

test.each(['text/html', 'image/svg+xml', 'application/javascript', 'text/xml', ''])(
  'an upload with the type %j is served as bytes',
  async contentType => {
    const { get } = await stored(Buffer.from('<script>alert(1)</script>'), { contentType, name: 'x.html' })
    expect((await ask('GET', get)).headers['content-type']).toBe('application/octet-stream')
  },
)

test('an upload is accepted once, as signed, and within the size limit', async () => {
  const { put, get } = upload()
  const changed = put.replace('image%2Fpng', 'video%2Fmp4')
  expect(changed).not.toBe(put)
  expect(codeOf(await ask('PUT', changed, {}, Buffer.from('x')))).toBe('invalid_signature')
  expect(codeOf(await ask('PUT', put.replace('cat.png', 'dog.png'), {}, Buffer.from('x')))).toBe('invalid_signature')
  const large = Buffer.alloc((8 << 20) + 1)
  const announced = await ask('PUT', put, {}, large)
  expect([announced.status, codeOf(announced)]).toEqual([413, 'payload_too_large'])
  const chunked = await ask('PUT', put, { 'transfer-encoding': 'chunked' }, large)
  expect([chunked.status, codeOf(chunked)]).toEqual([413, 'payload_too_large'])
  expect((await ask('PUT', put, {}, Buffer.from('first'))).status).toBe(200)
  const again = await ask('PUT', put, {}, Buffer.from('second'))
  expect([again.status, codeOf(again)]).toEqual([409, 'conflict'])
  expect(String((await ask('GET', get)).body)).toBe('first')
})

test('an interrupted upload leaves no file, and can be repeated', async () => {
  const { put, get } = upload()
  const { hostname, port } = new URL(app.url)
  const incoming = () => readdirSync(join(app.dataDir, 'files', 'incoming')).length
  const socket = connect(Number(port), hostname)
  socket.write(`PUT ${put} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-length: 100000\r\n\r\nhalf`)
  await expect.poll(incoming).toBe(1)
  socket.destroy()
  await expect.poll(incoming).toBe(0)
  expect((await ask('GET', get)).status).toBe(404)
  expect((await ask('PUT', put, {}, Buffer.from('whole'))).status).toBe(200)
})

test('a file uploaded in parts consists of the listed parts, in their order', async () => {
  const { put, get, id } = upload()
  const [path, query] = put.split('?')
  const part = (number: number | string, bytes: string | Uint8Array, search = query) =>
    ask('PUT', `${path}/${number}?${search}`, {}, Buffer.from(bytes))
  const complete = (parts: unknown, search = query) =>
    ask(
      'POST',
      `${path}/complete?${search}`,
      { 'content-type': 'application/json' },
      Buffer.from(JSON.stringify({ parts })),
    )
  const incoming = () => readdirSync(join(app.dataDir, 'files', 'incoming')).length

  expect(codeOf(await part(1, 'x', `${query}0`))).toBe('invalid_signature')
  expect(codeOf(await complete([{ partNumber: 1 }], `${query}0`))).toBe('invalid_signature')
  for (const number of [0, 10_001, -1, 'x', '1e1', '%2e%2e'])
    expect([number, (await part(number, 'x')).status]).toEqual([
      number,
      expect.toSatisfy((code: number) => code >= 400),
    ])
  expect(codeOf(await complete([{ partNumber: 1 }]))).toBe('invalid_value')

  const second = await part(2, 'second')
  expect([second.status, JSON.parse(String(second.body))]).toEqual([
    200,
    { partNumber: 2, etag: sha256(Buffer.from('second')) },
  ])
  await part(1, 'draft')
  await part(1, 'first ')
  await part(3, 'unused')
  expect(incoming()).toBe(3)
  const drafted = [{ partNumber: 1, etag: sha256(Buffer.from('draft')) }]
  for (const wrong of [drafted, [], [{ partNumber: 7 }], 'x', undefined])
    expect(codeOf(await complete(wrong))).toMatch(/^(invalid_|missing_)/)
  // The limit of a file holds for the sum of its parts.
  expect(codeOf(await part(4, Buffer.alloc((8 << 20) - 17)))).toBe('payload_too_large')

  const whole = await complete([{ partNumber: 1 }, { partNumber: 2, etag: sha256(Buffer.from('second')) }])
  expect([whole.status, JSON.parse(String(whole.body))]).toMatchObject([200, { id, bytes: 12 }])
  expect(String((await ask('GET', get)).body)).toBe('first second')
  await expect.poll(incoming).toBe(0)
  expect((await complete([{ partNumber: 1 }])).status).toBe(400)
})

test('a page of any origin may read and upload: the preflight allows it', async () => {
  const { put } = upload()
  const answer = await ask('OPTIONS', put, {
    origin: 'https://app.example',
    'access-control-request-method': 'PUT',
    'access-control-request-headers': 'content-type',
  })
  expect([answer.status, answer.body.length]).toEqual([204, 0])
  expect(answer.headers).toMatchObject({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'GET, HEAD, PUT, POST',
    'access-control-allow-headers': expect.stringContaining('range') as string,
  })
  expect((await ask('DELETE', put)).status).toBe(405)
})

test('a reader that does not read is cut at the write deadline, a slow one is not', async () => {
  const bytes = randomBytes(8 << 20)
  const { get } = await stored(bytes)
  const { hostname, port } = new URL(app.url)
  const socket = connect(Number(port), hostname).pause()
  socket.write(`GET ${get} HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)
  const cutBy = performance.now() + 10_000
  // Metrics count the responses under way without reading from the socket.
  const requests = async () => Number(/^infer_streams (\d+)/m.exec(await (await app.fetch('/metrics')).text())?.[1])
  await expect.poll(requests).toBe(1)
  await expect.poll(requests).toBe(0)
  expect(performance.now()).toBeLessThan(cutBy)
  socket.destroy()

  const sent = request({ hostname, port, path: get, agent: false })
  sent.end()
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let taken = 0
  for await (const chunk of response) {
    taken += (chunk as Buffer).length
    // Slower than the disk by far, but never idle for as long as the deadline.
    if (taken % (1 << 20) < 65_536) await new Promise(resolve => setTimeout(resolve, 60))
  }
  expect(taken).toBe(bytes.length)
})
