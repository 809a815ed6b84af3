import OpenAI, { toFile } from 'openai'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DeliveryView, WebhookView } from '../../../../core/webhooks/webhook-view.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { openReceiver, type Received, type Receiver } from '../../../_receiver.ts'
import { makeOrganization } from '../../_organization.ts'
import { badly, openScriptedEngine, type ScriptedEngine, well } from '../../_scripted-engine.ts'

let app: TestApp
let engine: ScriptedEngine
let receiver: Receiver
/** How many more requests to a path fail, and with which status. */
const failing = new Map<string, { times: number; status: number; headers?: Record<string, string> }>()

beforeAll(async () => {
  engine = await openScriptedEngine((seen, response) => {
    const said = String(seen.body.input)
    if (said.startsWith('400')) return badly(response, 400, 'not like this')
    well(seen, response)
  })
  receiver = await openReceiver(({ path }, response) => {
    const script = failing.get(path)
    if (!script || script.times === 0) return false
    script.times -= 1
    response.writeHead(script.status, { 'content-type': 'text/plain', ...script.headers }).end('not now')
    return true
  })
  app = await startApp({
    models: [engine.model('far')],
    webhooks: { allowed_addresses: ['127.0.0.1'], retry_delays: [5, 10, 15] },
  })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

type Body = Record<string, never> & {
  id: string
  error: { code: string; param: string; message: string }
  webhook: WebhookView
  webhooks: WebhookView[]
  signing_secret: string
  deliveries: DeliveryView[]
  delivery: DeliveryView
  success: boolean
}
async function ask(method: string, path: string, body?: unknown, token?: string, headers: Record<string, string> = {}) {
  const response = await app.fetch(path, { method, body, headers, ...(token === undefined ? {} : { token }) })
  return { status: response.status, body: (await response.json()) as Body }
}

let paths = 0
async function register(eventTypes: string[], more: object = {}, token?: string) {
  const path = `/endpoint/${++paths}`
  const url = receiver.url + path
  const { status, body } = await ask(
    'POST',
    '/api/webhooks',
    { name: 'n', url, event_types: eventTypes, ...more },
    token,
  )
  expect([status, body.error]).toEqual([201, undefined])
  return { ...body, path }
}
async function submit(input: string, more: object = {}, token?: string): Promise<string> {
  const inputs = { input }
  const { status, body } = await ask(
    'POST',
    '/api/jobs',
    { task: 'std/embeddings', model_id: 'far', inputs, ...more },
    token,
  )
  expect([status, body.error]).toEqual([202, undefined])
  return body.id
}
const at =
  (path: string, type?: string) =>
  (received: Received): boolean =>
    received.path === path && (type === undefined || received.body.type === type)
const verify = ({ text, headers }: Received, secret: string): unknown =>
  new Webhook(secret).verify(text, headers as Record<string, string>)
const remove = (id: string) => ask('DELETE', `/api/webhooks/${id}`)

describe('messages', () => {
  test('an endpoint gets the events of its types, in order, signed, with the whole object', async () => {
    const { webhook, signing_secret, path } = await register(['job.*'])
    const id = await submit('first')
    const messages = [await receiver.next(at(path)), await receiver.next(at(path)), await receiver.next(at(path))]
    expect(messages.map(({ body }) => [body.object, body.type, body.data.id])).toEqual(
      ['job.created', 'job.started', 'job.completed'].map(type => ['event', type, id]),
    )
    const [, , last] = messages
    expect(last!.body.data).toEqual((await ask('GET', `/api/jobs/${id}`)).body)
    expect(last!.body.id).toMatch(/^evt_\d+$/)
    expect(last!.body.created_at).toBe(Math.floor(Date.parse(last!.body.timestamp) / 1000))
    for (const message of messages) expect(verify(message, signing_secret)).toEqual(message.body)
    const client = new OpenAI({ apiKey: 'x', webhookSecret: signing_secret })
    expect(await client.webhooks.unwrap(last!.text, last!.headers as Record<string, string>)).toEqual(last!.body)
    expect(new Set(messages.map(({ headers }) => headers['webhook-id'])).size).toBe(3)
    await remove(webhook.id)
  })

  test('a job with a webhook of its own: its end is sent, signed with the secret of the organization', async () => {
    const path = '/own/1'
    const id = await submit('own', { webhook_url: receiver.url + path })
    const message = await receiver.next(at(path))
    expect([message.body.type, message.body.data.id]).toEqual(['job.completed', id])
    const { body } = await ask('GET', `/api/organizations/${app.organizationId}/webhook-secret`)
    expect(verify(message, body.signing_secret)).toEqual(message.body)
    expect((await ask('GET', `/api/jobs/${id}`)).body.webhook_url).toBe(receiver.url + path)
  })
})

describe('messages of executions and long objects', () => {
  const dag = {
    nodes: { a: { model_id: 'far', task: 'std/embeddings', inputs: { input: 'node' } } },
    edges: [],
  }

  test('an execution: created, node events and the end in order, with its outputs', async () => {
    const { webhook, path } = await register(['workflow_execution.*'])
    const { body } = await ask('POST', '/api/workflows/run', { dag })
    const { id } = (body as unknown as { execution: { id: string } }).execution
    const types: string[] = []
    let last: Received
    do {
      last = await receiver.next(at(path))
      types.push(last.body.type.slice('workflow_execution.'.length))
      expect(last.body.data.id).toBe(id)
    } while (last.body.type !== 'workflow_execution.completed')
    expect(types).toEqual(
      ['created', 'node.started', 'started', 'node.completed', 'completed'].filter(one => types.includes(one)),
    )
    expect(types).toEqual(expect.arrayContaining(['created', 'node.completed', 'completed']))
    const { execution } = (await ask('GET', `/api/workflow-executions/${id}?include=none`)).body as never as {
      execution: { outputs: { a: object } }
    }
    expect(last.body.data).toEqual(execution)
    await remove(webhook.id)
  })

  test('webhook_url of an execution: its end only, unless webhook_events names others; a retry keeps it', async () => {
    const [usual, chosen] = ['/execution/1', '/execution/2']
    const run = async (more: object) =>
      (
        (await ask('POST', '/api/workflows/run', { dag, ...more })).body as never as {
          execution: { id: string; webhook_url: string }
        }
      ).execution
    const first = await run({ webhook_url: receiver.url + usual })
    expect(first.webhook_url).toBe(receiver.url + usual)
    expect((await receiver.next(at(usual))).body.type).toBe('workflow_execution.completed')
    // Its node reuses the result of the first.
    await run({ webhook_url: receiver.url + chosen, webhook_events: ['workflow_execution.node.*'] })
    expect((await receiver.next(at(chosen, 'workflow_execution.node.cached'))).body.data.node_id).toBe('a')
    await ask('POST', `/api/workflow-executions/${first.id}/retry`, { from: 'start' })
    const again = await receiver.next(at(usual))
    expect([again.body.type, again.body.data.parent_execution_id]).toEqual(['workflow_execution.completed', first.id])
  })

  test('an object of more than 20 kB is replaced by its id and URL', async () => {
    const path = '/own/long'
    const id = await submit('x'.repeat(30_000), { webhook_url: receiver.url + path })
    const { body } = await receiver.next(at(path))
    expect(body.data).toEqual({ id, object: 'job', status: 'completed', url: `${app.url}/api/jobs/${id}` })
  })

  test('webhook_events: a failed job is one, and a retried job has the same webhook', async () => {
    const path = '/own/failed'
    const id = await submit('400', { webhook_url: receiver.url + path, webhook_events: ['job.failed'] })
    const { body } = await receiver.next(at(path))
    expect([body.type, body.data.id, body.data.status]).toEqual(['job.failed', id, 'failed'])
    const retried = (await ask('POST', `/api/jobs/${id}/retry`)).body.id
    expect((await receiver.next(at(path))).body.data.id).toBe(retried)
  })
})

test('a batch sends its end, with the ids of its output files, and nothing about its lines', async () => {
  const { webhook, signing_secret, path } = await register(['job.*', 'batch.*'])
  const client = new OpenAI({ baseURL: `${app.url}/std/v1`, apiKey: app.secret, webhookSecret: signing_secret })
  const line = (input: string) => ({
    custom_id: input,
    method: 'POST',
    url: '/v1/embeddings',
    body: { model: 'far', input },
  })
  const lines = ['one', '400', 'three'].map(input => JSON.stringify(line(input))).join('\n')
  const { id: input_file_id } = await client.files.create({
    file: await toFile(Buffer.from(lines), 'in.jsonl'),
    purpose: 'batch',
  })
  const ended = { endpoint: '/v1/embeddings', completion_window: '24h' } as const
  const created = await client.batches.create({ input_file_id, ...ended })
  const message = await receiver.next(at(path))
  const event = await client.webhooks.unwrap(message.text, message.headers)
  expect(event).toEqual(message.body)
  const batch = await client.batches.retrieve(created.id)
  expect(message.body).toMatchObject({
    object: 'event',
    type: 'batch.completed',
    data: {
      id: batch.id,
      status: 'completed',
      output_file_id: batch.output_file_id,
      error_file_id: batch.error_file_id,
      request_counts: { total: 3, completed: 2, failed: 1 },
    },
  })
  const bad = await client.files.create({ file: await toFile(Buffer.from('no line'), 'in.jsonl'), purpose: 'batch' })
  const failed = await client.batches.create({ input_file_id: bad.id, ...ended })
  expect((await receiver.next(at(path))).body).toMatchObject({ type: 'batch.failed', data: { id: failed.id } })
  const { deliveries } = (await ask('GET', `/api/webhooks/${webhook.id}/deliveries`)).body
  expect(deliveries.map(({ type }) => type)).toEqual(['batch.failed', 'batch.completed'])
  await remove(webhook.id)
})

describe('delivery', () => {
  const deliveriesOf = async (id: string, query = '') =>
    (await ask('GET', `/api/webhooks/${id}/deliveries${query}`)).body.deliveries
  /** Waits until the newest delivery of an endpoint has ended. */
  async function ended(id: string): Promise<DeliveryView> {
    await expect.poll(async () => (await deliveriesOf(id))[0]?.status ?? 'none').toMatch(/^(delivered|dead)$/)
    return (await deliveriesOf(id))[0]!
  }

  test('a message that fails is sent again with the same id and body and a new timestamp until it is accepted', async () => {
    const { webhook, signing_secret, path } = await register(['job.completed'])
    failing.set(path, { times: 2, status: 500 })
    await submit('again')
    const attempts = [await receiver.next(at(path)), await receiver.next(at(path)), await receiver.next(at(path))]
    expect(new Set(attempts.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(new Set(attempts.map(({ text }) => text)).size).toBe(1)
    for (const attempt of attempts) verify(attempt, signing_secret)
    const delivery = await ended(webhook.id)
    expect(delivery).toMatchObject({
      id: attempts[0]!.headers['webhook-id'],
      webhook_id: webhook.id,
      event_id: attempts[0]!.body.id,
      type: 'job.completed',
      status: 'delivered',
      attempt: 3,
      status_code: 204,
      error: null,
      next_attempt_at: null,
      request_body: attempts[0]!.text,
      response_body: '',
    })
    await remove(webhook.id)
  })

  test('after the last attempt it is dead and logged, and can be sent again', async () => {
    const { webhook, path } = await register(['job.completed'])
    failing.set(path, { times: 4, status: 503 })
    const logged = app.logged('was not delivered')
    await submit('dead')
    const dead = await ended(webhook.id)
    expect(dead).toMatchObject({
      status: 'dead',
      attempt: 4,
      status_code: 503,
      error: 'The URL answered 503.',
      response_body: 'not now',
    })
    expect(await logged).toMatchObject({ level: 'warn', delivery: dead.id, endpoint: webhook.id })
    for (let attempt = 0; attempt < 4; attempt++) await receiver.next(at(path))
    const again = await ask('POST', `/api/webhooks/${webhook.id}/deliveries/${dead.id}/redeliver`)
    expect([again.status, again.body.delivery.status]).toEqual([202, 'pending'])
    const message = await receiver.next(at(path))
    expect([message.headers['webhook-id'], message.text]).toEqual([dead.id, dead.request_body])
    expect(await ended(webhook.id)).toMatchObject({ status: 'delivered', attempt: 1 })
    // One that was delivered can be sent again too, under the path of the organization as well.
    expect((await ask('POST', `/api/webhook-deliveries/${dead.id}/redeliver`)).status).toBe(202)
    expect((await receiver.next(at(path))).headers['webhook-id']).toBe(dead.id)
    await remove(webhook.id)
  })

  test('a later event of an object waits until the earlier one was delivered or is dead', async () => {
    const { webhook, path } = await register(['job.*'])
    failing.set(path, { times: 5, status: 500 })
    const first = await submit('order')
    const seen: string[] = []
    for (let attempt = 0; attempt < 4 + 2 + 1; attempt++) seen.push((await receiver.next(at(path))).body.type)
    expect(seen).toEqual([...Array<string>(4).fill('job.created'), 'job.started', 'job.started', 'job.completed'])
    expect((await deliveriesOf(webhook.id)).map(({ type, status }) => [type, status]).slice(1)).toEqual([
      ['job.started', 'delivered'],
      ['job.created', 'dead'],
    ])
    expect(first).toMatch(/^job_/)
    await remove(webhook.id)
  })

  test('410 disables the endpoint; enabled again, it gets new events', async () => {
    const { webhook, path } = await register(['job.completed'])
    failing.set(path, { times: 1, status: 410 })
    await submit('gone')
    expect(await ended(webhook.id)).toMatchObject({ status: 'dead', attempt: 1, status_code: 410 })
    await receiver.next(at(path))
    const found = await ask('GET', `/api/webhooks/${webhook.id}`)
    expect(found.body.webhook).toMatchObject({ enabled: false, disabled_reason: 'gone' })
    await ask('GET', `/api/jobs/${await submit('unheard')}?wait=30`)
    const enabled = await ask('PATCH', `/api/webhooks/${webhook.id}`, { enabled: true })
    expect(enabled.body.webhook).toMatchObject({ enabled: true, disabled_reason: null })
    const id = await submit('heard')
    expect((await receiver.next(at(path))).body.data.id).toBe(id)
    expect(await deliveriesOf(webhook.id)).toHaveLength(2)
    await remove(webhook.id)
  })

  test('while an endpoint is disabled its pending messages wait, and they are sent to its new URL', async () => {
    const { webhook, path } = await register(['job.completed'])
    failing.set(path, { times: 1, status: 500, headers: { 'retry-after': '60' } })
    const id = await submit('wait')
    await receiver.next(at(path))
    await expect.poll(async () => (await deliveriesOf(webhook.id))[0]!.attempt).toBe(1)
    const [pending] = await deliveriesOf(webhook.id, '?status=pending')
    // `Retry-After` is longer than the delay of the schedule.
    expect(pending!.next_attempt_at! - pending!.attempted_at!).toBeGreaterThanOrEqual(59)
    await ask('PATCH', `/api/webhooks/${webhook.id}`, { enabled: false, url: `${receiver.url}/moved` })
    await ask('POST', `/api/webhook-deliveries/${pending!.id}/redeliver`)
    expect(await deliveriesOf(webhook.id, '?status=pending')).toHaveLength(1)
    await ask('PATCH', `/api/webhooks/${webhook.id}`, { enabled: true })
    expect((await receiver.next(at('/moved'))).body.data.id).toBe(id)
    await remove(webhook.id)
  })

  test('a redirect is a failure and is not followed', async () => {
    const { webhook, path } = await register(['job.completed'])
    failing.set(path, { times: 4, status: 307, headers: { location: '/elsewhere' } })
    await submit('redirect')
    expect((await ended(webhook.id)).error).toBe(
      'The URL answered 307, and redirects are not followed: register the URL to which it leads.',
    )
    expect(receiver.all.filter(({ path }) => path === '/elsewhere')).toEqual([])
    await remove(webhook.id)
  })

  test('a job that is removed at once still has its messages', async () => {
    const { webhook, path } = await register(['job.cancelled'])
    const inputs = { input: 'never' }
    const not_before = Math.floor(Date.now() / 1000) + 3600
    const { body } = await ask('POST', '/api/jobs', { task: 'std/embeddings', model_id: 'far', inputs, not_before })
    await ask('POST', `/api/jobs/${body.id}/cancel`)
    await ask('DELETE', `/api/jobs/${body.id}`)
    expect((await receiver.next(at(path))).body.data.id).toBe(body.id)
    await remove(webhook.id)
  })

  test('the metrics count attempts by outcome, and pending and dead deliveries', async () => {
    const text = await (await app.fetch('/metrics')).text()
    const valueOf = (name: string) =>
      Number(
        text
          .split('\n')
          .find(line => line.startsWith(`${name} `))
          ?.split(' ')[1],
      )
    for (const outcome of ['delivered', 'failed', 'dead'])
      expect(valueOf(`infer_webhook_attempts_total{outcome="${outcome}"}`)).toBeGreaterThan(0)
    expect(valueOf('infer_webhook_deliveries{state="dead"}')).toBeGreaterThan(0)
    expect(valueOf('infer_webhook_deliveries{state="pending"}')).toBeGreaterThanOrEqual(0)
  })

  test('the deliveries of the organization include those of requests, page by page, newest first', async () => {
    const { body } = await ask('GET', '/api/webhook-deliveries?limit=2')
    const next = (body as unknown as { next_cursor: string }).next_cursor
    const more = (await ask('GET', `/api/webhook-deliveries?limit=50&after=${next}`)).body.deliveries
    const ids = [...body.deliveries, ...more].map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted().toReversed())
    expect(more.some(({ webhook_id }) => webhook_id === null)).toBe(true)
    const dead = (await ask('GET', '/api/webhook-deliveries?status=dead&limit=50')).body.deliveries
    expect(dead.every(({ status }) => status === 'dead')).toBe(true)
  })
})

describe('endpoints', () => {
  test('create, read, list, change and delete; the secret is shown once', async () => {
    const { webhook, signing_secret } = await register(['job.completed'], { name: 'mine' })
    expect(Buffer.from(signing_secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
    expect(webhook).toMatchObject({
      object: 'webhook_endpoint',
      name: 'mine',
      enabled: true,
      disabled_reason: null,
      previous_secret_until: null,
      signing_secret_hint: `whsec_…${signing_secret.replace(/=+$/, '').slice(-4)}`,
    })
    const path = `/api/webhooks/${webhook.id}`
    expect((await ask('GET', path)).body).toEqual({ webhook })
    expect((await ask('GET', '/api/webhooks?limit=1')).body).toMatchObject({ webhooks: [webhook] })
    const changed = await ask('PATCH', path, { name: 'other', event_types: ['*'] })
    expect(changed.body.webhook).toMatchObject({ name: 'other', event_types: ['*'], url: webhook.url })
    expect((await remove(webhook.id)).body).toEqual({
      id: webhook.id,
      object: 'webhook_endpoint.deleted',
      deleted: true,
    })
    for (const gone of [
      await ask('GET', path),
      await ask('PATCH', path, { name: 'x' }),
      await ask('DELETE', path),
      await ask('POST', `${path}/rotate`, {}),
      await ask('POST', `${path}/test`, {}),
      await ask('GET', `${path}/deliveries`),
    ])
      expect([gone.status, gone.body.error.code]).toEqual([404, 'not_found'])
  })

  test('rotation: both secrets sign until the overlap is over', async () => {
    const { webhook, signing_secret, path } = await register(['job.completed'])
    const rotated = await ask('POST', `/api/webhooks/${webhook.id}/rotate`, { overlap_seconds: 3600 })
    expect(rotated.body.webhook.previous_secret_until).toBeGreaterThan(Date.now() / 1000 + 3500)
    await submit('both')
    const both = await receiver.next(at(path))
    verify(both, signing_secret)
    verify(both, rotated.body.signing_secret)
    const client = new OpenAI({ apiKey: 'x' })
    for (const secret of [signing_secret, rotated.body.signing_secret])
      await client.webhooks.verifySignature(both.text, both.headers, secret)
    const last = await ask('POST', `/api/webhooks/${webhook.id}/rotate`, { overlap_seconds: 0 })
    await submit('one')
    const one = await receiver.next(at(path))
    verify(one, last.body.signing_secret)
    expect(() => verify(one, rotated.body.signing_secret)).toThrow(/signature/)
    await remove(webhook.id)
  })

  test('the secret of the organization: rotation and overlap', async () => {
    const base = `/api/organizations/${app.organizationId}/webhook-secret`
    const before = (await ask('GET', base)).body.signing_secret
    const after = (await ask('POST', `${base}/rotate`, { overlap_seconds: 60 })).body.signing_secret
    expect(after).not.toBe(before)
    await submit('both', { webhook_url: `${receiver.url}/own/rotated` })
    const message = await receiver.next(at('/own/rotated'))
    verify(message, before)
    verify(message, after)
    const other = await ask('GET', `/api/organizations/org_${'0'.repeat(26)}/webhook-secret`)
    expect([other.status, other.body.error.code]).toEqual([403, 'organization_mismatch'])
  })

  test('a test message: what came of it is the answer', async () => {
    const { webhook, signing_secret, path } = await register(['job.completed'])
    const fine = await ask('POST', `/api/webhooks/${webhook.id}/test`, { event_type: 'job.failed' })
    expect(fine.body).toMatchObject({
      webhook_endpoint_id: webhook.id,
      event_type: 'job.failed',
      success: true,
      status_code: 204,
      error: null,
    })
    const message = await receiver.next(at(path))
    expect(verify(message, signing_secret)).toMatchObject({ type: 'job.failed', data: { test: true } })
    failing.set(path, { times: 1, status: 500 })
    const failed = await ask('POST', `/api/webhooks/${webhook.id}/test`, {})
    expect(failed.body).toMatchObject({ success: false, status_code: 500, error: 'The URL answered 500.' })
    await remove(webhook.id)
  })

  test('an idempotency key creates one endpoint, and its secret is not shown again', async () => {
    const body = { name: 'n', url: `${receiver.url}/once`, event_types: ['job.completed'] }
    const key = { 'idempotency-key': 'webhook-1' }
    const first = await ask('POST', '/api/webhooks', body, undefined, key)
    const second = await ask('POST', '/api/webhooks', body, undefined, key)
    expect([second.status, second.body.error.code]).toEqual([409, 'conflict'])
    expect(second.body.error.message).toContain(first.body.webhook.id)
    await remove(first.body.webhook.id)
  })

  test('an organization sees and gets only its own', async () => {
    const other = await makeOrganization(app)
    const mine = await register(['job.completed'])
    const theirs = await register(['job.completed'], {}, other.secret)
    const list = await ask('GET', '/api/webhooks', undefined, other.secret)
    expect(list.body.webhooks.map(({ id }) => id)).toEqual([theirs.webhook.id])
    const foreign = await ask('GET', `/api/webhooks/${mine.webhook.id}`, undefined, other.secret)
    const absent = await ask('GET', `/api/webhooks/whe_${'0'.repeat(26)}`, undefined, other.secret)
    expect(foreign.status).toBe(404)
    expect(foreign.body.error.message.replace(mine.webhook.id, '')).toBe(
      absent.body.error.message.replace(/whe_0+/, ''),
    )
    const id = await submit('theirs', {}, other.secret)
    const message = await receiver.next(at(theirs.path))
    expect(message.body.data.id).toBe(id)
    expect(receiver.all.filter(({ path }) => path === mine.path)).toEqual([])
    const delivery = message.headers['webhook-id'] as string
    expect((await ask('POST', `/api/webhook-deliveries/${delivery}/redeliver`)).status).toBe(404)
    expect((await ask('GET', `/api/organizations/${other.organizationId}/webhook-secret`)).status).toBe(403)
    await remove(mine.webhook.id)
  })

  test.each([
    ['event_types', { event_types: ['job.complete'] }, "Did you mean 'job.completed'?"],
    ['event_types', { event_types: ['nothing.*'] }, 'nothing.*'],
    ['event_types', { event_types: [] }, 'event_types'],
    ['url', { url: 'ftp://example.com/x' }, 'http or https'],
    ['url', { url: 'example.com' }, 'http or https'],
    ['url', { url: `https://example.com/${'x'.repeat(2_100)}` }, '2048'],
    ['urls', { urls: 'https://example.com' }, "'url'"],
  ])('a wrong %s is refused', async (param, more, words) => {
    const { status, body } = await ask('POST', '/api/webhooks', {
      name: 'n',
      url: receiver.url,
      event_types: ['job.*'],
      ...more,
    })
    expect([status, body.error.param]).toEqual([400, param])
    expect(body.error.message).toContain(words)
  })

  test('at most 32', async () => {
    const { secret } = await makeOrganization(app)
    for (let made = 0; made < 32; made++) await register(['job.failed'], {}, secret)
    const { status, body } = await ask(
      'POST',
      '/api/webhooks',
      { name: 'n', url: receiver.url, event_types: ['*'] },
      secret,
    )
    expect([status, body.error.code]).toEqual([409, 'conflict'])
  })
})

describe('the audit log', () => {
  test('names who created, changed, rotated, tested, sent again and deleted, over both APIs, without a secret', async () => {
    const { organizationId: id, secret: token } = await makeOrganization(app)
    const { webhook, signing_secret, path } = await register(['job.completed'], {}, token)
    await ask('PATCH', `/api/webhooks/${webhook.id}`, { name: 'renamed' }, token)
    await ask('POST', `/std/v1/webhook_endpoints/${webhook.id}/rotate_secret`, {}, token)
    await ask('POST', `/api/webhooks/${webhook.id}/test`, {}, token)
    await submit('audited', {}, token)
    await receiver.next(received => at(path)(received) && received.body.data.test === undefined)
    const { body: page } = await ask('GET', '/api/webhook-deliveries', undefined, token)
    await ask('POST', `/api/webhook-deliveries/${page.deliveries[0]!.id}/redeliver`, {}, token)
    await ask('DELETE', `/std/v1/webhook_endpoints/${webhook.id}`, undefined, token)
    await ask('POST', `/api/organizations/${id}/webhook-secret/rotate`, {}, token)
    const response = await app.fetch(`/api/organizations/${id}/audit`, { token })
    const text = await response.text()
    const { entries } = JSON.parse(text) as {
      entries: { action: string; actor: object; target: { type: string; id: string } }[]
    }
    const acts = entries.filter(one => one.action.includes('webhook')).toReversed()
    expect(acts.map(one => [one.action, one.target.id])).toEqual([
      ...['created', 'updated', 'secret_rotated', 'tested', 'redelivered', 'deleted'].map(act => [
        `webhook_endpoint.${act}`,
        webhook.id,
      ]),
      ['organization.webhook_secret_rotated', id],
    ])
    for (const { actor } of acts)
      expect(actor).toMatchObject({
        type: 'token',
        token_id: expect.stringMatching(/^tok_/) as string,
        address: '127.0.0.1',
      })
    expect(text).not.toContain(signing_secret.slice(6))
  })
})
