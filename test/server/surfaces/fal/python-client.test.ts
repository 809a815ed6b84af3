import { request } from 'node:http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

/** The requests of fal's Python client 1.0.3, in its order and form. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({
    models: [
      fakeModel('acme/dream', [], { tasks: ['slug/text-to-image'], slug: 'dream/fast' }),
      fakeModel('acme/animate', [], { tasks: ['slug/image-to-image'], slug: 'animate/image' }),
    ],
    allowed_hosts: [
      'fal.run',
      'queue.fal.run',
      'rest.fal.ai',
      'v3.fal.media',
      'gpu.example.com',
      'queue.gpu.example.com',
    ],
  })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Answer {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  // oxlint-disable-next-line no-explicit-any
  body: any
}

/** Sends a request under a host name of fal, as its client does where DNS resolves that name to this server. */
function send(
  method: string,
  url: string,
  {
    body,
    headers = {},
    token = app.secret,
  }: { body?: unknown; headers?: Record<string, string>; token?: string | null } = {},
): Promise<Answer> {
  const { host, pathname, search } = new URL(url)
  const { hostname, port } = new URL(app.url)
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: hostname,
        port,
        method,
        path: pathname + search,
        headers: {
          host,
          ...(token === null ? {} : { authorization: `Key ${token}` }),
          ...(body === undefined || Buffer.isBuffer(body) ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
      },
      response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          let read: unknown
          try {
            read = JSON.parse(text)
          } catch {
            read = undefined
          }
          resolve({ status: response.statusCode!, headers: response.headers, text, body: read })
        })
      },
    )
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : Buffer.isBuffer(body) ? body : JSON.stringify(body))
  })
}

const inputs = { prompt: 'a cat', image_size: { width: 64, height: 64 } }
/** An image that a model generates, as bytes. */
async function picture(): Promise<Buffer> {
  const made = await send('POST', 'https://fal.run/dream/fast', { body: inputs })
  const response = await fetch(
    app.url + new URL(made.body.images[0].url).pathname + new URL(made.body.images[0].url).search,
  )
  return Buffer.from(await response.arrayBuffer())
}

test.each(['https://fal.run', 'https://gpu.example.com', 'https://gpu.example.com/fal/run'])(
  'run at %s',
  async root => {
    const { status, body } = await send('POST', `${root}/dream/fast`, { body: inputs })
    expect([status, body.prompt]).toEqual([200, 'a cat'])
  },
)

test.each(['https://queue.fal.run', 'https://queue.gpu.example.com', 'https://gpu.example.com/fal/queue'])(
  'submit, status and result at %s, at the returned addresses and at those that the client builds',
  async root => {
    const submitted = await send('POST', `${root}/dream/fast`, { body: inputs })
    expect([submitted.status, submitted.body.status]).toEqual([200, 'IN_QUEUE'])
    const { request_id, status_url, response_url } = submitted.body
    await expect.poll(async () => (await send('GET', `${status_url}?logs=False`)).body.status).toBe('COMPLETED')
    expect((await send('GET', response_url)).body.prompt).toBe('a cat')
    expect((await send('GET', `${root}/dream/fast/requests/${request_id}`)).body.prompt).toBe('a cat')
    expect((await send('GET', `${root}/dream/fast/requests/${request_id}/status?logs=True`)).body.status).toBe(
      'COMPLETED',
    )
    const cancelled = await send('PUT', `${root}/dream/fast/requests/${request_id}/cancel`)
    expect([cancelled.status, cancelled.body.status]).toEqual([400, 'ALREADY_COMPLETED'])
  },
)

test.each([
  ['GET', 'https://gpu.example.com/dream/fast', 404],
  ['GET', 'https://gpu.example.com/std/v1/models', 200],
  ['GET', 'https://queue.gpu.example.com/std/v1/models', 200],
  ['GET', 'https://fal.run/api/me', 200],
  ['GET', 'https://fal.run/livez', 200],
  ['POST', 'http://127.0.0.1/dream/fast', 404],
  ['POST', 'https://evil.example.com/dream/fast', 421],
])('%s %s: %i', async (method, url, status) => {
  expect((await send(method, url, method === 'POST' ? { body: inputs } : {})).status).toBe(status)
})

test('two-part names count as fal’s only where both parts are listed', async () => {
  await using other = await startApp({ models: [], allowed_hosts: ['gpu.example.com'] })
  const { hostname, port } = new URL(other.url)
  const status = await new Promise(resolve =>
    request(
      { host: hostname, port, method: 'POST', path: '/dream/fast', headers: { host: 'gpu.example.com' } },
      response => resolve(response.resume().statusCode),
    ).end(),
  )
  expect(status).toBe(404)
})

