import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'

let app: TestApp
const slug = 'acme/dream/text-to-image'
beforeAll(async () => {
  app = await startApp({
    models: [fakeModel('acme/dream', [], { tasks: ['slug/text-to-image'], concurrency: 1 })],
    limits: { sync_wait: '1s', cancel_grace: '1s' },
  })
})
afterAll(() => app[Symbol.asyncDispose]())

const size = { width: 64, height: 64 }
interface Submitted {
  status: string
  request_id: string
  gateway_request_id: string
  queue_position: number
  response_url: string
  status_url: string
  cancel_url: string
}
const post = (prompt: string, headers: Record<string, string> = {}, path = `/fal/queue/${slug}`) =>
  app.fetch(path, { body: { prompt, image_size: size }, headers })
async function submit(prompt: string, headers: Record<string, string> = {}): Promise<Submitted> {
  const response = await post(prompt, headers)
  expect(response.status).toBe(200)
  return (await response.json()) as Submitted
}
/** Uses the returned addresses unchanged, as fal's Python client does. */
const at = (url: string, options: Parameters<TestApp['fetch']>[1] = {}) => {
  expect(url.startsWith(app.url)).toBe(true)
  return app.fetch(url.slice(app.url.length), options)
}
const statusOf = async ({ status_url }: Submitted) => ((await (await at(status_url)).json()) as Submitted).status
const until = (request: Submitted, status: string) => expect.poll(() => statusOf(request)).toBe(status)
const ended = (request: Submitted) => until(request, 'COMPLETED')
const facts = async (response: Response) => ({
  status: response.status,
  body: (await response.json()) as Record<string, unknown>,
  requestId: response.headers.get('x-fal-request-id'),
  errorType: response.headers.get('x-fal-error-type'),
  retryable: response.headers.get('x-fal-retryable'),
})

test('the steps of a request, with the statuses and members that fal’s clients require', async () => {
  const first = await submit('mode:hang')
  const second = await submit('a cat')
  const { request_id } = second
  expect(second).toEqual({
    status: 'IN_QUEUE',
    request_id,
    gateway_request_id: request_id,
    queue_position: expect.any(Number) as number,
    response_url: `${app.url}/fal/queue/${slug}/requests/${request_id}`,
    status_url: `${app.url}/fal/queue/${slug}/requests/${request_id}/status`,
    cancel_url: `${app.url}/fal/queue/${slug}/requests/${request_id}/cancel`,
  })
  const { gateway_request_id: _, queue_position: __, status: ___, ...urls } = second
  const waiting = await facts(await at(second.status_url))
  expect(waiting).toMatchObject({ status: 202, requestId: request_id, body: { status: 'IN_QUEUE', ...urls } })
  expect(waiting.body.queue_position).toBeTypeOf('number')
  await until(first, 'IN_PROGRESS')
  const running = await facts(await at(first.status_url))
  expect([running.status, running.body.logs]).toEqual([202, []])
  const early = await at(first.response_url)
  expect([early.status, await early.text()]).toEqual([400, '{"detail":"Request is still in progress"}'])
  expect(early.headers.get('x-fal-request-id')).toBe(first.request_id)
  await at(first.cancel_url, { method: 'PUT' })

  await ended(second)
  const done = await facts(await at(`${second.status_url}?logs=1`))
  expect(done).toMatchObject({ status: 200, body: { status: 'COMPLETED', ...urls } })
  expect(done.body.metrics).toEqual({ inference_time: expect.any(Number) as number })
  expect((done.body.logs as object[])[0]).toEqual({
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    level: 'INFO',
    message: expect.any(String) as string,
    source: 'USER',
  })
  const result = await facts(await at(second.response_url))
  expect(result).toMatchObject({ status: 200, requestId: request_id, body: { images: [size], prompt: 'a cat' } })
  for (const wrapper of ['request_id', 'status', 'result', 'model_id']) expect(result.body).not.toHaveProperty(wrapper)
})

test('the id alone identifies a request: clients omit parts of the app’s name', async () => {
  const request = await submit('a cat')
  await ended(request)
  const id = request.request_id
  for (const app_ of ['acme/dream', 'acme/dream/text-to-image', 'other/name', 'workflows/a/b', 'requests/x', ''])
    expect([app_, (await app.fetch(`/fal/queue/${app_}/requests/${id}`)).status]).toEqual([app_, 200])
  for (const path of ['acme/dream', `acme/dream/${id}`, `acme/dream/requests/${id}/other`, 'requests'])
    expect([path, (await app.fetch(`/fal/queue/${path}`)).status]).toEqual([path, 404])
})

