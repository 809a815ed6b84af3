import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer as createSocketServer, type Server as SocketServer } from 'node:net'
import { createFalClient } from '@fal-ai/client'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryView } from '../../core/webhooks/webhook-view.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'
import { openReceiver, type Received, type Receiver } from '../_receiver.ts'

/** The receiver may be sent to; the canary on another address of this machine may not. */
let app: TestApp
let receiver: Receiver
let canary: SocketServer
let connections = 0
let canaryPort: number
const slug = 'acme/dream/text-to-image'

beforeAll(async () => {
  canary = createSocketServer(socket => {
    connections++
    socket.destroy()
  }).listen(0, '127.0.0.2')
  await once(canary, 'listening')
  canaryPort = (canary.address() as AddressInfo).port
  receiver = await openReceiver(({ path }, response) => {
    const [, to] = /^\/redirect\?to=(.*)$/.exec(path) ?? []
    if (to === undefined) return false
    response.writeHead(302, { location: decodeURIComponent(to) }).end()
    return true
  })
  app = await startApp({
    models: [fakeModel('acme/dream', [], { tasks: ['slug/text-to-image'], concurrency: 2 }), fakeModel('fake')],
    webhooks: { allowed_addresses: ['127.0.0.1'], retry_delays: [] },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  canary.close()
})

const inputs = { prompt: 'a cat', image_size: { width: 64, height: 64 } }
const post = async (path: string, headers: Record<string, string> = {}, body: object = inputs) => {
  const response = await app.fetch(path, { body, headers })
  return {
    status: response.status,
    body: (await response.json()) as { request_id: string; error: Refusal; detail: unknown },
  }
}
interface Refusal {
  code: string
  param: string
  message: string
}
const at = (path: string) => (received: Received) => received.path === path
const hook = (path: string) => encodeURIComponent(receiver.url + path)

/** Verifies as fal documents it: Ed25519 over four lines, with any key of the set. */
async function verifyFal({ headers, text }: Received, keysAt = '/fal/rest/.well-known/jwks.json'): Promise<boolean> {
  const { keys } = (await (await app.fetch(keysAt, { token: null })).json()) as { keys: { x: string }[] }
  const [id, user, timestamp, signature] = ['request-id', 'user-id', 'timestamp', 'signature'].map(
    name => headers[`x-fal-webhook-${name}`] as string,
  )
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false
  const digest = createHash('sha256').update(text).digest('hex')
  const message = Buffer.from([id, user, timestamp, digest].join('\n'))
  return keys.some(({ x }) =>
    verifySignature(
      null,
      message,
      createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
      Buffer.from(signature!, 'hex'),
    ),
  )
}

describe("fal's form", () => {
  test("fal's client with webhookUrl: body and signature are fal's", async () => {
    const client = createFalClient({
      credentials: app.secret,
      proxyUrl: { url: `${app.url}/fal/proxy`, when: 'always' },
    })
    const submitted = await client.queue.submit(slug, { input: inputs, webhookUrl: `${receiver.url}/fal/1` })
    const message = await receiver.next(at('/fal/1'))
    const { payload, ...rest } = JSON.parse(message.text) as { payload: object }
    const id = submitted.request_id
    expect(rest).toEqual({ request_id: id, gateway_request_id: id, status: 'OK', error: null })
    expect(message.headers).toMatchObject({
      'x-fal-webhook-request-id': id,
      'x-fal-webhook-user-id': app.organizationId,
      'content-type': 'application/json',
    })
    expect(await verifyFal(message)).toBe(true)
    expect(await verifyFal(message, '/.well-known/jwks.json')).toBe(true)
    expect(await verifyFal({ ...message, text: `${message.text} ` })).toBe(false)
    const { data } = await client.queue.result(slug, { requestId: id })
    const withoutUrls = (value: object) => JSON.stringify(value).replaceAll(/"[^"]*\/files\/[^"]*"/g, '""')
    expect(withoutUrls(payload)).toBe(withoutUrls(data as object))
  })

  test('a request that failed or was cancelled is an ERROR with its detail', async () => {
    const failed = await post(
      `/fal/queue/${slug}?fal_webhook=${hook('/fal/2')}`,
      {},
      { ...inputs, prompt: 'mode:failed' },
    )
    const message = await receiver.next(at('/fal/2'))
    expect(JSON.parse(message.text)).toMatchObject({
      request_id: failed.body.request_id,
      status: 'ERROR',
      error: expect.any(String),
      payload: { detail: expect.anything() },
    })
    expect(await verifyFal(message)).toBe(true)
    const hanging = await post(`/slug/${slug}?fal_webhook=${hook('/fal/3')}`, {}, { ...inputs, prompt: 'mode:hang' })
    await app.fetch(`/slug/requests/${hanging.body.request_id}/cancel`, { method: 'PUT' })
    expect(JSON.parse((await receiver.next(at('/fal/3'))).text)).toMatchObject({
      request_id: hanging.body.request_id,
      status: 'ERROR',
    })
  })
})

describe('slugs', () => {
  test.each([
    ['?webhook_url=', `/slug/${slug}?webhook_url=`, false],
    ['the queue with ?webhook_url=', `/slug/queue/submit/${slug}?webhook_url=`, false],
    ['X-Webhook-Url', `/slug/${slug}`, true],
  ])('with %s: the end is sent in the standard form', async (_, path, header) => {
    const own = `/slug/${Math.random()}`
    const { body, status } = await post(
      header ? path : path + hook(own),
      header ? { 'x-webhook-url': receiver.url + own } : {},
    )
    expect(status).toBe(202)
    const message = await receiver.next(at(own))
    expect([message.body.type, message.body.data.queue_id]).toEqual(['job.completed', body.request_id])
    const response = await app.fetch(`/api/organizations/${app.organizationId}/webhook-secret`)
    const { signing_secret } = (await response.json()) as { signing_secret: string }
    new Webhook(signing_secret).verify(message.text, message.headers as Record<string, string>)
  })

  test('two webhooks are refused', async () => {
    const both = await post(`/slug/${slug}?webhook_url=${hook('/a')}&fal_webhook=${hook('/b')}`)
    expect([both.status, both.body.error.param]).toEqual([400, 'fal_webhook'])
  })
})

const dag = { nodes: { a: { model_id: 'fake', task: 'std/embeddings', inputs: { input: 'x' } } }, edges: [] }
let workflowId: string
/** Every field that takes the URL of a webhook, as a request. */
const fields: Record<string, { param: string; send: (url: string) => ReturnType<typeof post> }> = {
  'POST /api/jobs': {
    param: 'webhook_url',
    send: url =>
      post('/api/jobs', {}, { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'x' }, webhook_url: url }),
  },
  'POST /api/workflows/run': {
    param: 'webhook_url',
    send: url => post('/api/workflows/run', {}, { dag, webhook_url: url }),
  },
  'POST /api/workflows/{id}/execute': {
    param: 'webhook_url',
    send: url => post(`/api/workflows/${workflowId}/execute`, {}, { webhook_url: url }),
  },
  '/slug ?webhook_url=': {
    param: 'webhook_url',
    send: url => post(`/slug/${slug}?webhook_url=${encodeURIComponent(url)}`),
  },
  '/slug ?fal_webhook=': {
    param: 'fal_webhook',
    send: url => post(`/slug/${slug}?fal_webhook=${encodeURIComponent(url)}`),
  },
  '/slug X-Webhook-Url': { param: 'X-Webhook-Url', send: url => post(`/slug/${slug}`, { 'x-webhook-url': url }) },
  '/fal/queue ?fal_webhook=': {
    param: 'fal_webhook',
    send: url => post(`/fal/queue/${slug}?fal_webhook=${encodeURIComponent(url)}`),
  },
  '/fal/run ?fal_webhook=': {
    param: 'fal_webhook',
    send: url => post(`/fal/run/${slug}?fal_webhook=${encodeURIComponent(url)}`),
  },
  'POST /api/webhooks': {
    param: 'url',
    send: url => post('/api/webhooks', {}, { name: 'n', url, event_types: ['job.completed'] }),
  },
  'POST /std/v1/webhook_endpoints': {
    param: 'url',
    send: url => post('/std/v1/webhook_endpoints', {}, { name: 'n', url, event_types: ['job.completed'] }),
  },
}

describe.each(Object.keys(fields))('the URL of %s', name => {
  const { param, send } = fields[name]!

  test.each([
    'http://127.0.0.2:PORT/',
    'http://127.2:PORT/',
    'http://2130706434:PORT/',
    'http://0x7f000002:PORT/',
    'http://[::1]:PORT/',
    'http://[::ffff:127.0.0.2]:PORT/',
    'http://169.254.169.254/latest/meta-data/',
    'http://168.63.129.16/',
    'http://user:password@example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    '//example.com/x',
    'no url',
  ])('is refused by name: %s', async form => {
    workflowId ??= (
      (await (await app.fetch('/api/workflows', { body: { name: 'w', dag } })).json()) as { workflow: { id: string } }
    ).workflow.id
    const { status, body } = await send(form.replace('PORT', String(canaryPort)))
    expect([400, 422]).toContain(status)
    expect(body.error).toMatchObject({ code: 'invalid_value', param })
    expect(body.error.message).toContain(`'${param}' must be an http or https URL`)
  })
})

describe('names are checked when a message is sent', () => {
  const deadOf = async (url: string): Promise<DeliveryView | undefined> => {
    const response = await app.fetch('/api/webhook-deliveries?status=dead&limit=50')
    const { deliveries } = (await response.json()) as { deliveries: DeliveryView[] }
    return deliveries.find(one => one.url === url)
  }

  test.each(['localhost', 'localhost.', 'LOCALHOST'])('%s resolves to an address that is not allowed', async host => {
    // The canary listens where the name could lead, on the port that it is asked for.
    const url = `http://${host}:${canaryPort}/${Math.random()}`
    const { status } = await fields['POST /api/jobs']!.send(url)
    expect(status).toBe(202)
    await expect.poll(async () => (await deadOf(url))?.error).toContain('could not be reached')
    expect((await deadOf(url))!.response_body).toBeNull()
  })

  test('a redirect to it is not followed', async () => {
    const url = `${receiver.url}/redirect?to=${encodeURIComponent(`http://127.0.0.2:${canaryPort}/`)}`
    await fields['POST /api/jobs']!.send(url)
    await expect.poll(async () => (await deadOf(url))?.status_code).toBe(302)
  })

  test('none of these requests reached the canary', () => expect(connections).toBe(0))
})