test('the prefix fal-ai/ is dropped where it names no model', async () => {
  for (const root of ['https://fal.run/fal-ai', 'https://gpu.example.com/fal/run/fal-ai'])
    expect((await send('POST', `${root}/dream/fast`, { body: inputs })).status).toBe(200)
  const queued = await send('POST', 'https://queue.fal.run/fal-ai/dream/fast', { body: inputs })
  expect(queued.status).toBe(200)
  const streamed = await send('POST', 'https://fal.run/fal-ai/dream/fast/stream', { body: inputs })
  expect(streamed.headers['content-type']).toContain('text/event-stream')
  const unknown = await send('POST', 'https://fal.run/fal-ai/dream/fats', { body: inputs })
  expect([unknown.status, unknown.body.detail]).toEqual([
    404,
    expect.stringMatching(/^There is no model with the slug 'fal-ai\/dream\/fats'\. Did you mean .*'dream\/fast'/),
  ])
  // Other APIs name models unchanged.
  expect((await app.fetch('/slug/fal-ai/dream/fast', { body: inputs })).status).toBe(404)
})

const rest = 'https://rest.fal.ai'
const cdn = 'https://v3.fal.media'
const authorize = async () =>
  (await send('POST', `${rest}/storage/auth/token?storage_type=fal-cdn-v3`, { body: {} })).body

test('the default upload: a storage token, then the bytes', async () => {
  const { token, token_type, base_url, expires_at } = await authorize()
  expect(token).not.toContain(app.secret)
  // Python before 3.11 cannot parse Z.
  expect(expires_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/)
  expect(Date.parse(expires_at) - Date.now()).toBeGreaterThan(60_000)
  expect(base_url).toBe('http://rest.fal.ai/fal/cdn')
  const png = await picture()
  const headers = {
    authorization: `${token_type} ${token}`,
    'content-type': 'image/png',
    'x-fal-file-name': 'cat.png',
    'x-fal-object-lifecycle': '{"expiration_duration_seconds": 3600}',
  }
  for (const root of [cdn, base_url]) {
    const sent = await send('POST', `${root}/files/upload`, { body: png, headers, token: null })
    expect([sent.status, sent.body]).toEqual([200, { access_url: expect.stringContaining('/cat.png') as string }])
    const address = new URL(sent.body.access_url as string)
    expect(`${address.origin}${address.pathname}`).toMatch(/^http:\/\/(v3\.fal\.media|rest\.fal\.ai)\/files\/file-/)
    const read = await fetch(app.url + address.pathname + address.search)
    expect([read.headers.get('content-type'), Buffer.from(await read.arrayBuffer()).equals(png)]).toEqual([
      'image/png',
      true,
    ])
    // Whichever host name of this server the address has, it is a stored file and never fetched.
    const edit = { prompt: 'a dog', image_url: address.href }
    expect((await send('POST', 'https://fal.run/animate/image', { body: edit })).status).toBe(200)
  }
})

test('a large file is uploaded in parts', async () => {
  const { token, token_type, base_url } = await authorize()
  const authorization = `${token_type} ${token}`
  const begun = await send('POST', `${base_url}/files/upload/multipart`, {
    headers: { authorization, 'content-type': 'image/png', 'x-fal-file-name': 'cat.png' },
    token: null,
  })
  const { access_url, uploadId } = begun.body
  expect(begun.status).toBe(200)
  const png = await picture()
  const half = png.length >> 1
  const parts = []
  for (const [at, body] of [png.subarray(0, half), png.subarray(half)].entries()) {
    const sent = await send('PUT', `${access_url}/multipart/${uploadId}/${at + 1}`, {
      body,
      headers: { authorization },
      token: null,
    })
    expect(sent.status).toBe(200)
    // In the order in which the parts were received, which the client's threads do not keep.
    parts.unshift({ partNumber: at + 1, etag: sent.headers.etag })
  }
  const complete = `${access_url}/multipart/${uploadId}/complete`
  expect((await send('POST', complete, { body: { parts }, headers: { authorization }, token: null })).status).toBe(200)
  const { pathname, search } = new URL(access_url as string)
  const read = await fetch(app.url + pathname + search)
  expect([read.headers.get('content-type'), Buffer.from(await read.arrayBuffer()).equals(png)]).toEqual([
    'image/png',
    true,
  ])
  const edit = { prompt: 'a dog', image_url: access_url as string }
  expect((await send('POST', 'https://fal.run/animate/image', { body: edit })).status).toBe(200)
})

test.each([
  ['no token', undefined],
  ['the token of the API', () => `Bearer ${app.secret}`],
  [
    'a token that was changed',
    async () => `Bearer ${String((await authorize()).token).replace(/.$/, last => (last === 'A' ? 'B' : 'A'))}`,
  ],
  ['no token at all', () => 'Bearer org_.1.x'],
])('the storage refuses %s', async (_, authorization) => {
  const headers = { 'content-type': 'image/png', ...(authorization ? { authorization: await authorization() } : {}) }
  for (const path of ['/files/upload', '/files/upload/multipart'])
    expect((await send('POST', cdn + path, { body: Buffer.from('x'), headers, token: null })).status).toBe(401)
})

test.each(['/multipart/AAAA/1', '/multipart/../1', '/multipart//1', '/other'])(
  'a file has no upload at %s',
  async tail => {
    const { token, token_type } = await authorize()
    const headers = { authorization: `${token_type} ${token}` }
    const sent = await send('POST', `${cdn}/files/upload`, { body: Buffer.from('x'), headers, token: null })
    const { status } = await send('PUT', `${sent.body.access_url}&to=${tail}`, { body: Buffer.from('y'), token: null })
    expect([403, 400]).toContain(status)
  },
)