test('cancel: accepted once, refused again, too late, and of no request', async () => {
  const running = await submit('mode:hang')
  await until(running, 'IN_PROGRESS')
  const cancel = async (url: string) => facts(await at(url, { method: 'PUT' }))
  const { request_id } = running
  expect(await cancel(running.cancel_url)).toMatchObject({
    status: 202,
    body: { status: 'CANCELLATION_REQUESTED', request_id },
  })
  expect(await cancel(running.cancel_url)).toMatchObject({
    status: 400,
    body: { status: 'ALREADY_COMPLETED', request_id },
  })
  expect(await facts(await at(running.status_url))).toMatchObject({
    status: 200,
    body: { status: 'COMPLETED', error_type: 'client_cancelled' },
  })
  expect(await facts(await at(running.response_url))).toMatchObject({
    status: 499,
    errorType: 'client_cancelled',
    retryable: 'false',
    body: { detail: expect.any(String) as string },
  })
  const done = await submit('a cat')
  await ended(done)
  expect(await cancel(done.cancel_url)).toMatchObject({ status: 400, body: { status: 'ALREADY_COMPLETED' } })
  const nobody = done.cancel_url.replace(done.request_id, 'q_01K00000000000000000000000')
  expect(await cancel(nobody)).toMatchObject({
    status: 404,
    body: { status: 'NOT_FOUND', error: { code: 'not_found' } },
  })
})

test('a request of another organization answers byte for byte like an unknown one', async () => {
  const request = await submit('a cat')
  await ended(request)
  const { secret } = await makeOrganization(app)
  for (const [method, tail] of [
    ['GET', ''],
    ['GET', '/status'],
    ['GET', '/status/stream'],
    ['PUT', '/cancel'],
  ] as const) {
    const [foreign, absent] = await Promise.all(
      [request.request_id, 'q_01K00000000000000000000000'].map(async id => {
        const response = await app.fetch(`/fal/queue/x/requests/${id}${tail}`, { method, token: secret })
        return [response.status, (await response.text()).replaceAll(id, 'ID').replace(/req_\w+/, '')]
      }),
    )
    expect(foreign).toEqual(absent)
    expect(foreign![0]).toBe(404)
  }
})

test.each([
  ['an engine that fails', 'mode:failed', 500, 'runner_server_error'],
  ['an engine that finds the request at fault', 'mode:invalid', 422, null],
])('%s: its request is completed, with the error as its result', async (_, prompt, status, word) => {
  const request = await submit(prompt)
  await ended(request)
  const state = await facts(await at(request.status_url))
  expect(state).toMatchObject({ status: 200, body: { status: 'COMPLETED', error: expect.any(String) as string } })
  const result = await facts(await at(request.response_url))
  expect([result.status, result.errorType, result.requestId]).toEqual([status, word, request.request_id])
  if (status === 422)
    expect(result.body.detail).toEqual([{ loc: ['body'], msg: state.body.error, type: expect.any(String) as string }])
  else expect(result.body).toMatchObject({ detail: state.body.error, error_type: word })
})

test('a start timeout of the caller is reported as such', async () => {
  const running = await submit('mode:hang')
  await until(running, 'IN_PROGRESS')
  const impatient = await submit('a cat', { 'x-fal-request-timeout': '1' })
  await ended(impatient)
  const response = await at(impatient.response_url)
  expect(response.headers.get('x-fal-request-timeout-type')).toBe('user')
  expect(await facts(response)).toMatchObject({ status: 504, errorType: 'startup_timeout' })
  await at(running.cancel_url, { method: 'PUT' })
})

test('a direct call that exceeds its time continues, and the caller must not send it again', async () => {
  const response = await post('mode:slow,ms=2500,steps=2', {}, `/fal/run/${slug}`)
  expect(response.headers.get('x-fal-request-timeout-type')).toBe('user')
  const { status, body, requestId } = await facts(response)
  expect([status, body.error_type, body.request_id]).toEqual([504, 'request_timeout', requestId])
  await ended(body as unknown as Submitted)
  expect((await at(String(body.response_url))).status).toBe(200)
})

test('headers set priority, lifetime and idempotency of the job', async () => {
  const headers = {
    'x-fal-queue-priority': 'low',
    'x-fal-object-lifecycle-preference': '{"expiration_duration_seconds":3600}',
    'idempotency-key': 'once',
  }
  const request = await submit('a cat', headers)
  const again = await post('a cat', headers)
  expect(again.headers.get('idempotent-replayed')).toBe('true')
  expect(((await again.json()) as Submitted).request_id).toBe(request.request_id)
  await ended(request)
  const job = (await (await app.fetch(`/api/jobs/${request.request_id.replace('q_', 'job_')}`)).json()) as {
    priority: number
    finished_at: number
    expires_at: number
  }
  expect([job.priority, job.expires_at - job.finished_at]).toEqual([-10, 3600])
})

test.each([
  ['x-fal-queue-priority', 'highest'],
  ['x-fal-request-timeout', 'soon'],
  ['x-fal-object-lifecycle-preference', '{'],
])('a wrong %s is refused', async (name, value) => {
  expect(await facts(await post('a cat', { [name]: value }))).toMatchObject({
    status: 422,
    body: { detail: [{ loc: ['header', expect.any(String) as string] }] },
  })
})

test.each([
  ['no body at all', '', 'prompt'],
  ['no JSON', '{', undefined],
  ['no object', '[]', undefined],
])('%s is a validation error', async (_, body, field) => {
  const refused = await facts(await app.fetch(`/fal/queue/${slug}`, { method: 'POST', body }))
  expect(refused.status).toBe(422)
  const detail = refused.body.detail as { loc: string[] }[]
  if (field) expect(detail.map(({ loc }) => loc)).toContainEqual(['body', field])
  else expect(detail[0]!.loc[0]).toBe('body')
})

test('an upload is kept as long as its sender requests', async () => {
  const initiate = (headers: Record<string, string>) =>
    app.fetch('/fal/rest/storage/upload/initiate?storage_type=fal-cdn-v3', {
      body: { content_type: 'image/png', file_name: 'cat.png' },
      headers,
    })
  const lifecycle = { 'x-fal-object-lifecycle': '{"expiration_duration_seconds":1}' }
  const { upload_url, file_url } = (await (await initiate(lifecycle)).json()) as Record<string, string>
  expect((await fetch(upload_url!, { method: 'PUT', body: 'x' })).status).toBe(200)
  expect((await fetch(file_url!)).status).toBe(200)
  await expect.poll(async () => (await fetch(file_url!)).status).toBe(410)
  for (const wrong of ['{', '{"expiration_duration_seconds":0}', '{"expiration_duration_seconds":"1h"}'])
    expect((await initiate({ 'x-fal-object-lifecycle': wrong })).status).toBe(422)
})

test('through the proxy, the scope of the target endpoint is checked', async () => {
  const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
    body: { name: 'reader', scopes: ['user:read'] },
  })
  const { secret } = (await made.json()) as { secret: string }
  const ask = async (method: string, target: string | undefined, token: string | null) =>
    facts(
      await app.fetch('/fal/proxy', {
        method,
        token,
        headers: target === undefined ? {} : { 'x-fal-target-url': target },
        ...(method === 'GET' ? {} : { body: { prompt: 'a cat', image_size: size } }),
      }),
    )
  const target = `https://queue.fal.run/${slug}`
  expect(await ask('POST', target, app.secret)).toMatchObject({ status: 200, body: { status: 'IN_QUEUE' } })
  expect(await ask('POST', target, secret)).toMatchObject({
    status: 403,
    body: { error: { code: 'insufficient_scope', required_scope: 'user:write' } },
  })
  expect(await ask('POST', target, null)).toMatchObject({ status: 401, body: { error: { code: 'missing_api_key' } } })
  for (const wrong of [undefined, 'https://example.com/', 'http://fal.run/x', 'https://127.0.0.1/x', 'x'])
    expect(await ask('POST', wrong, app.secret)).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('x-fal-target-url') as string },
    })
  for (const out of ['https://queue.fal.run/../../api/me', 'https://fal.run/%2e%2e/%2e%2e/api/me'])
    expect((await ask('GET', out, app.secret)).body).not.toHaveProperty('organization')
})
